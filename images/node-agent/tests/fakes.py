# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet and a device plugin, made with grpcio and the messages of v1beta1.proto.

They behave as the real ones were seen to: the kubelet removes every socket when it starts, and disconnects the
newest client of a resource when any of its streams ends; the plugin registers again only when its stream ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
pb, rpc = grpc.protos_and_services("v1beta1.proto")

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


# Seconds that tests wait at most. They wait for conditions: only a test that fails, on the slowest machine, takes as long.
PATIENCE = 300


def wait_for(condition, what="condition"):
    """Wait until ``condition()`` is true, and return its value."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "%s did not come true in %g s" % (what, PATIENCE)
        time.sleep(0.02)


def free_port():
    """A port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def collections_tree(directory):
    """Make the checkout importable as ansible_collections.npuops.ascend below ``directory``, as in the image."""
    parent = os.path.join(directory, "ansible_collections", "npuops")
    if not os.path.exists(parent):
        os.makedirs(parent)
        for package in (os.path.dirname(parent), parent):
            open(os.path.join(package, "__init__.py"), "w", encoding="utf-8").close()
        os.symlink(CHECKOUT, os.path.join(parent, "ascend"))
    return directory


class Kubelet(rpc.RegistrationServicer):
    """The kubelet's device manager, without pods."""

    def __init__(self, directory):
        self.directory = str(directory)
        self.registrations = []
        self.lists = {}  # resource -> every list received, as {id: health}
        self.refuse = None
        self._clients = {}
        self._stopped = set()
        self._lock = threading.RLock()
        self._server = None

    @property
    def socket(self):
        return os.path.join(self.directory, "kubelet.sock")

    def start(self):
        for name in os.listdir(self.directory):
            path = os.path.join(self.directory, name)
            if stat.S_ISSOCK(os.stat(path).st_mode):
                os.unlink(path)
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        rpc.add_RegistrationServicer_to_server(self, self._server)
        self._server.add_insecure_port("unix:" + self.socket)
        self._server.start()
        return self

    def stop(self):
        """What the plugins see when the process ends."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.channel.close()
        self._server.stop(0).wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)

    def Register(self, request, context):
        if self.refuse:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, self.refuse)
        self.registrations.append(request)
        client = _PluginClient(os.path.join(self.directory, request.endpoint))
        with self._lock:
            self._clients[request.resource_name] = client
        client.options = client.stub.GetDevicePluginOptions(pb.Empty(), timeout=PATIENCE)
        with self._lock:
            self._stopped.discard(request.resource_name)
        threading.Thread(target=self._run, args=(request.resource_name, client), daemon=True).start()
        return pb.Empty()

    def _run(self, resource, client):
        try:
            for message in client.stub.ListAndWatch(pb.Empty()):
                with self._lock:
                    self.lists.setdefault(resource, []).append({device.ID: device.health for device in message.devices})
                    client.last = message
        except (grpc.RpcError, ValueError):
            pass
        # As the real one: not "this client" but whichever is registered by now.
        with self._lock:
            newest = self._clients.pop(resource, None)
            if newest is not None:
                newest.channel.close()
                self._stopped.add(resource)

    def client(self, resource):
        with self._lock:
            return self._clients.get(resource)

    def stub(self, resource):
        return self.client(resource).stub

    def devices(self, resource):
        """The last list, empty where the endpoint is stopped."""
        with self._lock:
            if resource in self._stopped or resource not in self._clients:
                return {}
            return dict(self.lists.get(resource, [{}])[-1])

    def allocatable(self, resource):
        return sorted(name for name, health in self.devices(resource).items() if health == HEALTHY)

    def allocate(self, resource, *ids, timeout=PATIENCE):
        request = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=ids)])
        return self.stub(resource).Allocate(request, timeout=timeout)


class _PluginClient:
    def __init__(self, path):
        self.channel = grpc.insecure_channel("unix:" + path)
        grpc.channel_ready_future(self.channel).result(timeout=PATIENCE)
        self.stub = rpc.DevicePluginStub(self.channel)
        self.options = self.last = None


class Plugin(rpc.DevicePluginServicer):
    """The upstream plugin. ``devices`` is {id: health}; change it through update()."""

    def __init__(self, directory, resource="huawei.com/Ascend910", devices=None):
        self.directory = str(directory)
        self.resource = resource
        self.name = resource.rpartition("/")[2]
        self.endpoint = self.name + ".sock"
        self.devices = devices if devices is not None else {"%s-%d" % (self.name, n): HEALTHY for n in range(4)}
        self.options = pb.DevicePluginOptions()
        self.answer = None  # a function of the device IDs of a container, in place of the usual answer
        self.error = None
        self.goes_on = threading.Event()  # until it is set, calls do not return
        self.goes_on.set()
        self.registers = threading.Event()  # until it is set, one whose stream has ended does not register again
        self.registers.set()
        self.requests = []
        self.registrations = 0
        self.refusals = []
        self.streams = 0
        self._queues = []
        self._server = None
        self._stopping = threading.Event()
        self._thread = None

    @property
    def socket(self):
        return os.path.join(self.directory, self.endpoint)

    def start(self):
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self.goes_on.set()
        self._close()
        self._thread.join(PATIENCE)

    def end_streams(self):
        for waiting in list(self._queues):
            waiting.put(None)

    def _close(self):
        self.end_streams()
        if self._server is not None:
            self._server.stop(0).wait()
            self._server = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)

    def _run(self):
        while not self._stopping.is_set():
            self._ended = threading.Event()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.socket)
            self._server = grpc.server(futures.ThreadPoolExecutor(8))
            rpc.add_DevicePluginServicer_to_server(self, self._server)
            self._server.add_insecure_port("unix:" + self.socket)
            self._server.start()
            if self._register():
                self.registrations += 1
                while not self._ended.wait(0.05) and not self._stopping.is_set():
                    pass
            self._stopping.wait(0.2)
            while not self.registers.wait(0.05) and not self._stopping.is_set():
                pass
            self._close()

    def _register(self):
        with grpc.insecure_channel("unix:" + os.path.join(self.directory, "kubelet.sock")) as channel:
            request = pb.RegisterRequest(
                version="v1beta1", endpoint=self.endpoint, resource_name=self.resource, options=self.options
            )
            try:
                rpc.RegistrationStub(channel).Register(request, timeout=PATIENCE)
                return True
            except grpc.RpcError as exc:
                self.refusals.append(exc)
                return False

    def update(self, devices):
        self.devices = dict(devices)
        for waiting in list(self._queues):
            waiting.put(self._message())

    def _message(self):
        return pb.ListAndWatchResponse(
            devices=[
                pb.Device(ID=name, health=health, topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=1)]))
                for name, health in self.devices.items()
            ]
        )

    def GetDevicePluginOptions(self, request, context):
        return self.options

    def ListAndWatch(self, request, context):
        waiting = queue.Queue()
        self._queues.append(waiting)
        self.streams += 1
        ended = self._ended
        # A stream that breaks off is noticed through its callback, like a failed send.
        context.add_callback(lambda: waiting.put(None))
        try:
            message = self._message()
            while message is not None:
                yield message
                message = waiting.get()
        finally:
            self.streams -= 1
            self._queues.remove(waiting)
            ended.set()

    def _before(self, request, context):
        self.requests.append(request)
        self.goes_on.wait(PATIENCE)
        if self.error:
            context.abort(*self.error)

    def Allocate(self, request, context):
        self._before(request, context)
        answer = self.answer or self.device_specs
        return pb.AllocateResponse(container_responses=[answer(list(c.devices_ids)) for c in request.container_requests])

    def GetPreferredAllocation(self, request, context):
        self._before(request, context)
        return pb.PreferredAllocationResponse(
            container_responses=[
                pb.ContainerPreferredAllocationResponse(deviceIDs=list(c.available_deviceIDs)[: c.allocation_size])
                for c in request.container_requests
            ]
        )

    def PreStartContainer(self, request, context):
        self._before(request, context)
        return pb.PreStartContainerResponse()

    @staticmethod
    def device_specs(ids):
        """What v7.3.0 answers without ascend-docker-runtime."""
        chips = sorted(int(name.split("-")[1]) for name in ids)
        paths = ["davinci_manager", "hisi_hdc", "devmm_svm", "dvpp_cmdlist"] + ["davinci%d" % chip for chip in chips]
        specs = [pb.DeviceSpec(container_path="/dev/" + p, host_path="/dev/" + p, permissions="rw") for p in paths]
        return pb.ContainerAllocateResponse(devices=specs)


class Agent:
    """The real program in a process of its own, on directories below ``root``."""

    def __init__(self, root, **settings):
        self.root = str(root)
        self.kubelet_dir = self._directory("kubelet")
        self.plugin_dir = self._directory("plugin")
        self.run_dir = self._directory("run")
        self.boot_id_file = self._file("boot_id", "11111111-2222-3333-4444-555555555555\n")
        self.cdi_spec = os.path.join(self.root, "cdi.json")
        self.log = os.path.join(self.root, "agent.log")
        self.settings = {
            "kubelet-dir": self.kubelet_dir,
            "plugin-dir": self.plugin_dir,
            "run-dir": self.run_dir,
            "boot-id-file": self.boot_id_file,
            "cdi-spec": self.cdi_spec,
            "driver-tree": os.path.join(self.root, "driver"),
            "pci-devices": os.path.join(self.root, "pci"),
            "dev-dir": os.path.join(self.root, "dev"),
            "kernel-log": self._file("kmsg", ""),
            "metrics-address": "127.0.0.1:0",
            "log-level": "debug",
            **settings,
        }
        self.file_limit = None  # (soft, hard) limit of open files to start with
        self.process = None

    def _directory(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        return path

    def _file(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    @property
    def boot_id(self):
        with open(self.boot_id_file, encoding="ascii") as stream:
            return stream.read().strip()

    def start(self):
        tree = collections_tree(self._directory("tree"))
        arguments = [part for name, value in self.settings.items() for part in ("--" + name, str(value))]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((os.path.dirname(HERE), tree)),
            "PYTHONUNBUFFERED": "1",
        }
        # Not with preexec_fn: that forks, and gRPC's servers in this process may not survive a fork.
        limit = ["prlimit", "--nofile=%d:%d" % self.file_limit] if self.file_limit else []
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*limit, sys.executable, "-m", "npu_node_agent", *arguments],
                stdout=log,
                stderr=log,
                env=environment,
            )
        wait_for(lambda: os.path.exists(os.path.join(self.plugin_dir, "kubelet.sock")) or self.process.poll() is not None)
        return self

    def stop(self):
        """SIGTERM; returns the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def read_log(self):
        try:
            with open(self.log, encoding="utf-8") as stream:
                return stream.read()
        except FileNotFoundError:
            return ""

    def alive(self):
        return self.process is not None and self.process.poll() is None
