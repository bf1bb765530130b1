# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from support.fleet.hosts import KERNEL, NEW_RELEASE, OLD, OLD_RELEASE, host, unreachable
from support.fleet.planning import (
    TRIED,
    make,
    nodes_of,
    only,
    under_way,
)


@pytest.mark.parametrize(
    ("wants", "nodes", "entry", "release", "note"),
    [
        # Of a run that died before the intent.
        ("upgrade", under_way("upgrade", "new"), host(), NEW_RELEASE, "step drain-required"),
        ("upgrade", under_way("upgrade", "new"), host(config={"driver_version": OLD}), "25.5.0-%s-1b" % KERNEL, ""),
        ("upgrade", under_way("upgrade", "new"), host(loaded=NEW_RELEASE), None, "is given back: it runs 25.5.2 already"),
        ("upgrade", under_way("upgrade", "new"), unreachable(), NEW_RELEASE, "not reachable"),
        ("rollback", under_way("upgrade", "new"), host(), None, "its upgrade to 25.5.2 is given back first"),
        ("rollback", under_way("upgrade", "new"), unreachable(), None, "is given back first"),
        ("upgrade", under_way("rollback", "old"), host(loaded=NEW_RELEASE), None, "its rollback to 25.5.0 is given back first"),
        ("rollback", under_way("rollback", "old"), host(loaded=NEW_RELEASE), OLD_RELEASE, "step drain-required"),
        ("upgrade", under_way("recovery", ""), host(), NEW_RELEASE, "its recovery to the same is given back first"),
        ("rollback", under_way("recovery", ""), host(), None, "its recovery to the same is given back first"),
        # Of one that died after it.
        ("upgrade", under_way("upgrade", "new", **TRIED), host(config={"driver_version": "26.0"}), NEW_RELEASE, ""),
        ("rollback", under_way("upgrade", "new", **TRIED), host(loaded=NEW_RELEASE), OLD_RELEASE, "its upgrade to 25.5.2 is ended"),
        ("rollback", under_way("upgrade", "new", **TRIED), unreachable(), OLD_RELEASE, "its upgrade to 25.5.2 is ended"),
        ("upgrade", under_way("rollback", "old", **TRIED), host(), NEW_RELEASE, "its rollback to 25.5.0 is ended"),
    ],
)
def test_what_is_wanted_of_a_node_in_maintenance(wants, nodes, entry, release, note):
    found = only(entry, nodes=nodes, reason=wants)
    assert found.verdict == "in-flight" and found.order == 1
    assert (found.target or {}).get("release", "").startswith(release or "") and bool(found.target) is bool(release)
    assert any(note in text for text in found.notes), found.notes


@pytest.mark.parametrize(
    ("reason", "upgrade", "config", "release"),
    [
        ("upgrade", {}, {}, NEW_RELEASE),
        ("upgrade", {}, {"driver_version": OLD}, "25.5.0-%s-1b" % KERNEL),
        ("rollback", {}, {}, OLD_RELEASE),
        ("rollback", {"previous": NEW_RELEASE}, {}, NEW_RELEASE),  # the trial is that of a rollback
    ],
)
def test_a_host_on_trial_without_a_record(reason, upgrade, config, release):
    driver = dict(host()["facts"]["driver"], release=NEW_RELEASE, loaded_release=NEW_RELEASE)
    nodes = nodes_of("a", "b", labels={"openfuyao.com/npu.present": ""})
    tries = host(driver=driver, config=config, upgrade=dict({"trial": NEW_RELEASE}, **upgrade))
    plan = make([host("b"), tries], nodes, reason=reason)
    entry = plan.entries[1]
    assert (entry.verdict, entry.order, plan.green) == ("on-trial", 1, True)
    assert entry.target["release"].startswith(release)
    assert "on trial" in entry.notes[0] and not any("install" in note for note in entry.notes)
    assert "a" not in plan.due_nodes + plan.settled_nodes
    assert "1 on an unconfirmed trial" in plan.summary


def test_a_host_on_trial_whose_node_was_made_anew():
    driver = dict(host()["facts"]["driver"], release=NEW_RELEASE, loaded_release=NEW_RELEASE)
    entry = only(host(driver=driver, upgrade={"trial": NEW_RELEASE}))
    assert entry.verdict == "on-trial" and "lacks the labels of npuops.ascend.install" in entry.notes[1]
    # What another machine tries says nothing about this node.
    entry = only(host(driver=driver, upgrade={"trial": NEW_RELEASE}, boot_id="another"))
    assert entry.verdict == "blocked"
