# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.api_watch import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock

from support.kube.stub import ApiServer

PODS = "/api/v1/pods"
FORBIDDEN = 'pods is forbidden: User "npu" cannot watch resource "pods" in API group "" at the cluster scope'
LONG = 60  # seconds, which pass only if no event is seen


class Watched(ApiServer):
    """Lists no pods, at ``version``; ``asked``: the queries of watches; ``send``: makes them report an event; ``flood``: one without
    end; ``frozen``: not even the answer begins; ``open``: the connection does not end after an event; ``at_once``: the event comes with the
    headers."""

    def __init__(self):
        super().__init__()
        self.version, self.asked, self.send = "7", [], threading.Event()
        self.flood = self.frozen = self.open = self.at_once = False
        self.on_watch = self._watch

    def answer(self, method, path, query, body):
        if path == PODS and "watch" not in query:
            return 200, {"metadata": {"resourceVersion": self.version}, "items": []}
        status, answer = super().answer(method, path, query, body)
        return status, dict(answer, details={"retryAfterSeconds": 30}) if status == 429 else answer

    def _watch(self, handler, query):
        self.asked.append(query)
        if self.faults:
            return False
        if self.frozen:
            self.send.wait(2 * LONG)
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        if not self.at_once:
            handler.wfile.flush()
        self.send.wait(2 * LONG)
        with contextlib.suppress(OSError):  # the client has ended it
            while self.flood:
                handler.wfile.write(b"2\r\n{}\r\n")
            handler.wfile.write(b"2\r\n{}\r\n" + (b"" if self.open else b"0\r\n\r\n"))
            handler.wfile.flush()
            self.over.wait(2 * LONG if self.open else 0)
        return True


class Slept(Clock):
    def __init__(self):
        super().__init__()
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)


@pytest.fixture
def server():
    with Watched() as made:
        yield made
        made.send.set()


@pytest.fixture
def watch(server):
    cluster = kube_client.connect({"host": server.address, "api_key": "token"})
    clock = Slept()
    made = Watch(cluster, clock, PODS, field_selector="spec.nodeName=a")
    made.clock, made.slept = clock, clock.slept
    yield made
    made.end()


def test_a_change_ends_the_wait(server, watch):
    assert watch.list() == []
    threading.Timer(0.2, server.send.set).start()
    assert watch.wait(LONG, 1, LONG) is True
    assert watch.slept == [1, 0]
    assert [(asked["resourceVersion"], asked["fieldSelector"]) for asked in server.asked] == [("7", "spec.nodeName=a")]


def test_one_that_came_in_the_first_seconds_is_not_missed(server, watch):
    watch.list()
    watch.clock.sleep = lambda _seconds: server.send.set()
    assert watch.wait(LONG, 1, LONG) is True


@pytest.mark.parametrize("at_once", [True, False])
def test_an_event_is_seen_on_a_connection_that_stays_open(server, watch, at_once):
    """Also one that a proxy sends together with the headers: then it has left the socket when the wait begins."""
    server.open, server.at_once = True, at_once
    if at_once:
        server.send.set()
    else:
        threading.Timer(0.2, server.send.set).start()
    watch.list()
    assert watch.wait(LONG, 0, LONG) is True
    assert len(server.asked) == 1


def test_what_was_reported_from_a_version_is_not_asked_again(server, watch):
    """As where the object has not changed for longer than the server's history: each watch would end at once with an error."""
    server.send.set()
    watch.read("7")
    assert [watch.wait(3, 1, LONG) for _wait in range(4)] == [True] * 4
    assert (watch.slept, len(server.asked)) == ([1, 0, 3, 3, 3], 1)
    watch.read("9")
    watch.wait(3, 1, LONG)
    assert len(server.asked) == 2


def wait_where_all_is_reported_at_once(server, watch, times, spread=0):
    server.at_once = True
    server.send.set()
    for version in range(times):
        server.version = str(version)
        watch.list()
        assert watch.wait(3, 1, LONG, spread) is True


def test_after_a_watch_that_reports_at_once_it_polls_once(server, watch):
    """As where the server ends all watches, or the objects change all the time."""
    wait_where_all_is_reported_at_once(server, watch, 4)
    assert watch.slept == [1, 0, 3, 1, 0, 3]
    assert len(server.asked) == 2


def test_a_busy_server_does_not_hold_up_who_can_do_without(server, watch, monkeypatch):
    slept = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", slept.append)
    server.faults["GET", PODS] = 429, "too many requests"
    watch.list()
    assert watch.wait(3, 1, LONG) is True
    assert (slept, watch.slept, len(server.asked)) == ([], [3], 1)


def test_without_a_change_the_connection_remains(server, watch):
    watch.list()
    assert [watch.wait(LONG, 0, 0.05) for _wait in range(3)] == [False, False, False]
    assert len(server.asked) == 1
    server.send.set()
    assert watch.wait(LONG, 0, LONG) is True


def test_the_next_watch_begins_at_what_was_read_last(server, watch):
    watch.list()
    watch.wait(LONG, 0, 0.05)
    watch.read("9")
    watch.wait(LONG, 0, 0.05)
    server.version = "11"
    watch.list()
    watch.wait(LONG, 0, 0.05)
    assert [asked["resourceVersion"] for asked in server.asked] == ["7", "9", "11"]


def test_an_account_that_may_not_watch_polls(server, watch):
    server.faults["GET", PODS] = 403, FORBIDDEN
    for _wait in range(2):
        watch.list()
        assert watch.wait(3, 1, LONG) is True
    assert watch.slept == [3, 3]
    assert len(server.asked) == 1  # it does not ask for it again


@pytest.mark.parametrize("fault", [(500, "etcdserver: leader changed"), (410, "too old resource version")])
def test_a_watch_that_fails_is_tried_again(server, watch, fault):
    server.faults["GET", PODS] = fault
    watch.list()
    assert watch.wait(3, 1, LONG) is True
    server.faults.clear()
    threading.Timer(0.2, server.send.set).start()
    assert watch.wait(LONG, 0, LONG) is True
    assert watch.slept == [3, 0, 0]


def test_behind_a_proxy_that_holds_watches_back_it_polls_before_long(server, watch, monkeypatch):
    # The client of Kubernetes 24 takes no limits but whole seconds.
    monkeypatch.setattr(kube_client, "_OPEN_SECONDS", 1)
    server.frozen = True
    for _wait in range(5):
        watch.list()
        assert watch.wait(3, 1, LONG) is True
    assert watch.slept == [3] * 5
    assert len(server.asked) == 3


def test_what_was_not_read_is_not_watched(server, watch):
    assert watch.wait(3, 1, LONG) is True
    assert (watch.slept, server.asked) == ([3], [])


def test_an_event_without_end_is_not_read(server, watch):
    server.flood = True
    watch.list()
    server.send.set()
    assert watch.wait(LONG, 0, LONG) is True


def test_those_who_wait_for_the_same_do_not_go_on_together(server, watch):
    wait_where_all_is_reported_at_once(server, watch, 3, spread=5)
    (_least, first, _pause, _least, second) = watch.slept
    assert first != second and 0 <= first <= 5 and 0 <= second <= 5
