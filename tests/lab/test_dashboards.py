# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus itself makes of the agents, the exporters, the dashboards and the alerts, and what reaches a person of it."""

from __future__ import annotations

import pytest

from support import dashboards
from support.lab.monitoring import monitoring
from support.patience import PATIENCE

NAMESPACE, NODE = "npu-operator", "npu-a"
STATE = "npu.openfuyao.com/driver-upgrade-state"
# Only with a chip that went missing in a reboot: test_host_faults.
EMPTY = {"Missing chips"}


@pytest.fixture(scope="module")
def prometheus(lab, quick_agents):
    lab.fault(NODE, "clear")
    with monitoring(lab, NAMESPACE) as made:
        made.serve("kube-state-metrics", of_nodes(lab.api.get("/api/v1/nodes")["items"]))
        yield made
    lab.fault(NODE, "clear")


def of_nodes(nodes) -> str:
    """The lab's Nodes as kube-state-metrics shows them; one of them as a rollout would have it."""
    lines = []
    for node in nodes:
        name, labels, conditions = node["metadata"]["name"], dict(node["metadata"]["labels"]), list(node["status"]["conditions"])
        if name == "npu-b":
            labels[STATE] = "drain-required"
            conditions += [{"type": kind, "status": "True"} for kind in ("MaintenanceInProgress", "DrainInProgress")]
        if name == NODE:
            conditions = [one for one in conditions if one["type"] != "npuops.ascend/ChipsHealthy"]
            conditions.append({"type": "npuops.ascend/ChipsHealthy", "status": "False"})
        shown = "".join(f',label_{clean(key)}="{value}"' for key, value in labels.items() if key.startswith("npu."))
        lines.append(f'kube_node_labels{{node="{name}"{shown}}} 1')
        lines.append(f'kube_node_spec_unschedulable{{node="{name}"}} {int(bool(node["spec"].get("unschedulable")))}')
        for one in conditions:
            for status in ("True", "False", "Unknown"):
                told = f'node="{name}",condition="{one["type"]}",status="{status.lower()}"'
                lines.append(f"kube_node_status_condition{{{told}}} {int(one['status'] == status)}")
    return "\n".join(lines) + "\n"


def clean(key: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in key)


def test_a_sick_chip_reaches_a_person_and_its_end_does_too(lab, prometheus):
    def told(status):
        return [
            alert
            for alert in prometheus.notices()
            if alert["labels"]["alertname"] == "NpuChipUnhealthy" and alert["labels"]["node"] == NODE and alert["status"] == status
        ]

    lab.wait_for(lambda: prometheus.query("npuops_node_agent_build_info"), PATIENCE, "the agents are scraped")
    assert prometheus.query('ALERTS{alertstate="firing"}') == []
    lab.fault(NODE, "alarm", "0", "80E18402", "Critical")
    (alert, *_more) = lab.wait_for(lambda: told("firing"), PATIENCE, "a notification")
    assert f"on {NODE} is Critical" in alert["annotations"]["summary"]
    assert "80E18402" in alert["annotations"]["description"]
    assert alert["annotations"]["runbook_url"].endswith("docs/metrics.md#npuchipunhealthy")
    lab.fault(NODE, "clear")
    lab.wait_for(lambda: told("resolved"), PATIENCE, "a notification of the end")


@pytest.mark.parametrize("name", dashboards.NAMES)
def test_each_panel_shows_something(lab, prometheus, name):
    lab.fault(NODE, "alarm", "0", "80E18402", "Critical")

    def empty():
        return [
            (title, query)
            for title, queries in dashboards.panels(name)
            for query in queries
            if title not in EMPTY and not prometheus.query(dashboards.as_prometheus_takes_it(query, nodes_of(query)))
        ]

    lab.wait_for(lambda: not empty(), PATIENCE, f"each panel of {name} shows something")


def nodes_of(query: str) -> str:
    """The node that is chosen: with DDR instead of HBM, another one than the rest."""
    return "npu-c" if "npu_chip_info_used_memory" in query else NODE
