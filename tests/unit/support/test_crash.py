# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The crash proof is only as good as its tools: the gate, the API proxy, counting_ssh, and the kill."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import yaml

from support.crash.api_proxy import ApiProxy
from support.crash.gate import MARK, Controller, Fate, Gate, GateSocket, describe_payload, describe_request, kind
from support.kube import api as kube_api
from support.paths import SUPPORT
from support.patience import PATIENCE


class Upstream:
    """An API server that notes what reaches it. Its watch sends one event per item of `feed` and ends after `None`."""

    def __init__(self):
        self.got: list[str] = []
        self.feed: list[dict | None] = []
        self.fed = threading.Condition()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _upstream_handler(self))
        self.server.daemon_threads = True

    def kubeconfig(self, directory: pathlib.Path) -> pathlib.Path:
        file = directory / "kubeconfig"
        file.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"cluster": {"server": "http://127.0.0.1:%d" % self.server.server_address[1]}}],
                    "users": [{"user": {"token": "sesame"}}],
                }
            ),
            encoding="utf-8",
        )
        return file

    def send(self, item: dict | None) -> None:
        with self.fed:
            self.feed.append(item)
            self.fed.notify_all()


def _upstream_handler(upstream):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            upstream.got.append(f"{self.command} {self.path} {body.decode()}".strip())
            if self.headers["Authorization"] != "Bearer sesame":
                self.send_error(401)
            elif "watch=1" in self.path:
                self._watch()
            else:
                content = json.dumps({"you": self.headers.get("Content-Type"), "sent": body.decode()}).encode()
                self.send_response(201 if self.command == "POST" else 200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

        def _watch(self):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            sent = 0
            while True:
                with upstream.fed:
                    upstream.fed.wait_for(lambda: len(upstream.feed) > sent)
                    item = upstream.feed[sent]
                sent += 1
                if item is None:
                    self.wfile.write(b"0\r\n\r\n")
                    return
                line = json.dumps(item).encode() + b"\n"
                half = len(line) // 2
                for part in (line[:half], line[half:]):  # an event does not come in one piece
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    self.wfile.flush()

        def log_message(self, *_args):
            pass

    return Handler


@pytest.fixture
def upstream():
    one = Upstream()
    threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True).start()
    yield one
    one.send(None)
    one.server.shutdown()
    one.server.server_close()


def through(proxy) -> kube_api.KubeApi:
    return kube_api.KubeApi(proxy.kubeconfig)


def test_it_passes_everything_on_and_counts_what_changes_something(upstream, tmp_path):
    gate = Gate()
    with ApiProxy(upstream.kubeconfig(tmp_path), tmp_path, gate) as proxy:
        api = through(proxy)
        assert api.get("/api/v1/nodes?limit=5")["sent"] == ""
        assert api.patch("/api/v1/nodes/a", {"spec": {"unschedulable": True}}) == {
            "you": "application/merge-patch+json",
            "sent": '{"spec": {"unschedulable": true}}',
        }
        api.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}})
        api.request("POST", "/api/v1/namespaces/x/pods/p/eviction", {"deleteOptions": {"dryRun": ["All"]}})
        api.request("PATCH", "/api/v1/nodes/a?dryRun=All", {})
        api.request("POST", "/api/v1/namespaces/x/pods/p/eviction", {"deleteOptions": {"gracePeriodSeconds": 1}})
        api.request("DELETE", "/api/v1/namespaces/x/pods/p")
    assert [(call.number, call.what) for call in gate.calls] == [
        (1, "PATCH v1/nodes/a unschedulable=true"),
        (2, "POST eviction"),
        (3, "DELETE v1/namespaces/x/pods/p"),
    ]
    assert len(upstream.got) == 7 and upstream.got[0] == "GET /api/v1/nodes?limit=5"


def test_a_watch_comes_through_as_it_happens(upstream, tmp_path):
    with ApiProxy(upstream.kubeconfig(tmp_path), tmp_path, Gate()) as proxy:
        events = iter(kube_api.Watch(kube_api.Credentials(proxy.kubeconfig), "/api/v1/nodes", "7"))
        for number in range(3):  # each arrives before the next one exists
            upstream.send({"type": "ADDED", "object": {"number": number}})
            assert next(events)["object"]["number"] == number
        upstream.send(None)
        assert list(events) == []
    assert "resourceVersion=7" in upstream.got[0]


@pytest.mark.parametrize("fate", [Fate.KILL_BEFORE, Fate.KILL_AFTER])
def test_the_kill_is_at_the_call(upstream, tmp_path, fate):
    """Before: the API never hears of it. After: the API has answered, the controller is dead before it hears it."""
    seen = []
    gate = Gate(2, fate, kill=lambda: seen.append(list(upstream.got)))
    with ApiProxy(upstream.kubeconfig(tmp_path), tmp_path, gate) as proxy:
        api = through(proxy)
        api.patch("/1", {})
        with pytest.raises((OSError, http.client.HTTPException)):
            api.patch("/2", {})
        with pytest.raises((OSError, http.client.HTTPException)):
            api.get("/3")
    reached = ["PATCH /1 {}"] + ([] if fate is Fate.KILL_BEFORE else ["PATCH /2 {}"])
    assert seen == [reached] and upstream.got == reached
    assert gate.reached and gate.dead


def test_a_call_is_found_by_its_words(upstream, tmp_path):
    gate = Gate("^PATCH 2$", Fate.KILL_AFTER)
    with ApiProxy(upstream.kubeconfig(tmp_path), tmp_path, gate) as proxy:
        through(proxy).patch("/api/1", {})
        assert not gate.reached
        with pytest.raises((OSError, http.client.HTTPException)):
            through(proxy).patch("/api/2", {})
    assert gate.reached and gate.at == 2 and upstream.got == ["PATCH /api/1 {}", "PATCH /api/2 {}"]


def test_the_kind_of_a_call_is_the_same_whoever_else_works():
    gate = Gate("slots:NODE", Fate.DARK_AFTER, node="npu-b", dark=0)
    for words in ("PUT slots:npu-a", "PUT slots:npu-a,npu-b halted", "PUT slots:none"):
        gate.before("api", words)
    assert gate.at == 2 and gate.calls[1].what == "PUT slots:npu-a,NODE halted"
    assert [kind(call.what) for call in gate.calls] == ["PUT slots:others", "PUT slots:NODE", "PUT slots:others"]
    assert kind("PATCH v1/nodes/NODE maintenance:reboot-required+boot/5") == "PATCH v1/nodes/NODE maintenance:reboot-required+boot"
    assert kind("PATCH v1/nodes/NODE last-maintenance:uncordon-required+boot/9 unschedulable=-") == (
        "PATCH v1/nodes/NODE last-maintenance:uncordon-required+boot"
    )
    assert len({kind("PATCH v1/nodes/NODE reboot-required=%s maintenance=-" % value) for value in ("-", "true")}) == 1
    assert kind("npu_trial_boot rebooted") == "npu_trial_boot rebooted"


@pytest.mark.parametrize("fate", [Fate.DARK_BEFORE, Fate.DARK_AFTER])
def test_dark_breaks_watches_and_ends(upstream, tmp_path, fate):
    gate = Gate(1, fate, dark=PATIENCE)
    with ApiProxy(upstream.kubeconfig(tmp_path), tmp_path, gate) as proxy:
        events = iter(kube_api.Watch(kube_api.Credentials(proxy.kubeconfig), "/w", "1"))
        upstream.send({"type": "ADDED", "object": {}})
        next(events)
        with pytest.raises((OSError, http.client.HTTPException)):
            through(proxy).patch("/1", {})
        with pytest.raises(OSError):
            next(events)
        assert upstream.got[1:] == ([] if fate is Fate.DARK_BEFORE else ["PATCH /1 {}"])
        with pytest.raises((OSError, http.client.HTTPException)):
            through(proxy).get("/x")
        assert gate.dark  # so this was no accident of its end
        gate.light()
        assert through(proxy).get("/2")["sent"] == ""
    assert "GET /x" not in upstream.got


def test_a_call_is_named_the_same_in_every_run():
    record = json.dumps(
        {
            "run": "r1",
            "step": "reboot-required",
            "boot_id": "b",
            "heartbeat": "2026-01-01T00:00:00Z",
            "times": {"cordon-required": "2026-01-01T00:00:00Z", "reboot-required": "2026-01-01T00:01:00Z"},
        }
    )
    body = {
        "metadata": {
            "resourceVersion": "5",
            "labels": {"npu.openfuyao.com/driver-upgrade-state": "reboot-required"},
            "annotations": {"npuops.ascend/maintenance": record, "npu.openfuyao.com/approve-reboot": None},
        },
        "spec": {"unschedulable": None},
    }
    assert describe_request("PATCH", "/api/v1/nodes/a", body) == (
        "PATCH v1/nodes/a driver-upgrade-state=reboot-required approve-reboot=- maintenance:reboot-required+boot/2 unschedulable=-"
    )
    slots = json.dumps({"max": 1, "halted": None, "holders": {"a": {"run": "r"}}})
    lease = {"metadata": {"annotations": {"npuops.ascend/slots": slots}}}
    assert describe_request("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", lease).endswith("leases/l slots:a")


FAKE_SSH = '#!/bin/sh\nfor word; do last=$word; done\nexec sh -c "$last"\n'


@pytest.fixture
def fake_ssh(tmp_path, monkeypatch):
    """An ssh whose hosts are this machine."""
    program = tmp_path / "ssh"
    program.write_text(FAKE_SSH, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("NPUOPS_TEST_SSH", str(program))
    return program


def run_ssh(environment, script, payload):
    command = [str(SUPPORT / "crash" / "counting_ssh"), "-C", "-o", "ControlMaster=auto", "-p", "22", "root@10.0.0.1", script]
    return subprocess.run(
        command, input=payload, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=PATIENCE
    )


PAYLOAD = "main(module_fqn='ansible_collections.npuops.ascend.plugins.modules.npu_trial_boot', params='{\"state\": \"rebooted\"}')"


@pytest.mark.parametrize("fate", [Fate.KILL_BEFORE, Fate.KILL_AFTER])
def test_ssh_dies_at_the_call(fake_ssh, tmp_path, fate):
    gate = Gate(2, fate)
    with GateSocket(gate, tmp_path) as ssh:
        first = run_ssh(ssh.environment, f"cat > {tmp_path}/one; echo done; exit 3", PAYLOAD)
        assert (first.returncode, first.stdout) == (3, "done\n") and (tmp_path / "one").read_text() == PAYLOAD
        second = run_ssh(ssh.environment, f"cat > {tmp_path}/two", PAYLOAD)
        third = run_ssh(ssh.environment, f"cat > {tmp_path}/three", PAYLOAD)
    assert (second.returncode, third.returncode) == (255, 255)
    assert (tmp_path / "two").exists() == (fate is Fate.KILL_AFTER)
    assert not (tmp_path / "three").exists()
    assert [(call.target, call.what) for call in gate.calls] == [("10.0.0.1", "npu_trial_boot rebooted")] * 2


def test_a_lost_host_is_not_reached(fake_ssh, tmp_path):
    gate = Gate()
    with GateSocket(gate, tmp_path) as ssh:
        ssh.lost.add("10.0.0.1")
        result = run_ssh(ssh.environment, f"touch {tmp_path}/there", PAYLOAD)
        assert result.returncode == 255 and "timed out" in result.stderr and gate.calls == []
        ssh.lost.clear()
        assert run_ssh(ssh.environment, f"touch {tmp_path}/there", PAYLOAD).returncode == 0
    assert (tmp_path / "there").exists()


def test_the_masters_own_commands_are_no_calls(fake_ssh, tmp_path):
    gate = Gate()
    with GateSocket(gate, tmp_path) as ssh:
        command = [str(SUPPORT / "crash" / "counting_ssh"), "-O", "check", "10.0.0.1"]
        subprocess.run(
            command,
            env={**os.environ, **ssh.environment},
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=PATIENCE,
            capture_output=True,
        )
    assert gate.calls == []


def test_ansible_s_own_payloads_are_understood(fake_ssh, tmp_path):
    """Through the real ansible: a module that looks is no call, one that may change something is."""
    gate = Gate()
    with GateSocket(gate, tmp_path) as ssh:
        for module, arguments in (("ansible.builtin.ping", ""), ("ansible.builtin.file", f"path={tmp_path}/made state=touch")):
            result = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "ansible",
                    "adhoc",
                    "all",
                    "-i",
                    "10.0.0.1,",
                    "-m",
                    module,
                    "-a",
                    arguments,
                    "-e",
                    f"ansible_python_interpreter={sys.executable}",
                ],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ssh.environment, "ANSIBLE_PIPELINING": "1", "ANSIBLE_HOST_KEY_CHECKING": "0"},
            )
            assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "made").exists()
    assert [(call.target, call.what) for call in gate.calls] == [("10.0.0.1", "file touch")]


def test_an_unknown_program_counts():
    assert describe_payload(b"#!/bin/sh\nreboot\n") == ("unknown program", True)
    assert describe_payload(PAYLOAD.replace("rebooted", "view").encode()) == ("npu_trial_boot view", False)


DAUGHTERS = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        break
print("up", flush=True)
time.sleep(600)
"""


def test_a_kill_leaves_no_process(tmp_path):
    """Also not one that left its process group and session, as Ansible's workers and SSH's masters do."""
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        controller = Controller([sys.executable, "-c", DAUGHTERS], tmp_path / "log", dict(os.environ))
        end = time.monotonic() + PATIENCE
        while controller.text.count("up") < 3 or len(controller.processes()) < 5:
            assert time.monotonic() < end, controller.text
            time.sleep(0.02)
        controller.kill()
        assert controller.processes() == [] and not controller.running
        assert controller.wait(PATIENCE) == -signal.SIGKILL
        assert bystander.poll() is None and MARK not in os.environ
    finally:
        bystander.kill()
        bystander.wait()


def test_the_sockets_are_gone(upstream, tmp_path):
    with ApiProxy(upstream.kubeconfig(tmp_path), tmp_path, Gate()) as proxy:
        port = kube_api.Credentials(proxy.kubeconfig).port
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
