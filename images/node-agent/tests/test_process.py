# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings, stopping and starting of the process as a whole."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from fakes import HERE, PATIENCE, Kubelet, free_port, wait_for

from npu_node_agent import config
from npu_node_agent.bridge import endpoint_path


def test_flag_wins_over_variable_over_default():
    environment = {"NPU_AGENT_PROBE_INTERVAL": "90", "NPU_AGENT_PROBE_TIMEOUT": "20"}
    settings = config.parse(["--probe-timeout", "10"], environment)
    assert (settings.probe_interval, settings.probe_timeout, settings.probe_failures) == (90, 10, 3)
    assert settings.run_dir == "/run/npuops" and settings.metrics_address == ("", 9461)
    assert config.parse(["--metrics-address", "[::]:9"], {}).metrics_address == ("::", 9)
    assert not config.parse([], {}).device_taints and config.parse([], {"NPU_AGENT_DEVICE_TAINTS": "true"}).device_taints


@pytest.mark.parametrize(
    "arguments, environment",
    [
        (["--probe-interval", "0"], {}),
        (["--probe-failures", "x"], {}),
        (["--metrics-address", "9461"], {}),
        (["--log-level", "loud"], {}),
        (["--probe-timeout", "60"], {}),
        ([], {"NPU_AGENT_DEVICE_TAINTS": "yes"}),
        (["--no-such-flag"], {}),
        ([], {"NPU_AGENT_PROBE_FAILURES": "-1"}),
    ],
)
def test_wrong_settings_are_refused(arguments, environment, capsys):
    with pytest.raises(SystemExit) as raised:
        config.parse(arguments, environment)
    assert raised.value.code == 2 and "error" in capsys.readouterr().err


def test_log_lines_are_json(agent, ready):
    agent.start()
    assert agent.stop() == 0
    lines = [json.loads(line) for line in agent.read_log().splitlines()]
    assert lines[0]["msg"].endswith("is starting") and lines[-1]["msg"] == "node agent has stopped"
    assert all({"time", "level", "logger", "msg"} <= set(line) for line in lines)


def test_stops_quickly_while_a_probe_hangs(agent, ready):
    tools = os.path.join(agent.root, "driver", "tools")
    os.makedirs(tools)
    started = os.path.join(agent.root, "started")
    with open(os.path.join(tools, "npu-smi"), "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\ntouch %s\nexec sleep 3600\n" % started)
    os.chmod(os.path.join(tools, "npu-smi"), 0o755)
    agent.start()
    wait_for(lambda: os.path.exists(started))
    # It does not wait for the probe, which would take an hour.
    assert agent.stop() == 0


def _listens(port):
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) == 0


def test_pages_on_all_addresses(agent):
    """The kubelet asks for them at the address of the pod, which has either family. Some machines have no IPv6."""
    port = free_port()
    agent.settings["metrics-address"] = ":%d" % port
    agent.start()
    wait_for(lambda: _listens(port))
    with open("/proc/net/if_inet6", encoding="ascii") if os.path.exists("/proc/net/if_inet6") else io.StringIO() as stream:
        has_ipv6 = bool(stream.read())
    with socket.socket(socket.AF_INET6 if has_ipv6 else socket.AF_INET) as peer:
        assert peer.connect_ex(("::1" if has_ipv6 else "127.0.0.1", port)) == 0


def test_pages(agent):
    port = free_port()
    agent.settings["metrics-address"] = "127.0.0.1:%d" % port
    agent.start()
    base = "http://127.0.0.1:%d" % port
    wait_for(lambda: _listens(port))
    with urllib.request.urlopen(base + "/healthz", timeout=PATIENCE) as answer:
        assert answer.read() == b"ok\n"
    with urllib.request.urlopen(base + "/metrics", timeout=PATIENCE) as answer:
        assert b"npuops_node_agent_driver_state" in answer.read()
    for request, status in ((base + "/other", 404), (urllib.request.Request(base + "/metrics", b"x"), 405)):
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=PATIENCE)
        assert raised.value.code == status
        raised.value.close()
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(b"\xff" * 100000)
    with urllib.request.urlopen(base + "/healthz", timeout=PATIENCE) as answer:
        assert answer.read() == b"ok\n"


@pytest.fixture
def readiness(agent):
    """Whether the agent says that it is ready; waits until it says anything."""
    port = free_port()
    agent.settings["metrics-address"] = "127.0.0.1:%d" % port

    def is_ready():
        wait_for(lambda: _listens(port))
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % port, timeout=PATIENCE) as answer:
                return answer.read() == b"ok\n"
        except urllib.error.HTTPError as error:
            error.close()
            assert error.code == 503
            return False

    return is_ready


def test_ready_when_the_kubelet_has_the_devices_again(agent, ready, plugins, readiness):
    """An agent that starts beside a running plugin is not ready before the kubelet got the plugin's devices."""
    plugin = plugins()
    wait_for(lambda: plugin.refusals)
    agent.start()
    wait_for(lambda: plugin.streams == 1)
    assert not readiness()
    kubelet = Kubelet(agent.kubelet_dir).start()
    wait_for(readiness)
    # ready means sent; the kubelet reads it a moment later
    wait_for(lambda: kubelet.allocatable(plugin.resource))
    kubelet.stop()


def test_ready_when_a_plugin_is_back_that_restarts_with_the_agent(agent, ready, kubelet, plugins, readiness):
    """It has no socket when the agent starts, but the agent remembers the plugin."""
    plugin = plugins()
    agent.start()
    wait_for(lambda: kubelet.allocatable(plugin.resource))
    agent.stop()
    plugin.stop()
    agent.start()
    assert not readiness()
    plugin.start()
    wait_for(readiness)
    # ready means sent; the kubelet reads it a moment later
    wait_for(lambda: kubelet.allocatable(plugin.resource))


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", "\udcff"])
def test_a_memory_that_cannot_be_read_holds_nothing_up(agent, ready, readiness, text):
    with open(os.path.join(agent.plugin_dir, "npuops-offered.json"), "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
    agent.start()
    assert readiness()


def test_the_image_has_what_is_imported():
    """The files of the collection that the Containerfile copies are those the agent loads, each in its package."""
    code = (
        "import sys, npu_node_agent.main\nfor name, module in sys.modules.items():\n    hasattr(module, '__path__') or print(name)"
    )
    path = os.pathsep.join(sys.path)
    loaded = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True
    ).stdout.split()
    prefix = "ansible_collections.npuops.ascend."
    with open(os.path.join(os.path.dirname(HERE), "Containerfile"), encoding="utf-8") as stream:
        copies = re.findall(r"^COPY (plugins/.+) (\S+)/$", stream.read().replace("\\\n", " "), re.MULTILINE)
    copied = [name for names, _target in copies for name in names.split()]
    assert all(os.path.dirname(name) == target[len(prefix) :] for names, target in copies for name in names.split())
    assert sorted(copied) == sorted(name[len(prefix) :].replace(".", "/") + ".py" for name in loaded if name.startswith(prefix))


def test_names_of_sockets_fit_into_an_address():
    assert endpoint_path("/d", "huawei.com/Ascend310P-2c.1cpu") == "/d/npuops-huawei.com_Ascend310P-2c.1cpu.sock"
    directory = "/var/lib/kubelet/device-plugins"
    assert endpoint_path(directory, "huawei.com/Ascend910-12c.3cpu.32g").endswith("/npuops-huawei.com_Ascend910-12c.3cpu.32g.sock")
    long = [endpoint_path(directory, "huawei.com/" + name * 60) for name in "ab"]
    assert long[0] != long[1] and all(len(path) <= 107 for path in long)
