# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus itself makes of the agents, the exporters, the dashboards and the alerts, and what reaches a person of it."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from support import dashboards
from support.lab.monitoring import RULES, monitoring, of_nodes
from support.patience import PATIENCE

NAMESPACE, NODE = "npu-operator", "npu-a"
STATE = "npu.openfuyao.com/driver-upgrade-state"
# Only with a chip that went missing in a reboot: test_host_faults.
EMPTY = {"Missing chips"}
RECORDS = [
    rule["record"]
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
    if "record" in rule
]


@pytest.fixture(scope="module")
def status_file(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("textfile") / "npuops.prom"


@pytest.fixture(scope="module")
def prometheus(lab, quick_agents, status_file):
    lab.fault(NODE, "clear")
    with monitoring(lab, NAMESPACE) as made:
        made.serve("kube-state-metrics", of_nodes(in_a_rollout(lab.api.get("/api/v1/nodes")["items"])))
        lab.playbook("status", npu_status_file=str(status_file.with_suffix(".json")), npu_status_metrics_file=str(status_file))
        made.serve("control-machine", status_file.read_text(encoding="utf-8"))
        yield made
    lab.fault(NODE, "clear")


@pytest.fixture(scope="module")
def recovered(lab, prometheus, status_file):
    """A node that was suspended, and is ready again; and one whose upgrade failed."""
    for suspended in (1, 0):
        states = {"suspended": suspended, "ready": 1 - suspended}
        text = "".join(
            f'npuops_node_agent_driver_state{{node="npu-x",state="{state}"}} {value}\n' for state, value in states.items()
        )
        prometheus.serve("another-agent", text)
        query = f'node:npuops_node_agent_driver_suspended:last1d{{node="npu-x"}} == {suspended}'
        lab.wait_for(lambda query=query: prometheus.query(query), PATIENCE, f"npu-x counts as {states}")
    failed = 'npuops_fleet_node_step{node="npu-x",step="upgrade-failed"} 1\n'
    prometheus.serve("control-machine", status_file.read_text(encoding="utf-8") + failed)


def in_a_rollout(nodes):
    """The lab's Nodes, one of them as a rollout would have it."""
    for node in nodes:
        name, conditions = node["metadata"]["name"], node["status"]["conditions"]
        if name == "npu-b":
            node["metadata"]["labels"][STATE] = "drain-required"
            conditions += [{"type": kind, "status": "True"} for kind in ("MaintenanceInProgress", "DrainInProgress")]
        if name == NODE:
            conditions[:] = [one for one in conditions if one["type"] != "npuops.ascend/ChipsHealthy"]
            conditions.append({"type": "npuops.ascend/ChipsHealthy", "status": "False"})
    return nodes


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


def test_the_status_reaches_prometheus_and_is_no_reason_for_an_alert(lab, prometheus):
    lab.wait_for(lambda: prometheus.query("npuops_fleet_status_timestamp_seconds"), PATIENCE, "the status is scraped")
    states = {one["metric"]["node"]: one["metric"]["state"] for one in prometheus.query("npuops_fleet_node_state == 1")}
    assert states == {"npu-a": "ready", "npu-b": "ready", "npu-c": "ready", "cpu-a": "no chip"}
    offered = prometheus.query("npuops_fleet_node_devices_allocatable == npuops_fleet_node_devices_expected")
    assert {one["metric"]["node"] for one in offered} == {"npu-a", "npu-b", "npu-c"}
    assert prometheus.query('ALERTS{alertname=~"NpuRollout.*|NpuUpgrade.*|NpuApproval.*|NpuRecovery.*|NpuNode.*|NpuFleet.*"}') == []


@pytest.mark.usefixtures("recovered")
def test_each_rule_records_something(lab, prometheus):
    assert len(RECORDS) > 15 and all(re.fullmatch(r"\w+:\w+:\w+", record) for record in RECORDS)
    lab.wait_for(lambda: all(map(prometheus.query, RECORDS)), PATIENCE, "each rule has recorded something")
    (recoveries,) = prometheus.query('node:npuops_node_agent_driver_suspended:resets30d{node="npu-x"}')
    assert recoveries["value"][1] == "1"


@pytest.mark.usefixtures("recovered")
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
