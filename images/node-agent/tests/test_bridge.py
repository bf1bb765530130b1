# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bridge between a kubelet and plugins, over real sockets, as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time

import grpc
import pytest
from fakes import HEALTHY, PATIENCE, UNHEALTHY, Kubelet, Plugin, pb, rpc, wait_for

A910 = "huawei.com/Ascend910"
A310 = "huawei.com/Ascend310P"
FOUR = ["Ascend910-%d" % n for n in range(4)]


def allocatable(kubelet, resource, expected):
    wait_for(
        lambda: kubelet.allocatable(resource) == expected,
        "%s = %s (last: %s)" % (resource, expected, kubelet.lists.get(resource, [None])[-1]),
    )


# Orders of starts


def test_kubelet_agent_plugin(kubelet, agent, ready, plugins):
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)


def test_agent_plugin_kubelet(agent, ready, plugins):
    agent.start()
    plugin = plugins()
    wait_for(lambda: plugin.streams == 1)
    late = Kubelet(agent.kubelet_dir).start()
    allocatable(late, A910, FOUR)
    late.stop()


def test_plugin_agent_kubelet(agent, ready, plugins):
    plugin = plugins()
    wait_for(lambda: plugin.refusals)
    agent.start()
    wait_for(lambda: plugin.streams == 1)
    late = Kubelet(agent.kubelet_dir).start()
    allocatable(late, A910, FOUR)
    late.stop()


def test_plugin_kubelet_agent(agent, ready, plugins, kubelet):
    plugin = plugins()
    wait_for(lambda: plugin.refusals)
    agent.start()
    allocatable(kubelet, A910, FOUR)


# What passes through


def test_registration_and_lists_pass_through(kubelet, agent, ready, plugins):
    agent.start()
    plugin = Plugin(agent.plugin_dir)
    plugin.options = pb.DevicePluginOptions(get_preferred_allocation_available=True)
    plugin.start()
    allocatable(kubelet, A910, FOUR)
    request = kubelet.registrations[0]
    assert (request.version, request.resource_name) == ("v1beta1", A910)
    assert request.endpoint == "npuops-huawei.com_Ascend910.sock"
    assert request.options.get_preferred_allocation_available
    client = kubelet.client(A910)
    assert client.options.get_preferred_allocation_available
    assert [node.ID for node in client.last.devices[0].topology.nodes] == [1]
    plugin.update({**plugin.devices, "Ascend910-2": UNHEALTHY})
    allocatable(kubelet, A910, ["Ascend910-0", "Ascend910-1", "Ascend910-3"])
    plugin.update({"Ascend910-3": HEALTHY})
    wait_for(lambda: kubelet.devices(A910) == {"Ascend910-3": HEALTHY})
    plugin.stop()


def test_allocate_names_cdi_devices(kubelet, agent, ready, plugins, spec):
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)
    answer = kubelet.allocate(A910, "Ascend910-3", "Ascend910-1").container_responses[0]
    assert [device.name for device in answer.cdi_devices] == ["huawei.com/npu=1", "huawei.com/npu=3"]
    assert not answer.devices


def test_allocate_for_ascend_docker_runtime(kubelet, agent, ready, plugins, spec):
    """What a host gives chips by may change while the agent runs."""
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)
    path = os.path.join(agent.plugin_dir, "runtime-mode")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("ascend\n")
    answer = kubelet.allocate(A910, "Ascend910-3", "Ascend910-1").container_responses[0]
    assert dict(answer.envs) == {"ASCEND_VISIBLE_DEVICES": "1,3"}
    assert not answer.devices and not answer.cdi_devices
    os.unlink(path)
    answer = kubelet.allocate(A910, "Ascend910-3").container_responses[0]
    assert [device.name for device in answer.cdi_devices] == ["huawei.com/npu=3"] and not answer.envs


def test_chips_that_are_shared(kubelet, agent, ready, plugins, spec):
    """Each device of a chip is that chip."""
    agent.start()
    shared = ["Ascend310P-%d-%d" % (chip, share) for chip in range(2) for share in range(3)]
    plugin = Plugin(agent.plugin_dir, A310, dict.fromkeys(shared, HEALTHY)).start()
    allocatable(kubelet, A310, shared)
    for device in shared[3:]:
        answer = kubelet.allocate(A310, device).container_responses[0]
        assert [name.name for name in answer.cdi_devices] == ["huawei.com/npu=1"] and not answer.devices
    plugin.update({name: UNHEALTHY if name in shared[:3] else HEALTHY for name in shared})
    allocatable(kubelet, A310, shared[3:])
    plugin.stop()


def test_preferred_allocation_and_pre_start_pass_through(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    wanted = pb.ContainerPreferredAllocationRequest(available_deviceIDs=FOUR, must_include_deviceIDs=FOUR[:1], allocation_size=2)
    answer = kubelet.stub(A910).GetPreferredAllocation(pb.PreferredAllocationRequest(container_requests=[wanted]))
    assert list(answer.container_responses[0].deviceIDs) == FOUR[:2]
    kubelet.stub(A910).PreStartContainer(pb.PreStartContainerRequest(devices_ids=FOUR[:1]))
    assert plugin.requests[0].container_requests[0] == wanted
    assert list(plugin.requests[1].devices_ids) == FOUR[:1]


@pytest.mark.parametrize(
    "code, message",
    [
        (grpc.StatusCode.UNKNOWN, "plugin doesn't have device nosuch-0"),
        (grpc.StatusCode.UNKNOWN, "get card list failed, error code: -8005"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "100% 字 \n second line"),
    ],
)
def test_errors_of_the_plugin_reach_the_kubelet_unchanged(kubelet, agent, ready, plugins, code, message):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    plugin.error = (code, message)
    for call, request in (
        ("Allocate", pb.AllocateRequest()),
        ("GetPreferredAllocation", pb.PreferredAllocationRequest()),
        ("PreStartContainer", pb.PreStartContainerRequest()),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            getattr(kubelet.stub(A910), call)(request, timeout=PATIENCE)
        assert (raised.value.code(), raised.value.details()) == (code, message)
    plugin.error = None
    kubelet.allocate(A910, "Ascend910-0")


def test_two_resources_do_not_wait_for_each_other(kubelet, agent, ready, plugins, spec):
    agent.start()
    slow = plugins()
    plugins(A310, {"Ascend310P-0": HEALTHY})
    allocatable(kubelet, A910, FOUR)
    allocatable(kubelet, A310, ["Ascend310P-0"])
    slow.goes_on.clear()
    pending = kubelet.stub(A910).Allocate.future(
        pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=["Ascend910-0"])])
    )
    wait_for(lambda: slow.requests)
    kubelet.allocate(A310, "Ascend310P-0")
    ready()
    allocatable(kubelet, A910, [])
    allocatable(kubelet, A310, [])
    assert not pending.done()
    slow.goes_on.set()
    assert [d.name for d in pending.result(PATIENCE).container_responses[0].cdi_devices] == ["huawei.com/npu=0"]


def test_a_call_the_kubelet_gives_up_leaves_nothing_behind(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    plugin.goes_on.clear()
    with pytest.raises(grpc.RpcError) as raised:
        kubelet.allocate(A910, "Ascend910-0", timeout=0.3)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    plugin.goes_on.set()
    kubelet.allocate(A910, "Ascend910-0")
    assert kubelet.allocatable(A910) == FOUR


# Deaths and restarts


def test_kubelet_restart(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    for _ in range(2):
        kubelet.stop()
        kubelet.lists.clear()
        kubelet.start()
        allocatable(kubelet, A910, FOUR)
    assert plugin.registrations == 1 and plugin.streams == 1
    kubelet.allocate(A910, "Ascend910-0")


def test_kubelet_socket_created_again_while_the_old_one_lives(kubelet, agent, ready, plugins):
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)
    other = Kubelet(agent.kubelet_dir).start()
    allocatable(other, A910, FOUR)
    other.allocate(A910, "Ascend910-0")
    other.stop()


def test_kubelet_away_for_long_then_list_changed_meanwhile(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    kubelet.stop()
    plugin.update({"Ascend910-1": HEALTHY})
    kubelet.start()
    allocatable(kubelet, A910, ["Ascend910-1"])
    assert plugin.registrations == 1


def test_kubelet_drops_only_the_stream(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    kubelet.client(A910).channel.close()
    wait_for(lambda: len(kubelet.registrations) == 2)
    allocatable(kubelet, A910, FOUR)
    assert plugin.registrations == 1


def test_kubelet_refuses_then_accepts(kubelet, agent, ready, plugins):
    kubelet.refuse = "not now"
    agent.start()
    plugin = plugins()
    wait_for(lambda: "not now" in agent.read_log())
    kubelet.refuse = None
    allocatable(kubelet, A910, FOUR)
    assert plugin.registrations == 1


def test_plugin_restart(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    plugin.stop()
    allocatable(kubelet, A910, [])
    plugin.devices = {"Ascend910-0": HEALTHY}
    plugin.start()
    allocatable(kubelet, A910, ["Ascend910-0"])
    kubelet.allocate(A910, "Ascend910-0")


def test_plugin_registers_again_without_ending_its_stream(kubelet, agent, ready, plugins):
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)
    newer = Plugin(agent.plugin_dir, devices={"Ascend910-7": HEALTHY})
    newer.endpoint = "newer.sock"
    newer.start()
    allocatable(kubelet, A910, ["Ascend910-7"])
    newer.stop()


def test_plugin_that_dies_for_good(kubelet, agent, ready, plugins):
    agent.start()
    dying = plugins()
    plugins(A310, {"Ascend310P-0": HEALTHY})
    allocatable(kubelet, A910, FOUR)
    allocatable(kubelet, A310, ["Ascend310P-0"])
    dying.stop()
    allocatable(kubelet, A910, [])
    wait_for(lambda: not os.path.exists(os.path.join(agent.kubelet_dir, "npuops-huawei.com_Ascend910.sock")))
    assert kubelet.allocatable(A310) == ["Ascend310P-0"]


def test_plugin_that_ends_its_stream_in_order(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    plugin.registers.clear()
    plugin.end_streams()
    allocatable(kubelet, A910, [])
    plugin.registers.set()
    allocatable(kubelet, A910, FOUR)
    assert plugin.registrations == 2


def test_connections_of_a_dead_plugins_endpoint_are_dropped(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(os.path.join(agent.kubelet_dir, kubelet.registrations[0].endpoint))
        peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        plugin.stop()
        peer.settimeout(PATIENCE)
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(4096):
                pass


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_agent_restart(kubelet, agent, ready, plugins, how):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    agent.process.send_signal(how)
    agent.process.wait(PATIENCE)
    allocatable(kubelet, A910, [])
    agent.start()
    allocatable(kubelet, A910, FOUR)
    assert plugin.registrations == 2
    kubelet.allocate(A910, "Ascend910-0")


def test_sigterm_leaves_no_socket_of_ours(kubelet, agent, ready, plugins):
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)
    assert agent.stop() == 0
    assert os.listdir(agent.kubelet_dir) == ["kubelet.sock"]
    assert "kubelet.sock" not in os.listdir(agent.plugin_dir)


def test_our_registration_socket_is_made_again(agent, ready, plugins):
    agent.start()
    path = os.path.join(agent.plugin_dir, "kubelet.sock")
    os.unlink(path)
    plugin = plugins()
    wait_for(lambda: plugin.streams == 1)
    assert os.stat(path).st_mode & 0o777 == 0o600


# Markers


def test_devices_are_unhealthy_while_the_driver_is_not_ready(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    ready()
    wait_for(lambda: kubelet.devices(A910) == dict.fromkeys(FOUR, UNHEALTHY))
    with pytest.raises(grpc.RpcError) as raised:
        kubelet.allocate(A910, "Ascend910-0")
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE and "not ready" in raised.value.details()
    assert not plugin.requests
    # back only where the plugin agrees
    plugin.update({**plugin.devices, "Ascend910-1": UNHEALTHY})
    ready("00000000-0000-0000-0000-000000000000")
    time.sleep(1)
    assert kubelet.allocatable(A910) == []
    ready(agent.boot_id)
    allocatable(kubelet, A910, ["Ascend910-0", "Ascend910-2", "Ascend910-3"])


def test_started_before_the_driver(kubelet, agent, plugins):
    agent.start()
    plugins()
    wait_for(lambda: kubelet.devices(A910) == dict.fromkeys(FOUR, UNHEALTHY))


# Hostile or broken peers

GARBAGE = [b"\x00", b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64]


def test_garbage_on_the_sockets(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    paths = [
        os.path.join(agent.plugin_dir, "kubelet.sock"),
        os.path.join(agent.kubelet_dir, "npuops-huawei.com_Ascend910.sock"),
    ]
    for path in paths:
        for data in GARBAGE:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                peer.settimeout(PATIENCE)
                try:
                    while peer.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
    assert kubelet.allocate(A910, "Ascend910-0").container_responses[0].cdi_devices
    assert plugin.registrations == 1 and len(kubelet.registrations) == 1


def test_registrations_that_make_no_sense_are_refused(kubelet, agent, ready, plugins):
    agent.start()
    plugins()
    allocatable(kubelet, A910, FOUR)
    good = {"version": "v1beta1", "endpoint": "Ascend910.sock", "resource_name": A910}
    with grpc.insecure_channel("unix:" + os.path.join(agent.plugin_dir, "kubelet.sock")) as channel:
        register = rpc.RegistrationStub(channel).Register
        for wrong in (
            {"version": "v1alpha1"},
            {"endpoint": "../kubelet/kubelet.sock"},
            {"endpoint": ""},
            {"endpoint": "nobody.sock"},
            {"resource_name": "cpu"},
            {"resource_name": "a/b/c"},
        ):
            with pytest.raises(grpc.RpcError):
                register(pb.RegisterRequest(**{**good, **wrong}), timeout=PATIENCE)
        raw = channel.unary_unary("/v1beta1.Registration/Register")
        with pytest.raises(grpc.RpcError):
            raw(b"\x0a\xff\xff\xff", timeout=PATIENCE)
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary("/v1beta1.Registration/Nothing")(b"", timeout=PATIENCE)
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert kubelet.allocatable(A910) == FOUR and len(kubelet.registrations) == 1


def test_answer_that_cannot_be_translated(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins()
    allocatable(kubelet, A910, FOUR)
    plugin.answer = lambda ids: pb.ContainerAllocateResponse(envs={"ASCEND_VISIBLE_DEVICES": "first"})
    with pytest.raises(grpc.RpcError) as raised:
        kubelet.allocate(A910, "Ascend910-0")
    assert raised.value.code() == grpc.StatusCode.INTERNAL and "'first'" in raised.value.details()


def test_plugin_that_sends_a_broken_list(kubelet, agent, ready, plugins):
    class Broken(Plugin):
        def _run(self):
            server = grpc.server(__import__("concurrent.futures").futures.ThreadPoolExecutor(4))
            handlers = {
                "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda request, context: b""),
                "ListAndWatch": grpc.unary_stream_rpc_method_handler(lambda request, context: iter([b"\x0a\x05ab"])),
            }
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers)])
            server.add_insecure_port("unix:" + self.socket)
            server.start()
            self._register()
            self._stopping.wait()
            server.stop(0)

    agent.start()
    plugins(A310, {"Ascend310P-0": HEALTHY})
    Broken(agent.plugin_dir).start()
    wait_for(lambda: "sent an invalid list" in agent.read_log())
    allocatable(kubelet, A310, ["Ascend310P-0"])
    assert A910 not in kubelet.lists


def test_a_kubelet_that_does_not_read_blocks_nobody(kubelet, agent, ready, plugins):
    agent.start()
    plugin = plugins(devices={"Ascend910-%d" % n: HEALTHY for n in range(2000)})
    wait_for(lambda: len(kubelet.allocatable(A910)) == 2000)
    endpoint = os.path.join(agent.kubelet_dir, kubelet.registrations[0].endpoint)
    with grpc.insecure_channel("unix:" + endpoint) as channel:
        slow = rpc.DevicePluginStub(channel).ListAndWatch(pb.Empty())
        next(slow)
        for n in range(30):
            plugin.update({**plugin.devices, "Ascend910-%d" % n: UNHEALTHY})
        wait_for(lambda: len(kubelet.allocatable(A910)) == 1970)
        last = next(message for message in slow if sum(d.health == HEALTHY for d in message.devices) == 1970)
        assert len(last.devices) == 2000
        slow.cancel()
    assert kubelet.allocate(A910, "Ascend910-1").container_responses
