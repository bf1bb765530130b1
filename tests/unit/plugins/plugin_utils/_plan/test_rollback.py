# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_DIGEST, OLD_RELEASE, host, release
from support.fleet.planning import (
    backward,
    make,
    nodes_of,
    only,
    record,
    under_way,
)


@pytest.mark.parametrize("step", ["drain-required", "validation-required"])
def test_a_rollback_undoes_the_upgrade_that_is_under_way_and_no_older_one(step):
    """b was not reached by it; what b had before is from the year before."""
    before = wave_record("upgrade", OLD_RELEASE, "2025-11-20T10:00:00Z", run="r0")
    nodes = dict(under_way("upgrade", "new", step=step), **nodes_of("b", annotations=before))
    older = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": "24.1", "kernel": KERNEL}}, "holders": []}
    plan = make([host("a"), host("b", upgrade=older)], nodes=nodes, reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["in-flight", "skipped"]
    # Nor does a rollback that goes on with one that turned it back.
    turned = under_way("rollback", "old", step="rollback-required", times={"turned-back": "2026-11-21T12:00:00Z"})["a"]
    plan = make([host("a"), host("b", upgrade=older)], nodes=dict(nodes, a=turned), reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["in-flight", "skipped"]
    # And when a was given back, a second rollback goes no further either.
    last = dict(record(reason="upgrade", outcome="withdrawn", withdrawn_for="rollback", ended="2026-11-21T12:20:00Z"))
    nodes["a"]["metadata"]["annotations"] = {"npuops.ascend/last-maintenance": json.dumps(last)}
    plan = make([host("a", upgrade=older), host("b", upgrade=older)], nodes=nodes, reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["skipped", "skipped"]
    assert "its upgrade to 25.5.2 was withdrawn before its reboot" in plan.entries[0].notes[0]


def test_a_node_on_which_the_upgrade_failed_does_not_go_back_further():
    """It is on the driver before already."""
    nodes = nodes_of("a", "b", annotations=wave_record("upgrade", NEW_RELEASE, "2026-11-20T10:00:00Z"))
    last = record(reason="upgrade", outcome="rolled-back", ended="2026-11-20T11:00:00Z")
    nodes["b"]["metadata"]["annotations"] = {"npuops.ascend/last-maintenance": json.dumps(last)}
    older = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": "24.1", "kernel": KERNEL}}, "holders": []}
    plan = make([backward_of("a"), host("b", upgrade=older)], nodes=nodes, reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["ready", "skipped"]


def backward_of(name):
    return dict(backward(), name=name, facts=dict(backward()["facts"], boot_id="boot-" + name))


def test_rollback_goes_to_the_previous_release_without_asking_the_registry():
    entry = only(backward(), reason="rollback", lookups={"resolve": lambda *_args: pytest.fail("asked")})
    assert entry.verdict == "ready"
    assert entry.target == {"version": OLD, "release": OLD_RELEASE, "digest": OLD_DIGEST, "image": None}


@pytest.mark.parametrize("kernel", [KERNEL, "5.10.0-before"])
def test_who_is_back_already_is_so_after_a_change_of_kernel(kernel):
    """Records name the release for the kernel before; good and previous were exchanged, so a second rollback would go forward."""
    was = OLD_RELEASE.replace(KERNEL, kernel)
    forward = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": NEW, "kernel": KERNEL}}, "holders": []}
    back = record(reason="rollback", outcome="success", ended="2026-11-20T11:00:00Z", to={"version": OLD, "release": was})
    failed = record(
        reason="upgrade", outcome="rolled-back", ended="2026-11-20T11:00:00Z", **{"from": {"version": OLD, "release": was}}
    )
    for last, state in ((back, {}), (failed, {"npu.openfuyao.com/driver-upgrade-state": "upgrade-failed"})):
        nodes = nodes_of("a", annotations={"npuops.ascend/last-maintenance": json.dumps(last)}, labels=state)
        entry = only(host("a", upgrade=forward), nodes=nodes, reason="rollback")
        assert entry.verdict in ("up-to-date", "skipped"), (last, entry.verdict)


@pytest.mark.parametrize(
    ("changes", "verdict", "text"),
    [
        ({"previous": None}, "skipped", "has no previous release"),
        ({"staged": {}}, "blocked", "no longer complete"),
        ({"staged": {OLD_RELEASE: {"version": OLD, "kernel": "5.10", "digest": OLD_DIGEST}}}, "blocked", "for the kernel 5.10"),
    ],
)
def test_rollback_that_cannot_be(changes, verdict, text):
    entry = only(backward(**changes), reason="rollback")
    assert entry.verdict == verdict
    assert any(text in line for line in entry.reasons + entry.notes)


def test_a_rollback_takes_the_release_of_the_version_that_is_for_the_running_kernel():
    """The kernel changed since; npu-driver-select would also take that release."""
    fits = release(OLD, "sha256:" + "2c" * 32)
    staged = {
        OLD_RELEASE: {"version": OLD, "kernel": "5.10", "digest": OLD_DIGEST},
        fits: {"version": OLD, "kernel": KERNEL, "digest": "sha256:" + "2c" * 32},
        NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST},
    }
    entry = only(backward(staged=staged), reason="rollback")
    assert (entry.verdict, entry.target["release"], entry.target["digest"]) == ("ready", fits, "sha256:" + "2c" * 32)


def test_a_second_rollback_does_not_go_forward_again():
    last = record(reason="rollback", outcome="success", to={"version": NEW, "release": NEW_RELEASE})
    nodes = nodes_of("a", annotations={"npuops.ascend/last-maintenance": json.dumps(last)})
    assert only(backward(), nodes=nodes, reason="rollback").verdict == "up-to-date"
    assert only(backward(), nodes=nodes, reason="rollback", retry=True).verdict == "ready"


def test_a_node_that_went_back_by_itself_goes_no_further_back():
    """Its previous release is the one before the one that it went back to, or the one that has just failed on it."""
    driver = {"version": NEW, "release": NEW_RELEASE}
    last = record(reason="upgrade", outcome="failure", to={"version": "26.0", "release": "26.0-x"}, **{"from": driver})
    failed = {"npuops.ascend/last-maintenance": json.dumps(last)}
    state = {"npu.openfuyao.com/driver-upgrade-state": "upgrade-failed"}
    entry = only(backward(), nodes=nodes_of("a", labels=state, annotations=failed), reason="rollback")
    assert entry.verdict == "skipped" and "is back on 25.5.2 already: its upgrade to 26.0 failed" in entry.notes[0]
    retry = only(backward(), nodes=nodes_of("a", labels=state, annotations=failed), reason="rollback", retry=True)
    assert retry.verdict == "ready"
    # That it is back must be true.
    other = json.dumps(dict(last, **{"from": {"version": OLD, "release": OLD_RELEASE}}))
    nodes = nodes_of("a", labels=state, annotations={"npuops.ascend/last-maintenance": other})
    assert only(backward(), nodes=nodes, reason="rollback").verdict == "failed"


def wave_record(reason, loaded, ended, **changes):
    version = {"version": loaded.partition("-")[0], "release": loaded}
    text = record(reason=reason, outcome="success", ended=ended, to=version, **changes)
    return {"npuops.ascend/last-maintenance": json.dumps(text)}


@pytest.mark.parametrize("first", ["upgrade", "rollback"])
def test_a_rollback_undoes_the_last_upgrade_and_no_older_one(first):
    """c was not reached by the last upgrade, to NEW; its own previous release is from the year before."""
    nodes = nodes_of("a", "b", "c")
    nodes["a"]["metadata"]["annotations"] = wave_record("upgrade", NEW_RELEASE, "2026-11-20T10:00:00Z")
    nodes["b"]["metadata"]["annotations"] = wave_record("upgrade", NEW_RELEASE, "2026-11-20T09:00:00Z")
    nodes["c"]["metadata"]["annotations"] = wave_record("upgrade", OLD_RELEASE, "2025-11-20T10:00:00Z", run="r0")
    older = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": "24.1", "kernel": KERNEL}}, "holders": []}
    hosts = [dict(backward(), name=name) for name in ("a", "b")] + [host("c", upgrade=older)]
    hosts[0]["facts"], hosts[1]["facts"] = [dict(backward()["facts"], boot_id="boot-" + name) for name in ("a", "b")]
    if first == "rollback":  # a went back already
        nodes["a"]["metadata"]["annotations"] = wave_record(
            "rollback", OLD_RELEASE, "2026-11-21T10:00:00Z", **{"from": {"version": NEW, "release": NEW_RELEASE}}
        )
        hosts[0] = host("a", upgrade=older)
    plan = make(hosts, nodes=nodes, reason="rollback")
    verdicts = {entry.name: entry.verdict for entry in plan.entries}
    assert verdicts == {"a": "ready" if first == "upgrade" else "up-to-date", "b": "ready", "c": "skipped"}
    assert "was not part of the last upgrade, to 25.5.2" in plan.entries[2].notes[0]
    assert "c" in plan.settled_nodes
    alone = make([hosts[2]], nodes=nodes, reason="rollback")
    assert alone.entries[0].verdict == "ready"
