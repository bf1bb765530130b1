# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_survey import npu_survey

from support.awx import rules as awx_rules

QUESTIONS = {
    "npu_driver_version": "Driver version",
    "npu_upgrade_auto": "Auto?",
    "npu_upgrade_on_blocked": "Blocked?",
    "npu_upgrade_max_parallel": "How many?",
    "npu_heal_storm_percent": "Storm?",
    "npu_validate_timeout": "Wait?",
}


def items(defaults=None, names=tuple(QUESTIONS)):
    spec = npu_survey(list(names), QUESTIONS, defaults)
    assert awx_rules.survey_problem(spec) is None
    return {item["variable"]: item for item in spec["spec"]}


def test_types_are_those_of_the_role():
    asked = items()
    assert list(asked) == list(QUESTIONS)
    assert asked["npu_driver_version"]["type"] == "text"
    assert (asked["npu_upgrade_auto"]["type"], asked["npu_upgrade_auto"]["choices"]) == ("multiplechoice", "true\nfalse")
    assert asked["npu_upgrade_on_blocked"]["choices"] == "refuse\ndefer"
    assert asked["npu_validate_timeout"]["type"] == "integer"
    # It may be a percentage.
    assert asked["npu_upgrade_max_parallel"]["type"] == "text"


def test_what_is_not_answered_is_not_passed_on():
    """AWX takes a default for an answer as soon as its own rules let it pass."""
    for item in items().values():
        assert item["required"] is False
        assert item["default"] == ""
        assert awx_rules.answer_problems({"spec": [item]}, {item["variable"]: ""})


def test_bounds():
    asked = items()
    # null would be a bound of 0 to AWX's form.
    assert "max" not in asked["npu_validate_timeout"]
    assert (asked["npu_heal_storm_percent"]["min"], asked["npu_heal_storm_percent"]["max"]) == (0, 100)


def test_descriptions():
    asked = items()
    assert asked["npu_upgrade_auto"]["question_description"] == (
        "Whether nodes are rebooted without an approval. Empty: the value of the inventory, or else false."
    )
    # What the choices are.
    assert "refuse touches no node. defer upgrades" in asked["npu_upgrade_on_blocked"]["question_description"]


def test_defaults_become_answers():
    asked = items(
        {
            "npu_driver_version": "25.5.1",
            "npu_upgrade_auto": True,
            "npu_upgrade_on_blocked": "defer",
            "npu_upgrade_max_parallel": 2,
        }
    )
    assert asked["npu_driver_version"]["default"] == "25.5.1"
    assert asked["npu_upgrade_auto"]["default"] == "true"
    assert asked["npu_upgrade_on_blocked"]["default"] == "defer"
    assert asked["npu_upgrade_max_parallel"]["default"] == "2"
    assert asked["npu_validate_timeout"]["default"] == ""


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        (
            {"npu_upgrade_on_blocked": "ignore"},
            "npu_awx_survey_defaults.npu_upgrade_on_blocked is 'ignore'; it must be refuse or defer",
        ),
        ({"npu_upgrade_auto": "maybe"}, "npu_awx_survey_defaults.npu_upgrade_auto is 'maybe'; it must be true or false"),
        ({"npu_upgrade_max_parallel": "two"}, "npu_upgrade_max_parallel is 'two'; it must be a whole number, 0 or more"),
        ({"npu_upgrade_max_parallel": True}, "npu_upgrade_max_parallel is True; it must be a whole number, 0 or more"),
        ({"npu_heal_storm_percent": 101}, "is 101; it must be a whole number, 0 or more, 100 or less"),
        (
            {"npu_upgrade_drain": {}},
            "npu_awx_survey_defaults has npu_upgrade_drain, which no survey asks for. They ask for npu_driver_version,",
        ),
    ],
)
def test_wrong_defaults(defaults, message):
    with pytest.raises(AnsibleFilterError) as refusal:
        npu_survey(list(QUESTIONS), QUESTIONS, defaults)
    assert message in str(refusal.value)


def test_defaults_of_other_surveys_are_left_alone():
    assert list(items({"npu_upgrade_auto": True}, ["npu_driver_version"])) == ["npu_driver_version"]
