# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules in Prometheus' own judgement: promtool of the distribution's package, which is not installed."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from support import dashboards
from support.promtool import RULES, program, rules_test

HEALTH = 'npuops_node_agent_chip_health{npu="4", chip="0", bus_id="0000:81:00.0", health="%s", instance="npu-a"}'
FAULT = (
    'npuops_node_agent_chip_fault_info{npu="4", chip="0", bus_id="0000:81:00.0", code="80E18402", level="%s", meaning="no spare rows",'
    ' instance="npu-a"}'
)
STATE = 'npuops_node_agent_driver_state{state="%s", instance="npu-a"}'
HALTED = 'npuops_fleet_halted{kind="%s", instance="control"}'
STEP = 'npuops_fleet_node_step{node="npu-a", step="%s", instance="control"}'
SEEN = 'npuops_fleet_node_state{node="npu-a", state="%s", instance="control"}'
HEALTHY = 'npuops_fleet_node_healthy{node="npu-a", instance="control"}'
WAITS = 'npuops_fleet_node_awaiting_approval{node="npu-a", reason="rollout", instance="control"}'
LOOKED = 'npuops_fleet_status_timestamp_seconds{instance="control"}'
ALERTS = [
    rule["alert"]
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
    if "alert" in rule
]


@pytest.fixture(scope="module")
def promtool():
    return program()


@pytest.mark.core
def test_rules_are_valid(promtool):
    result = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and f"{len(ALERTS) + 19} rules found" in result.stdout, result.stdout + result.stderr


@pytest.mark.core
def test_the_dashboards_ask_what_prometheus_understands(promtool, tmp_path):
    asked = [dashboards.as_prometheus_takes_it(query) for name in dashboards.NAMES for query in dashboards.queries(name)]
    rules = [{"record": f"query_{number}", "expr": query} for number, query in enumerate(asked)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}), encoding="utf-8")
    result = subprocess.run([promtool, "check", "rules", "--lint=none", file], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and f"{len(asked)} rules found" in result.stdout, result.stdout + result.stderr


@pytest.mark.core
@pytest.mark.parametrize(
    "series, alert, after",
    [
        ({STATE % "suspended": "1x60"}, "NpuDriverWedged", "2m"),
        ({STATE % "absent": "1x60"}, "NpuDriverAbsent", "16m"),
        (
            {STATE % "ready": "1x60", 'npuops_node_agent_probe_last_success_timestamp_seconds{instance="npu-a"}': "0x60"},
            "NpuProbeStale",
            "12m",
        ),
        ({STATE % "ready": "1x60"}, "NpuProbeStale", "6m"),
        ({HEALTH % "Critical": "1x60"}, "NpuChipUnhealthy", "6m"),
        ({HEALTH % "UNKNOWN": "1x60"}, "NpuChipUnhealthy", "6m"),
        ({HEALTH % "Alarm": "1x60", FAULT % "SeparateNPU": "1x60"}, "NpuChipFault", "6m"),
        ({FAULT % "RestartRequest": "1x60"}, "NpuChipFault", "6m"),
        ({'npuops_node_agent_chip_missing{bus_id="0000:c4:00.0", instance="npu-a"}': "1x60"}, "NpuChipMissing", "6m"),
        (
            {
                'npuops_node_agent_chips_expected{instance="npu-a"}': "8x60",
                'npuops_node_agent_chips{instance="npu-a", source="pci"}': "7x60",
            },
            "NpuChipMissing",
            "6m",
        ),
        ({'npuops_node_agent_cdi_spec_valid{instance="npu-a"}': "0x60"}, "NpuCdiSpecMismatch", "11m"),
        ({'npuops_node_agent_report_pending{instance="npu-a"}': "1x60"}, "NpuAgentCannotReport", "16m"),
        ({HALTED % "upgrade": "1x60"}, "NpuRolloutHalted", "6m"),
        ({HALTED % "rollback": "1x60"}, "NpuRolloutHalted", "6m"),
        ({STEP % "upgrade-failed": "1x60"}, "NpuUpgradeFailed", "6m"),
        ({WAITS: "1x300"}, "NpuApprovalWaiting", "241m"),
        ({'npuops_fleet_storm{instance="control"}': "1x60"}, "NpuRecoveryStorm", "2m"),
        ({SEEN % "no plugin": "1x120", HEALTHY: "0x120"}, "NpuNodeDrifted", "91m"),
        ({LOOKED: "0x300"}, "NpuFleetStatusStale", "190m"),
    ],
)
def test_alert_fires(promtool, tmp_path, series, alert, after):
    result = check(promtool, tmp_path, series, alert, after, True)
    assert result.returncode == 0, result.stdout + result.stderr
    # Not that any test passes.
    assert check(promtool, tmp_path, series, alert, after, False).returncode != 0


@pytest.mark.core
@pytest.mark.parametrize(
    ("series", "alert", "fires", "ends"),
    [
        ({STATE % "suspended": "1x10 0x10"}, "NpuDriverWedged", "5m", "12m"),
        ({HALTED % "upgrade": "1x10 0x10"}, "NpuRolloutHalted", "9m", "12m"),
        # A node that was tried again, or whose step has another name: its series ends.
        ({STEP % "upgrade-failed": "1x10 stale"}, "NpuUpgradeFailed", "9m", "12m"),
        ({WAITS: "1x250 stale"}, "NpuApprovalWaiting", "245m", "252m"),
        ({'npuops_fleet_storm{instance="control"}': "1x10 0x10"}, "NpuRecoveryStorm", "9m", "12m"),
        ({SEEN % "wedged": "1x100 stale", SEEN % "ready": "_x100 1x10", HEALTHY: "0x100 1x10"}, "NpuNodeDrifted", "95m", "102m"),
        ({LOOKED: "0x200 12000x10"}, "NpuFleetStatusStale", "190m", "202m"),
    ],
)
def test_alert_ends(promtool, tmp_path, series, alert, fires, ends):
    tests = [firing(alert, fires, True), firing(alert, ends, False)]
    result = rules_test(promtool, tmp_path, series, promql_expr_test=tests)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.core
def test_a_maintenance_is_no_drift(promtool, tmp_path):
    result = check(promtool, tmp_path, {SEEN % "maintenance": "1x200", HEALTHY: "0x200"}, "NpuNodeDrifted", "190m", False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.core
def test_each_alert_is_tried():
    (cases,) = [mark.args[1] for mark in test_alert_fires.pytestmark if mark.name == "parametrize"]
    assert {alert for _series, alert, _after in cases} == set(ALERTS)


@pytest.mark.core
def test_silence_on_a_healthy_node(promtool, tmp_path):
    series = {
        STATE % "ready": "1x60",
        STATE % "suspended": "0x60",
        STATE % "absent": "0x60",
        'npuops_node_agent_probe_last_success_timestamp_seconds{instance="npu-a"}': "0+60x60",
        # Healthy cards show it for months.
        HEALTH % "Alarm": "1x60",
        FAULT % "NotHandleFault": "1x60",
        FAULT % "": "1x60",
        'npuops_node_agent_cdi_spec_valid{instance="npu-a"}': "1x60",
        'npuops_node_agent_report_pending{instance="npu-a"}': "0x60",
        # A person has paused all rollouts, and a maintenance is under way.
        HALTED % "pause": "1x60",
        HALTED % "upgrade": "0x60",
        'npuops_fleet_storm{instance="control"}': "0x60",
        STEP % "drain-required": "1x60",
        SEEN % "maintenance": "1x60",
        HEALTHY: "0x60",
        LOOKED: "0+60x60",
    }
    silent = [{"expr": 'ALERTS{alertstate="firing"}', "eval_time": "50m", "exp_samples": []}]
    result = rules_test(promtool, tmp_path, series, promql_expr_test=silent)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_day_of_32_nodes_in_order_is_silent(promtool, tmp_path):
    """One after the other is upgraded: for two minutes in maintenance, for five without an agent, and two more until its driver serves."""
    day = 24 * 60
    series = {"npuops_fleet_storm": f"0x{day}", 'npuops_fleet_rollout_halted{kind="upgrade"}': f"0x{day}"}
    series["npuops_fleet_status_timestamp_seconds"] = " ".join(f"{3600 * hour}x59" for hour in range(24))
    for number in range(32):
        before = 10 + 40 * number
        after = day - before - 9

        def of(name, *values, **labels):
            labels = {"node": f"npu-{number}", "instance": f"10.0.0.{number}:9461", "job": "npu", **labels}  # noqa: B023
            text = ", ".join(f'{label}="{value}"' for label, value in labels.items())
            key = f"npuops_node_agent_{name}{{{text}}}"
            lengths = (before, 2, 5, 2, after)  # noqa: B023
            series[key] = " ".join(
                f"_x{length}" if value is None else f"{value}x{length - 1}" for value, length in zip(values, lengths, strict=True)
            )

        of("driver_state", 1, 0, None, 0, 1, state="ready")
        of("driver_state", 0, 1, None, 0, 0, state="maintenance")
        of("driver_state", 0, 0, None, 1, 0, state="absent")
        of("driver_state", 0, 0, None, 0, 0, state="suspended")
        of("cdi_spec_valid", 1, 1, None, 0, 1)
        of("report_pending", 0, 0, None, 1, 0)
        of("chips_expected", 8, 8, None, 8, 8)
        of("chips", 8, 8, None, 8, 8, source="pci")
        for chip in range(2):
            of("chip_health", 1, 1, None, None, 1, npu=str(chip), chip="0", bus_id=f"0000:8{chip}:00.0", health="OK")
        # Each probe succeeds: the time of the last one is now.
        key = f'npuops_node_agent_probe_last_success_timestamp_seconds{{node="npu-{number}", instance="10.0.0.{number}:9461", job="npu"}}'
        series[key] = f"0+60x{before + 1} _x7 {60 * (before + 9)}+60x{after}"
    ever = {"expr": 'sum by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1d]))', "eval_time": f"{day}m"}
    result = rules_test(promtool, tmp_path, series, promql_expr_test=[{**ever, "exp_samples": []}])
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.core
@pytest.mark.parametrize(
    "series, codes",
    [({FAULT % "SeparateNPU": "1x60"}, "80E18402 (SeparateNPU) no spare rows."), ({}, "not known.")],
)
def test_an_alert_about_a_chip_names_its_node_and_its_codes(promtool, tmp_path, series, codes):
    """And there is one alert of the chip, not two."""
    series = {
        name.replace("instance=", 'node="npu-a", instance=').replace('"npu-a"}', '"10.0.0.7:9461"}'): "1x60" for name in series
    }
    health = HEALTH % "Critical"
    labels = {"npu": "4", "chip": "0", "bus_id": "0000:81:00.0", "health": "Critical", "severity": "warning"}
    labels |= {"node": "npu-a", "instance": "10.0.0.7:9461"}
    annotations = {
        "runbook_url": "https://github.com/npuops/ascend/blob/main/docs/metrics.md#npuchipunhealthy",
        "summary": "NPU 4 chip 0 on npu-a is Critical",
        "description": "npu-smi lists the chip 0000:81:00.0 with a health with which it does not serve. The other chips of the node do. "
        f"Its fault codes: {codes}",
    }
    health = health.replace('instance="npu-a"', 'node="npu-a", instance="10.0.0.7:9461"')
    expected = {"exp_labels": labels, "exp_annotations": annotations}
    result = rules_test(
        promtool,
        tmp_path,
        {health: "1x60", **series},
        alert_rule_test=[
            {"eval_time": "6m", "alertname": "NpuChipUnhealthy", "exp_alerts": [expected]},
            {"eval_time": "6m", "alertname": "NpuChipFault", "exp_alerts": []},
        ],
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.core
@pytest.mark.parametrize(
    ("others", "names"),
    [({}, "not known."), ({STEP % "upgrade-failed": "1x60"}, "npu-a.")],
)
def test_a_halt_names_the_nodes_that_failed(promtool, tmp_path, others, names):
    annotations = {
        "runbook_url": "https://github.com/npuops/ascend/blob/main/docs/metrics.md#npurollouthalted",
        "summary": "The upgrade of the NPU drivers is halted",
        "description": f"A node failed, and no further node is begun with. Nodes that failed: {names}"
        " npuops.ascend.status shows the reason and how to continue.",
    }
    expected = {"exp_labels": {"kind": "upgrade", "instance": "control", "severity": "warning"}, "exp_annotations": annotations}
    alerts = [{"eval_time": "6m", "alertname": "NpuRolloutHalted", "exp_alerts": [expected]}]
    result = rules_test(promtool, tmp_path, {HALTED % "upgrade": "1x60", **others}, alert_rule_test=alerts)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.core
def test_a_storm_names_the_nodes_that_are_wedged(promtool, tmp_path):
    series = {'npuops_fleet_storm{instance="control"}': "1x60", SEEN % "wedged": "1x60"}
    annotations = {
        "runbook_url": "https://github.com/npuops/ascend/blob/main/docs/metrics.md#npurecoverystorm",
        "summary": "So many NPU nodes are wedged that none is recovered",
        "description": "Nodes that are wedged: npu-a. The cause is probably not in the nodes. Find what they share before you allow"
        " recoveries.",
    }
    expected = {"exp_labels": {"instance": "control", "severity": "critical"}, "exp_annotations": annotations}
    alerts = [{"eval_time": "6m", "alertname": "NpuRecoveryStorm", "exp_alerts": [expected]}]
    result = rules_test(promtool, tmp_path, series, alert_rule_test=alerts)
    assert result.returncode == 0, result.stdout + result.stderr


def check(promtool, directory, series, alert, after, fires) -> subprocess.CompletedProcess:
    """promtool test rules: whether `alert` fires `after` some time."""
    return rules_test(promtool, directory, series, promql_expr_test=[firing(alert, after, fires)])


def firing(alert, after, fires) -> dict:
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    return {"expr": query, "eval_time": after, "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}
