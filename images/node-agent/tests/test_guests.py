# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What strangers can do to the agent through its port, and what it does when it gets no more files: real sockets."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import urllib.request

import pytest
from fakes import HEALTHY, free_port, wait_for
from test_wedge_watch import A910, Chips, marker, sample, some_probes

CROWD = 1100


@pytest.fixture
def chips(agent):
    return Chips(agent)


@pytest.fixture
def port(agent):
    agent.settings.update({"probe-interval": 2, "probe-timeout": 1.9})
    number = free_port()
    agent.settings["metrics-address"] = "127.0.0.1:%d" % number
    return number


@pytest.fixture
def crowd(port):
    """Connect ``CROWD`` times from an address of loopback, send the beginning of a request, and keep it all open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard > 3 * CROWD, "this test needs more open files: ulimit -Hn"
    resource.setrlimit(resource.RLIMIT_NOFILE, (3 * CROWD, hard))
    peers = []

    def connect(address, number=CROWD, first=b"GET /metrics HTTP/1.1\r\n"):
        for _ in range(number):
            peer = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(address, 0))
            peers.append(peer)
            with contextlib.suppress(OSError):  # thrown out already
                peer.sendall(first)
        return peers

    yield connect
    for peer in peers:
        peer.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def answers(port, path="/healthz"):
    """What a kubelet gets."""
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=10) as answer:
        return answer.read()


def open_files(agent):
    return len(os.listdir("/proc/%d/fd" % agent.process.pid))


def test_a_crowd_of_slow_connections_disturbs_no_probe(agent, chips, ready, kubelet, plugins, port, crowd):
    """With the 1,024 files that a process has by default, and no more to be had."""
    agent.file_limit = (1024, 1024)
    agent.start()
    plugins(devices={"Ascend910-0": HEALTHY})
    wait_for(lambda: kubelet.allocatable(A910))
    before = open_files(agent)
    peers = crowd("127.0.0.2")
    some_probes(chips, 5)
    assert answers(port) == b"ok\n" and answers(port, "/readyz") == b"ok\n"
    assert "probe failed" not in agent.read_log() and "without a result" not in agent.read_log()
    assert marker(agent, "driver-ready") and kubelet.allocatable(A910)
    assert sample(agent, "connections_refused_total") >= CROWD - 200
    # Those that were let in have their few seconds, and not one more.
    for peer in peers:
        peer.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b""
    wait_for(lambda: open_files(agent) <= before)


def test_who_holds_most_is_thrown_out_first(agent, ready, port, crowd):
    agent.start()
    wait_for(lambda: _listens(port))
    (patient,) = crowd("127.0.0.3", 1)
    crowd("127.0.0.2", 200)
    patient.sendall(b"\r\n")
    assert patient.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_a_peer_that_does_not_read_is_ended(agent, ready, port, crowd):
    """Its answer would fill the peer's buffer, and stay."""
    agent.start()
    wait_for(lambda: _listens(port))
    before = open_files(agent)
    crowd("127.0.0.2", 40, b"GET /metrics HTTP/1.1\r\n\r\n")
    wait_for(lambda: open_files(agent) <= before, "closing its files")


def _listens(port):
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) == 0


def no_files(agent):
    """From now on the agent can open nothing; returns the limits from before."""
    return resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (3, agent.file_limit[1]))


def test_no_file_to_be_had_is_no_verdict(agent, chips, ready, kubelet, plugins, port):
    agent.file_limit = (1024, 4096)
    agent.start()
    plugins(devices={"Ascend910-0": HEALTHY})
    wait_for(lambda: kubelet.allocatable(A910))
    some_probes(chips, 1)
    before = no_files(agent)
    wait_for(lambda: agent.read_log().count("without a result") >= 5)
    assert marker(agent, "driver-ready") and kubelet.allocatable(A910)
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, before)
    some_probes(chips, 1)
    wait_for(lambda: sample(agent, 'probes_total{result="undecided"}') >= 5)
    assert not sample(agent, 'probes_total{result="failed"}') and sample(agent, 'driver_state{state="ready"}') == 1


def test_a_marker_that_cannot_be_read_now_is_read_later(agent, chips, ready, kubelet, plugins, port):
    """Also when nothing about the file changes any more: what counts is what was read, not what was seen."""
    agent.file_limit = (1024, 4096)
    agent.start()
    plugins(devices={"Ascend910-0": HEALTHY})
    wait_for(lambda: kubelet.allocatable(A910))
    before = no_files(agent)
    ready(agent.boot_id)  # the same again, as another file
    wait_for(lambda: "using its last state" in agent.read_log())
    assert kubelet.allocatable(A910)  # it counts as it was
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, before)
    some_probes(chips, 3)
    assert kubelet.allocatable(A910) and "driver is not ready" not in agent.read_log()
    ready()
    wait_for(lambda: not kubelet.allocatable(A910))


def test_the_soft_limit_of_open_files_is_raised(agent):
    agent.file_limit = (256, 4096)
    agent.start()
    assert resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE) == (4096, 4096)


@pytest.mark.parametrize("text", ["[" * 60000, "{" * 100000, "\0", json.dumps({"boot_id": [1]})])
def test_a_marker_full_of_nonsense_is_none(agent, ready, port, text):
    with open(os.path.join(agent.run_dir, "driver-ready"), "w", encoding="utf-8") as stream:
        stream.write(text)
    agent.start()
    wait_for(lambda: _listens(port))
    wait_for(lambda: sample(agent, 'driver_state{state="absent"}') == 1)
