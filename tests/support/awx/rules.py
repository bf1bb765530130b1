# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX 24.6.1 says of surveys, of answers to them and of schedules: the same verdicts, in other words.

Surveys: _validate_spec_data in awx/api/views/__init__.py. Answers: SurveyJobTemplateMixin in awx/main/models/mixins.py.
Schedules: SchedulePreviewSerializer in awx/api/serializers.py.
"""

from __future__ import annotations

import re

_TEXTS = ("text", "textarea", "password")
_TYPES = {**dict.fromkeys(_TEXTS + ("multiplechoice",), str), "multiselect": (str, list), "integer": int, "float": (float, int)}


def survey_problem(spec):
    """Why AWX refuses a survey_spec, or None."""
    for key, kind in (("name", str), ("description", str), ("spec", list)):
        if not isinstance(spec.get(key), kind):
            return "Field '%s' is missing from survey spec, or of a wrong type." % key
    if not spec["spec"]:
        return "'spec' doesn't contain any items."
    seen = set()
    for index, item in enumerate(spec["spec"]):
        problem = _item_problem(item)
        if problem is None and item["variable"] in seen:
            problem = "'variable' '%s' duplicated" % item["variable"]
        if problem:
            return "survey question %d: %s" % (index, problem)
        seen.add(item["variable"])
    return None


def _item_problem(item):
    for key, kind in (("type", str), ("question_name", str), ("variable", str), ("required", bool)):
        if not isinstance(item.get(key), kind):
            return "'%s' missing or of a wrong type" % key
    if item["type"] not in _TYPES:
        return "type %s is not allowed" % item["type"]
    default = item.get("default", "")
    if default != "" and not isinstance(default, _TYPES[item["type"]]):
        return "default %r is of a wrong type" % (default,)
    for key in ("min", "max"):
        if item.get(key) is not None and not isinstance(item[key], int):
            return "%s limit expected to be integer" % key
    if item["type"] in ("multiplechoice", "multiselect"):
        if "choices" not in item:
            return "must specify choices"
        choices = _choices(item)
        wanted = default.splitlines() if isinstance(default, str) else default
        if item["type"] == "multiplechoice" and len(wanted) > 1:
            return "can only have one default value"
        if any(choice not in choices for choice in wanted):
            return "default choice must be answered from the choices listed"
    if isinstance(default, str) and default.startswith("$encrypted$") and item["type"] != "password":
        return "$encrypted$ is a reserved keyword"
    return None


def answer_problems(survey, answers, any_variable=False):
    """Why AWX refuses variables for a template with that survey, as its error document; {} when it does not."""
    problems, errors = [], {}
    questions = {item["variable"]: item for item in survey.get("spec", [])}
    for name, item in questions.items():
        if name in answers:
            problems += _answer_problem(item, answers[name])
    if problems:
        errors["variables_needed_to_start"] = problems
    others = sorted(set(answers) - set(questions))
    if others and not any_variable:
        errors["extra_data"] = ["Variables %s are not allowed on launch." % ", ".join(others)]
    return errors


def _answer_problem(item, answer):
    kind, name = item["type"], item["variable"]
    if kind in _TEXTS:
        if not isinstance(answer, str):
            return ["Value %s for '%s' expected to be a string." % (answer, name)]
        return _bounds_problem(item, len(answer))
    if kind == "integer":
        if type(answer) is not int:  # pylint: disable=unidiomatic-typecheck
            return ["Value %s for '%s' expected to be an integer." % (answer, name)]
        return _bounds_problem(item, answer)
    if kind == "multiplechoice" and answer not in _choices(item):
        return ["Value %s for '%s' expected to be one of %s." % (answer, name, _choices(item))]
    return []


def _bounds_problem(item, value):
    low, high = item.get("min"), item.get("max")
    if low not in ("", None) and value < low:
        return ["'%s' is too small (must be at least %s)." % (item["variable"], low)]
    if high not in ("", None) and value > high:
        return ["'%s' is too large (must be no more than %s)." % (item["variable"], high)]
    return []


def _choices(item):
    choices = item["choices"]
    return [choice for choice in choices.splitlines() if choice.strip()] if isinstance(choices, str) else choices


def rrule_problems(text):
    """Why AWX refuses an rrule, without its parser's own words."""
    problems = []
    starts = re.findall(r"DTSTART(?:;[^:]+)?:[0-9]+T[0-9]+Z?", text)
    if len(starts) != 1:
        problems.append("Valid DTSTART required in rrule, once.")
    if re.search(r"DTSTART:[0-9]+T[0-9]+ ", text):
        problems.append("DTSTART cannot be a naive datetime.")
    rules = re.findall(r"RULE:[^\s]*", text)
    if not rules:
        problems.append("One or more rule required in rrule.")
    for word in ("exdate:", "rdate:"):
        if word in text.lower():
            problems.append("%s not allowed in rrule." % word)
    for rule in rules:
        if "interval" not in rule.lower():
            problems.append("INTERVAL required in rrule: %s" % rule)
        elif "secondly" in rule.lower():
            problems.append("SECONDLY is not supported: %s" % rule)
        if re.search(r"BYDAY[:=][0-9]+[a-zA-Z]{2}", rule):
            problems.append("BYDAY with numeric prefix not supported: %s" % rule)
        if "COUNT" in rule and "UNTIL" in rule:
            problems.append("RRULE may not contain both COUNT and UNTIL: %s" % rule)
    return problems


def walk(nodes, results):
    """How a workflow runs, as WorkflowDAG in awx/main/scheduler/dag_workflow.py has it: (the nodes that run, whether it has failed).

    ``nodes``: by identifier, {success, failure, always}: lists of identifiers; ``results``: by identifier, how a node ends, by default
    successful. A node that failed, was denied or cancelled has failed the workflow if nothing follows it for that case.
    """
    children = {child for edges in nodes.values() for following in edges.values() for child in following}
    due, ran, failed = [name for name in nodes if name not in children], set(), False
    while due:
        name = due.pop()
        if name in ran:
            continue
        ran.add(name)
        fine = results.get(name, "successful") == "successful"
        edges = nodes[name]
        if not fine and not edges.get("failure") and not edges.get("always"):
            failed = True
        due += edges.get("always", []) + edges.get("success" if fine else "failure", [])
    return ran, failed
