# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components and drivers in one upgrade: which of them goes first, and where neither can."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import component_order, plan_table

from support.fleet.hosts import NEW_DIGEST, host, release
from support.fleet.planning import make, nodes_of
from support.kube.eviction_stub import pod
from support.kube.stub import node

CHANGE = "change DaemonSet npu-operator/ascend-device-plugin-daemonset"
IMAGES = {"unknown": "@sha256:" + "ab" * 32, "7.3": ":v7.3.2", "26.1": ":v26.1.0", "26.0": ":v26.0.1"}
HALTED = {"max": 1, "halted": {"who": "r0", "why": "npu-a burns.", "when": "2026-11-21T12:00:00Z"}, "holders": {}}


def plugin(version_line, name):
    made = pod("plugin-" + name, node=name, owner=("DaemonSet", "ascend-device-plugin-daemonset"), namespace="npu-operator")
    made["spec"]["containers"][0]["image"] = "registry.example/image" + IMAGES[version_line]
    return made


def plan(version_line, wanted, now, then, names=("a", "b"), changes=(CHANGE,), left_alone=None, **kwargs):
    """``now``, ``then``: the driver that the hosts have, and are to get."""
    hosts = [host(name, config={"driver_version": then}, loaded=release(now, NEW_DIGEST)) for name in names]
    components = {"version_line": wanted, "changes": list(changes), "left_alone": left_alone}
    return make(hosts, pods=[plugin(version_line, name) for name in names], components=components, allow_older=True, **kwargs)


@pytest.mark.parametrize(
    ("version_line", "wanted", "now", "then", "order"),
    [
        ("7.3", "26.1", "25.5.0", "26.0.0", "before"),  # 7.3 does not support the new driver
        ("26.1", "7.3", "26.0.0", "25.5.0", "after"),  # 7.3 does not support the old one
        ("7.3", "26.1", "25.5.0", "25.5.2", "before"),  # both would do
        ("26.1", "7.3", "25.5.0", "25.5.2", "before"),
        ("7.3", "26.1", "25.5.2", "25.5.2", "before"),  # no driver is due
        ("26.1", "26.1", "25.5.0", "26.0.0", "before"),  # not the version line, but an image or a flag of it
        ("26.1", "26.1", "99.0.0", "99.1.0", "before"),  # unknown drivers
        ("7.3", "7.3", "26.0.0", "25.5.0", "before"),  # the version line stays, whatever it supports
    ],
)
def test_what_goes_first(version_line, wanted, now, then, order):
    made = plan(version_line, wanted, now, then)
    assert made.green, made.problem
    assert made.result()["components"] == {"order": order, "from": [version_line], "to": wanted, "changes": [CHANGE]}
    text = "\n".join(plan_table.table(made))
    way = "MindCluster %s" % (wanted if version_line == wanted else "%s -> %s" % (version_line, wanted))
    title = way if now == then else "%s the drivers: %s" % (order, way)
    assert "Components:\n  %s\n    %s\n" % (title, CHANGE) in text
    assert ("components change %s the drivers" % order if now != then else "; components change") in made.summary


def test_nothing_changes():
    made = plan("7.3", "7.3", "25.5.0", "25.5.2", changes=())
    assert made.result()["components"]["order"] is None and "omponents" not in "\n".join(plan_table.table(made))


def test_a_version_line_that_does_not_support_the_new_driver():
    made = plan("26.1", "7.3", "25.5.0", "26.0.0")
    assert made.cluster_reasons == [
        'MindCluster 7.3 does not support driver 26.0.0 (a, b). Set npu_mindcluster_version_line: "26.1", or npu_driver_version to '
        "a"
        " release of 25.5"
    ]
    assert made.result()["components"]["order"] is None and not made.green
    # Each of the two ways.
    assert plan("26.1", "26.1", "25.5.0", "26.0.0", changes=()).green
    assert plan("26.1", "7.3", "25.5.0", "25.5.2").green


def test_no_version_line_that_supports_all_drivers(monkeypatch):
    rows = dict(mindcluster_support.table())
    families = {"families": ["910B"], "end_of_life": None, "source": "https://example.com"}
    rows["mindcluster"] = [
        dict(families, version="7.3", drivers=["25.5"]),
        dict(families, version="26.0", drivers=["26.0"]),
        dict(families, version="26.1", drivers=["26.1"]),
    ]
    monkeypatch.setattr(mindcluster_support, "table", lambda: rows)
    (reason,) = plan("7.3", "26.1", "25.5.0", "26.0.0").cluster_reasons
    assert reason.endswith(" (a, b). Set npu_driver_version to a release of 26.1"), "26.0 cannot be deployed"


def test_neither_can_go_first(monkeypatch):
    rows = dict(mindcluster_support.table())
    families = {"families": ["910B"], "end_of_life": None, "source": "https://example.com"}
    rows["mindcluster"] = [
        dict(families, version="7.3", drivers=["25.3", "25.5"]),
        dict(families, version="26.1", drivers=["25.5", "26.0"]),
    ]
    monkeypatch.setattr(mindcluster_support, "table", lambda: rows)
    made = plan("7.3", "26.1", "25.3.0", "26.0.0")
    assert made.cluster_reasons == [
        "MindCluster 26.1 does not support driver 25.3.0 (a, b); MindCluster 7.3 does not support driver 26.0.0 (a, b)."
        " Set npu_driver_version to a release of 25.5 first, which both support"
    ]
    # As it says: by way of that driver, in two upgrades.
    assert plan("7.3", "26.1", "25.3.0", "25.5.2").result()["components"]["order"] == "after"
    assert plan("26.1", "26.1", "25.5.2", "26.0.0", changes=()).green
    rows["mindcluster"][0]["drivers"] = ["25.3"]
    assert (
        plan("7.3", "26.1", "25.3.0", "26.0.0")
        .cluster_reasons[0]
        .endswith("No driver is supported by both. This collection deploys no version line between them")
    )


def test_half_of_the_nodes_have_the_new_version_line_already():
    """A run that was killed in the roll-out is run again."""
    hosts = [host(name, config={"driver_version": "26.0.0"}, loaded=release("25.5.0", NEW_DIGEST)) for name in ("a", "b")]
    components = {"version_line": "26.1", "changes": [CHANGE]}
    made = make(hosts, pods=[plugin("7.3", "a"), plugin("26.1", "b")], components=components)
    assert (
        made.green and made.result()["components"]["order"] == "before" and made.result()["components"]["from"] == ["26.1", "7.3"]
    )
    assert "MindCluster 7.3 -> 26.1" in "\n".join(plan_table.table(made))


@pytest.mark.parametrize(
    ("wanted", "now", "then", "order"), [("26.1", "25.5.0", "26.0.0", "before"), ("7.3", "26.0.0", "25.5.0", "after")]
)
def test_images_that_tell_of_no_version_line(wanted, now, then, order):
    made = plan("unknown", wanted, now, then)
    assert made.green and made.result()["components"]["order"] == order
    assert not plan("unknown", "7.3", "25.5.0", "26.0.0").green


def test_a_halt_holds_the_components_as_well():
    made = plan("7.3", "26.1", "25.5.0", "25.5.2", slots=HALTED)
    assert made.result()["components"]["order"] is None
    assert "the components are not changed while the rollout is halted" in made.cluster_notes
    assert plan("7.3", "26.1", "25.5.0", "25.5.2", slots=HALTED, clear_halt=True).result()["components"]["order"] == "before"


def test_why_they_are_left_alone():
    made = plan("7.3", "26.1", "25.5.0", "25.5.2", changes=(), left_alone="this run leaves out c")
    assert made.green and made.cluster_notes[-1] == "the components are not changed: this run leaves out c"


ANSIBLES = (
    "Task failed: Finalization of task args for 'npuops.ascend.npu_objects' failed: Error while resolving value for 'definitions': The"
    " filter plugin 'npuops.ascend.npu_mindcluster' failed: npu_exporter_version is v7.3.2.\n"
)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (ANSIBLES, "npu_exporter_version is v7.3.2"),
        ("The API server refuses: image: Required value", "The API server refuses: image: Required value"),
        ("\x1b[2J" * 5000, " [2J" * 100),
    ],
)
def test_definitions_that_are_wrong_are_told_in_the_plan(problem, told):
    hosts = [host("a", config={"driver_version": "25.5.2"}, loaded=release("25.5.0", NEW_DIGEST))]
    made = make(hosts, components={"version_line": "26.1", "changes": [CHANGE], "problem": problem})
    assert not made.green and made.result()["components"]["order"] is None
    (reason,) = made.cluster_reasons
    assert reason.startswith("the components cannot be compared with their definitions: %s" % told.strip())
    assert reason.endswith(". Correct this, or set npu_upgrade_components: false") and len(reason) < 1200 and reason.isprintable()


def test_a_host_that_does_not_answer_counts_with_what_its_node_says():
    there = nodes_of("a", "b", labels={"npuops.ascend/chip": "910B", "npuops.ascend/driver-version": "26.0.0"})
    hosts = [host("a", config={"driver_version": "25.5.2"}), host("b", config={"driver_version": "25.5.2"})]
    hosts[1] = dict(hosts[1], facts=None, validation=None, unreachable=True, error="timed out")
    made = make(hosts, nodes=there, pods=[plugin("26.1", "a")], components={"version_line": "7.3", "changes": [CHANGE]})
    assert made.result()["components"]["order"] == "after", "b has 26.0.0 still, which 7.3 does not support"


def test_who_has_a_driver_that_a_version_line_does_not_support():
    labels = {"npuops.ascend/chip": "910B", "npuops.ascend/driver-version": "26.0.0"}
    nodes = [node("a", labels=labels), node("b", labels=dict(labels, **{"npuops.ascend/driver-version": "25.5.2"})), node("c")]
    assert component_order.unfit("7.3", nodes) == ["MindCluster 7.3 does not support driver 26.0.0 (a)"]
    assert component_order.unfit("26.1", nodes) == []
