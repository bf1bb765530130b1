# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Surveys of AWX, made of the options that roles document.

A question without an answer is not passed on, so that what the inventory says counts. That is why a question has no default
unless npu_awx_survey_defaults has one: an answer overrides all variables of hosts and groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults, valid_settings

# What AWX's own form begins with.
_TEXT_LENGTH = 1024


def survey(variables: Iterable[str], questions: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The survey_spec that asks for ``variables``, in that order.

    ``questions``: by variable; ``defaults``: by variable, the answer that the form opens with. Variables of other surveys in
    them are ignored.
    """
    items = [_item(name, questions[name], spec_defaults.option(name), defaults.get(name)) for name in variables]
    return {"name": "", "description": "", "spec": items}


def unknown(defaults: Mapping[str, Any], questions: Mapping[str, str]) -> str | None:
    """A sentence for defaults of variables that no survey asks for, or None."""
    names = sorted(set(defaults) - set(questions))
    if not names:
        return None
    return "npu_awx_survey_defaults has %s, which no survey asks for. They ask for %s." % (
        ", ".join(names),
        ", ".join(sorted(questions)),
    )


def _item(name: str, question: str, option: spec_defaults.Option, default: Any) -> dict[str, Any]:
    item = {
        "variable": name,
        "question_name": question,
        "question_description": _description(option),
        "required": False,
    }
    item.update(_type(name, option))
    item["default"] = "" if default is None else _answer(name, item, default)
    return item


def _type(name: str, option: spec_defaults.Option) -> dict[str, Any]:
    if option.get("type") == "bool":
        return {"type": "multiplechoice", "choices": "true\nfalse"}
    if option.get("choices"):
        return {"type": "multiplechoice", "choices": "\n".join(option["choices"])}
    if option.get("type") == "int":
        # Without a bound there is no key: null is a bound of 0 to AWX's form.
        least, most = spec_defaults.range_of(name)
        return {"type": "integer", "min": least, **({} if most is None else {"max": most})}
    # An empty text would be passed on, were it not too short.
    return {"type": "text", "min": 1, "max": _TEXT_LENGTH}


def _answer(name: str, item: dict[str, Any], value: Any) -> str | int:
    """``value`` with the type that AWX demands of an answer."""
    if item["type"] == "multiplechoice":
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text not in item["choices"].splitlines():
            raise _wrong(name, value, " or ".join(item["choices"].splitlines()))
        return text
    if item["type"] == "integer":
        try:
            number = valid_settings.whole_number(value)
        except TypeError:
            number = None
        if number is None or number < item.get("min", number) or number > item.get("max", number):
            raise _wrong(name, value, _bounds(item))
        return number
    if name in spec_defaults.NUMBERS_OR_PERCENTAGES:
        try:
            return str(valid_settings.number_or_percentage(name, value))
        except TypeError:
            raise _wrong(name, value, valid_settings.NUMBER_OR_PERCENTAGE) from None
    return str(value)


def _bounds(item: dict[str, Any]) -> str:
    bounds = ["%d or more" % item["min"]] if "min" in item else []
    bounds += ["%d or less" % item["max"]] if "max" in item else []
    return ", ".join(["a whole number"] + bounds)


def _wrong(name: str, value: Any, meaning: str) -> NpuError:
    return NpuError("npu_awx_survey_defaults.%s is %r; it must be %s" % (name, value, meaning))


def _description(option: spec_defaults.Option) -> str:
    """What the role says first, and what an unanswered question means."""
    text = option["description"]
    text = text if isinstance(text, str) else text[0]
    text = re.sub(r"\b[A-Z]\(([^)]*)\)", r"\1", " ".join(text.split()))
    # What the choices are is in the sentences that follow.
    sentence = text if option.get("choices") else re.split(r"(?<=\.)\s", text)[0]
    sentence = sentence.rstrip(".") + "."
    default = option.get("default")
    shown = str(default).lower() if isinstance(default, bool) else default
    if shown in (None, ""):
        return sentence + " Empty: the value of the inventory."
    return "%s Empty: the value of the inventory, or else %s." % (sentence, shown)
