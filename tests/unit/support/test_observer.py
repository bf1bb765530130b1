# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observer finds what it has to find. It is silent on a good rollout, so each fault is shown to it once."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.parse

import pytest
import yaml

from support.lab.observer import LAST, LEASE, RECORD, SLOTS, STATE, Observer, Sight, left_behind, problems
from support.patience import PATIENCE


class Story:
    """A timeline, told in the order of its revisions."""

    def __init__(self):
        self.sights = []

    def node(self, name="a", boot="boot-1", step=None, cordoned=True, gone=False, uid="u", **record):
        metadata = {"uid": uid, "labels": {STATE: step} if step else {}, "annotations": {}}
        if step:
            metadata["annotations"][RECORD] = json.dumps({"step": step, "generation": 1, "boot_id": None, **record})
        item = {"metadata": metadata, "spec": {"unschedulable": True} if cordoned else {}, "status": {"nodeInfo": {"bootID": boot}}}
        self._add("node", name, item, gone)
        return self

    def lease(self, *holders):
        slots = {"max": 1, "halted": None, "holders": {name: {} for name in holders}}
        self._add("lease", LEASE, {"metadata": {"annotations": {SLOTS: json.dumps(slots)}}})
        return self

    def begin(self):
        """What was told so far was there before."""
        self.sights = [Sight(**{**vars(sight), "first": True}) for sight in self.sights]
        return self

    def _add(self, kind, name, item, gone=False):
        self.sights.append(Sight(len(self.sights) + 1, kind, name, item, gone=gone))


def before():
    return Story().node(cordoned=False).node("b", cordoned=False).lease().begin()


def maintained(story, name="a", boots=("boot-1", "boot-2")):
    """One maintenance as it should be."""
    old, new = boots
    story.lease(name).node(name, old, "cordon-required", False).node(name, old, "drain-required")
    story.node(name, old, "reboot-required", boot_id=old).node(name, new, "reboot-required", boot_id=old)
    story.node(name, new, "validation-required", boot_id=old).node(name, new, cordoned=False)
    return story.lease()


def found(story, max_parallel=1, reboots=None, **more):
    return problems(story.sights, max_parallel, {"a": 1} if reboots is None else reboots, **more)


def test_a_good_rollout_has_no_problem():
    story = maintained(maintained(before()), "b")
    assert found(story, reboots={"a": 1, "b": 1}) == []


def test_too_many_at_once():
    story = before().lease("a", "b").node("a", step="drain-required").node("b", step="cordon-required", cordoned=False)
    told = found(story, reboots={})
    assert any("2 nodes are out of service, 1 may be: a, b" in line for line in told)
    assert any("2 slots are taken" in line for line in told)
    assert found(story, 2, {}) == found(story, 0, {}) == []


def test_a_cordon_without_a_record_counts():
    story = before().lease("a").node("a", step="drain-required").node("b")
    assert any("2 nodes are out of service" in line for line in found(story, reboots={}))


def test_a_foreign_cordon_does_not_count_and_must_stay():
    story = Story().node("a", cordoned=False).node("b").lease().begin()
    maintained(story)
    assert found(story) == []
    story.node("b", cordoned=False)
    assert any("b is uncordoned, and it was somebody else's cordon" in line for line in found(story))


@pytest.mark.parametrize("times", [0, 2])
def test_not_one_reboot(times):
    story = maintained(before())
    assert found(story, reboots={"a": times}) == [f"a rebooted 1 times, not {times}"]
    assert found(maintained(story, boots=("boot-2", "boot-3"))) == ["a rebooted 2 times, not 1"]


def test_a_reboot_without_intent():
    story = before().lease("a").node("a", step="drain-required").node("a", "boot-2", "drain-required")
    assert any("a has rebooted without an intent for the boot boot-1" in line for line in found(story))
    assert found(story, unasked=["a"]) == []


def test_a_reboot_while_schedulable():
    story = before().lease("a").node("a", "boot-1", "reboot-required", False, boot_id="boot-1")
    story.node("a", "boot-2", "reboot-required", False, boot_id="boot-1")
    assert any("while pods could be scheduled" in line for line in found(story))


def test_record_without_slot():
    assert any("a has a record and no slot" in line for line in found(before().node(step="cordon-required"), reboots={}))
    late = before().lease("a").node(step="cordon-required").lease()
    assert any("a has a record and no slot" in line for line in found(late, reboots={}))


def test_label_and_record_disagree():
    story = before().lease("a").node(step="drain-required")
    story.sights[-1].object["metadata"]["labels"][STATE] = "reboot-required"
    assert any("says reboot-required in its label and drain-required" in line for line in found(story, reboots={}))


def test_a_generation_that_falls():
    story = before().lease("a").node(step="drain-required", generation=5).node(step="drain-required", generation=4)
    assert any("generation of a falls from 5 to 4" in line for line in found(story, reboots={}))
    again = before().lease("a").node(step="drain-required", generation=5).node(step="drain-required", generation=1, uid="v")
    assert found(again, reboots={}) == []


def test_left_behind():
    story = Story().node(step="drain-required").lease("a")
    told = left_behind(story.sights[:1], story.sights[1])
    assert len(told) == 3 and "annotation" in told[1] and "the Lease names a" in told[2]
    clean = maintained(before())
    clean.sights[-2].object["metadata"]["annotations"][LAST] = "{}"
    assert left_behind(clean.sights[-2:-1], clean.sights[-1]) == []


class Api:
    """Lists and watches as an API server serves them: `history` may be forgotten (410), and a watch may be cut."""

    def __init__(self):
        self.revision, self.history, self.oldest, self.cut = 10, [], 0, 0
        self.news = threading.Condition()
        self.nodes = {"a": self._node("a", 5)}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _api_handler(self))
        self.server.daemon_threads = True

    @staticmethod
    def _node(name, revision):
        return {
            "metadata": {"name": name, "uid": "u", "resourceVersion": str(revision)},
            "spec": {},
            "status": {"nodeInfo": {"bootID": "boot-1"}},
        }

    def change(self, name="a", told=True):
        with self.news:
            self.revision += 1
            self.nodes[name] = self._node(name, self.revision)
            if told:
                self.history.append((self.revision, {"type": "MODIFIED", "object": self.nodes[name]}))
            self.news.notify_all()

    def break_watches(self):
        with self.news:
            self.cut += 1
            self.news.notify_all()


def _api_handler(api):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query))
            nodes = url.path.endswith("/nodes")
            if "watch" in query:
                self._watch(int(query["resourceVersion"]), nodes)
                return
            with api.news:
                content = json.dumps(
                    {"metadata": {"resourceVersion": str(api.revision)}, "items": list(api.nodes.values()) if nodes else []}
                ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _watch(self, revision, nodes):
            self.close_connection = True
            if revision < api.oldest:
                self.send_error(410)
                return
            self.send_response(200)
            self.end_headers()
            cut = api.cut
            while True:
                with api.news:
                    api.news.wait_for(lambda: api.cut > cut or (nodes and api.revision > revision))
                    events = [event for number, event in api.history if number > revision and nodes]
                    revision, over = api.revision, api.cut > cut
                if over:
                    return  # in the middle of it, without what has happened
                for event in events:
                    self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()

        def log_message(self, *_args):
            pass

    return Handler


@pytest.fixture
def api():
    one = Api()
    threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True).start()
    yield one
    one.break_watches()
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def kubeconfig(api, tmp_path):
    file = tmp_path / "kubeconfig"
    address = "http://127.0.0.1:%d" % api.server.server_address[1]
    file.write_text(yaml.safe_dump({"clusters": [{"cluster": {"server": address}}], "users": [{"user": {}}]}), encoding="utf-8")
    return file


def test_it_sees_every_state(api, kubeconfig):
    with Observer(kubeconfig, "ns") as observer:
        for number in range(20):
            api.change()
            if number == 10:
                api.break_watches()  # it goes on where it was
        observer.wait(lambda sight: sight.revision == 30, PATIENCE, "the last change")
    assert [sight.revision for sight in observer.timeline] == [5, *range(11, 31)]
    assert observer.problems(1, {}) == []


def test_forgotten_history_is_a_gap(api, kubeconfig):
    with Observer(kubeconfig, "ns") as observer:
        api.change()
        observer.wait(lambda sight: sight.revision == 11, PATIENCE, "the change")
        api.oldest = 1000
        api.break_watches()
        api.change()
    assert any("gap" in line for line in observer.problems(1, {}))


def test_what_happens_after_its_end_is_not_waited_for(api, kubeconfig):
    with Observer(kubeconfig, "ns") as observer:
        api.change()
    api.change()
    observer.catch_up(timeout=0)
    assert observer.problems(1, {}) == []
    assert max(sight.revision for sight in observer.timeline) == 11


def test_what_the_watch_does_not_tell_is_a_gap(api, kubeconfig):
    observer = Observer(kubeconfig, "ns")
    with observer:
        api.change("b", told=False)
        observer.catch_up(timeout=1)
    assert any("the watch never told of node b at revision 11" in line for line in observer.problems(1, {}))
