# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rulebooks name alerts, playbooks and variables that exist."""

from __future__ import annotations

import os
import re

import pytest
import yaml

CHECKOUT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
RULEBOOKS = sorted(os.listdir(os.path.join(CHECKOUT, "extensions", "eda", "rulebooks")))
ACTIONS = {"heal.yml": "run_playbook", "heal_awx.yml": "run_job_template", "join.yml": "run_playbook"}
GUIDES = {"heal.yml": "heal-eda.md", "heal_awx.yml": "heal-eda.md", "join.yml": "join.md"}
# Those that an alert starts.
ALERTED = ["heal.yml", "heal_awx.yml"]


def text(*path):
    with open(os.path.join(CHECKOUT, *path), encoding="utf-8") as stream:
        return stream.read()


def ruleset_of(name):
    (ruleset,) = yaml.safe_load(text("extensions", "eda", "rulebooks", name))
    return ruleset


@pytest.fixture(params=ALERTED)
def rulebook(request):
    """(file name, its only ruleset)."""
    return request.param, ruleset_of(request.param)


def alerts():
    """{alert: labels}"""
    groups = yaml.safe_load(text("roles", "npu_node_agent", "files", "alerts.yml"))["groups"]
    return {rule["alert"]: rule["labels"] for group in groups for rule in group["rules"] if "alert" in rule}


def test_every_rulebook_is_looked_at():
    assert RULEBOOKS == sorted(ACTIONS)


def test_it_waits_for_an_alert_that_there_is(rulebook):
    _name, ruleset = rulebook
    for rule in ruleset["rules"]:
        named = set(re.findall(r'"(Npu\w+)"', rule["condition"]))
        assert named == {"NpuDriverWedged"}
        assert named <= set(alerts())
        # Prometheus adds alertname by itself; other labels would have to be those of the rule.
        labels = set(re.findall(r"labels\.(\w+)", rule["condition"]))
        assert labels - {"alertname"} <= set(alerts()["NpuDriverWedged"])
        # Not when it is resolved.
        assert '"firing"' in rule["condition"]


def test_it_runs_heal(rulebook):
    name, ruleset = rulebook
    for rule in ruleset["rules"]:
        ((action, options),) = rule["action"].items()
        assert action == ACTIONS[name]
        playbook = re.search(r"npuops\.ascend\.(\w+)", options["name"]).group(1)
        assert playbook == "heal"
        assert os.path.exists(os.path.join(CHECKOUT, "playbooks", playbook + ".yml"))
        # A run that watches does not end, and one for the alert's host alone does not see the cluster.
        assert options.get("extra_vars", {}).get("npu_heal_watch") is (False if action == "run_playbook" else None)
        assert options.get("include_events", False) is False


def test_a_notification_that_is_repeated_runs_nothing(rulebook):
    _name, ruleset = rulebook
    assert ruleset["execution_strategy"] == "sequential"
    for rule in ruleset["rules"]:
        (key,) = rule["throttle"]["group_by_attributes"]
        # One alert, or one group of them, whatever their number.
        assert key in ("event.alert.fingerprint", "event.payload.groupKey")
        assert rule["throttle"]["once_within"] == "10 minutes"


def test_no_run_is_limited_to_the_host_of_a_message(rulebook):
    _name, ruleset = rulebook
    (source,) = ruleset["sources"]
    assert source["ansible.eda.alertmanager"]["data_host_path"] == ""


def test_nodes_that_have_joined_are_looked_for_one_run_at_a_time():
    """The playbook looks at the whole cluster, and the next tick may come while a node is set up."""
    ruleset = ruleset_of("join.yml")
    assert ruleset["execution_strategy"] == "sequential"
    (source,), (rule,) = ruleset["sources"], ruleset["rules"]
    assert source["ansible.eda.tick"] == {"delay": "{{ npu_eda_join_interval | default(300) }}"}
    assert rule["action"] == {"run_playbook": {"name": "npuops.ascend.join"}}
    assert os.path.exists(os.path.join(CHECKOUT, "playbooks", "join.yml"))


def test_the_guide_names_every_variable_and_rulebook():
    for name in RULEBOOKS:
        guide = text("docs", GUIDES[name])
        assert "npuops.ascend." + name[: -len(".yml")] in guide
        for variable in re.findall(r"npu_eda_\w+", text("extensions", "eda", "rulebooks", name)):
            assert variable in guide
