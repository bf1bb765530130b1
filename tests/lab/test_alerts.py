# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules in Prometheus' own judgement: promtool of the distribution's package, which is not installed."""

from __future__ import annotations

import pathlib
import socket
import subprocess
import time

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.firing_alerts import FiringAlerts

from support import dashboards, debian
from support.paths import CHECKOUT
from support.patience import PATIENCE

RULES = CHECKOUT / "roles" / "npu_node_agent" / "files" / "alerts.yml"
HEALTH = 'npuops_node_agent_chip_health{npu="4", chip="0", bus_id="0000:81:00.0", health="%s", instance="npu-a"}'
FAULT = (
    'npuops_node_agent_chip_fault_info{npu="4", chip="0", bus_id="0000:81:00.0", code="80E18402", level="%s", meaning="no spare rows",'
    ' instance="npu-a"}'
)
STATE = 'npuops_node_agent_driver_state{state="%s", instance="npu-a"}'


@pytest.fixture(scope="module")
def promtool() -> pathlib.Path:
    return debian.file("prometheus", "usr/bin/promtool")


@pytest.mark.core
def test_rules_are_valid(promtool):
    result = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and "8 rules found" in result.stdout, result.stdout + result.stderr


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
        ({HEALTH % "Critical": "1x60"}, "NpuChipUnhealthy", "6m"),
        ({HEALTH % "UNKNOWN": "1x60"}, "NpuChipUnhealthy", "6m"),
        ({HEALTH % "Alarm": "1x60", FAULT % "SeparateNPU": "1x60"}, "NpuChipFault", "6m"),
        ({FAULT % "RestartRequest": "1x60"}, "NpuChipFault", "6m"),
        ({'npuops_node_agent_chip_missing{bus_id="0000:c4:00.0", instance="npu-a"}': "1x60"}, "NpuChipMissing", "6m"),
        ({'npuops_node_agent_cdi_spec_valid{instance="npu-a"}': "0x60"}, "NpuCdiSpecMismatch", "11m"),
        ({'npuops_node_agent_report_pending{instance="npu-a"}': "1x60"}, "NpuAgentCannotReport", "16m"),
    ],
)
def test_alert_fires(promtool, tmp_path, series, alert, after):
    result = check(promtool, tmp_path, series, alert, after, True)
    assert result.returncode == 0, result.stdout + result.stderr
    # Not that any test passes.
    assert check(promtool, tmp_path, series, alert, after, False).returncode != 0


@pytest.mark.core
@pytest.mark.parametrize(
    "alert",
    [
        "NpuDriverWedged",
        "NpuDriverAbsent",
        "NpuProbeStale",
        "NpuChipUnhealthy",
        "NpuChipFault",
        "NpuChipMissing",
        "NpuCdiSpecMismatch",
        "NpuAgentCannotReport",
    ],
)
def test_silence_on_a_healthy_node(promtool, tmp_path, alert):
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
    }
    result = check(promtool, tmp_path, series, alert, "50m", False)
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


def check(promtool, directory, series, alert, after, fires) -> subprocess.CompletedProcess:
    """promtool test rules: whether `alert` fires `after` some time."""
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    expected = [{"labels": "{}", "value": 1}] if fires else []
    tests = [{"expr": query, "eval_time": after, "exp_samples": expected}]
    return rules_test(promtool, directory, series, promql_expr_test=tests)


def rules_test(promtool, directory, series, **tests) -> subprocess.CompletedProcess:
    """promtool test rules with a sample of each of `series` in a minute."""
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                **tests,
            }
        ],
    }
    file = directory / "test.yml"
    file.write_text(yaml.safe_dump(test), encoding="utf-8")
    return subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)


@pytest.mark.core
def test_a_real_prometheus_keeps_a_maintenance_from_beginning(tmp_path):
    """npu_upgrade_alerts, asked of Prometheus itself."""
    rules = [{"alert": name, "expr": "vector(1)", **more} for name, more in (("CephDown", {}), ("NotYet", {"for": "1h"}))]
    (tmp_path / "rules.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "a", "interval": "1s", "rules": rules}]}), encoding="utf-8"
    )
    (tmp_path / "config.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"]}), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    command = [debian.file("prometheus", "usr/bin/prometheus"), f"--config.file={tmp_path}/config.yml"]
    command += [f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={address}"]
    with open(tmp_path / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:

            def fires(*names):
                try:
                    return FiringAlerts(f"http://{address}", names).ask()
                except NpuError as exc:
                    assert "refused" in exc.message or "503" in exc.message, exc.message
                    return None

            end = time.monotonic() + PATIENCE
            while fires("Ceph.*", "Other") != "the alert CephDown fires (npu_upgrade_alerts)":
                assert time.monotonic() < end and server.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
                time.sleep(0.2)
            # One that is pending, a part of a name, and a quote in a name.
            for name in ("NotYet", "Ceph", 'CephDown"\\d'):
                assert FiringAlerts(f"http://{address}", [name]).refusal() is None, name
            assert "it answers 400: " in str(FiringAlerts(f"http://{address}", ["a("]).refusal())
        finally:
            server.terminate()
