# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings as the code takes them: complete, with the types and the defaults of the role's argument spec.

People, surveys and the command line give strings: "false", "2", "" for the default, JSON text for a dictionary. This is the only
place that reads them. What makes no sense raises an NpuError that names the variable and says what it must be.
"""

from __future__ import annotations

import decimal
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.common.validation import check_type_bool, check_type_dict, check_type_str
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import is_empty

NUMBER_OR_PERCENTAGE = "a whole number, 0 or more, or a percentage, 1% to 100%"
# Of a whole number that anything here can be.
_MOST_DIGITS = 18
_PERCENTAGE = re.compile(r"([1-9][0-9]?|100)%\Z")


def of_host(role: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of ``role`` by their names without its prefix, from the variables of a host."""
    names = {name: "%s_%s" % (role, name) for name in spec_defaults.own_options(role)}
    return settings(role, {name: variables[variable] for name, variable in names.items() if variable in variables})


def settings(role: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The settings of ``role`` by their names without its prefix, with the ``given`` values, named alike."""
    options, given = spec_defaults.own_options(role), given or {}
    _check_names(role, list(options), given)
    return {name: _value("%s_%s" % (role, name), option, given.get(name)) for name, option in options.items()}


def of_variable(variable: str, given: Any) -> Any:
    """The value of one variable, such as one that belongs to a playbook and to no role."""
    return _value(variable, spec_defaults.option(variable), given)


def _check_names(what: str, known: list[str], given: Mapping[str, Any]) -> None:
    unknown = sorted(str(name) for name in given if name not in known)
    if unknown:
        raise NpuError("%s has no %s; it has %s" % (what, ", ".join(map(repr, unknown)), ", ".join(known)))


def _value(name: str, option: spec_defaults.Option, value: Any) -> Any:
    if is_empty(value):
        return spec_defaults.default_of(option)
    kind = option["type"]
    if kind == "dict":
        return _dictionary(name, option, value)
    if kind == "list":
        return _list(name, option, value)
    if kind == "raw" and name not in spec_defaults.NUMBERS_OR_PERCENTAGES:
        return value
    try:
        if kind == "bool":
            return check_type_bool(value)
        if kind == "int":
            number = _number(name, value)
            if number not in option.get("choices", [number]):
                raise TypeError
            return number
        if kind == "raw":
            return number_or_percentage(name, value)
        text = check_type_str(value, allow_conversion=not isinstance(value, (Mapping, list)))
    except TypeError:
        raise NpuError("%s is %r; it must be %s" % (name, value, _meaning(name, option)))
    if "choices" in option and text not in option["choices"]:
        raise NpuError("%s is %r; it must be %s" % (name, value, _meaning(name, option)))
    # Relative to where the command was started, whichever file names it.
    return os.path.abspath(os.path.expanduser(text)) if kind == "path" else text


def whole_number(value: Any) -> int:
    """Of a number, or of text such as ``2`` or ``1e3``. Raises TypeError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    try:
        number = decimal.Decimal(value.strip() if isinstance(value, str) else value)
    except decimal.DecimalException:
        raise TypeError from None
    # Before the conversion: 1e999999999 would have as many digits, and there is none for infinity.
    if not number.is_finite() or number.adjusted() >= _MOST_DIGITS or number != int(number):
        raise TypeError
    return int(number)


def _number(name: str, value: Any) -> int:
    number = whole_number(value)
    least, most = spec_defaults.range_of(name)
    if number < least or (most is not None and number > most):
        raise TypeError
    return number


def number_or_percentage(name: str, value: Any) -> int | str:
    """The value of one of the variables that may be either. Raises TypeError, see NUMBER_OR_PERCENTAGE."""
    text = value.strip() if isinstance(value, str) else ""
    if not text.endswith("%"):
        return _number(name, value)
    if not _PERCENTAGE.match(text):
        raise TypeError
    return text


def _dictionary(name: str, option: spec_defaults.Option, value: Any) -> dict[str, Any]:
    try:
        given = check_type_dict(dict(value) if isinstance(value, Mapping) else value)
    except TypeError:
        raise NpuError("%s is %r; it must be a mapping%s" % (name, value, _keys(option)))
    if "options" not in option:
        return given
    _check_names(name, list(option["options"]), given)
    return {key: _value("%s.%s" % (name, key), inner, given.get(key)) for key, inner in option["options"].items()}


def _list(name: str, option: spec_defaults.Option, value: Any) -> list[Any]:
    """Of dictionaries, of texts, or of choices; as JSON text from a command line."""
    try:
        entries = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        entries = None
    if "choices" in option:
        return _choices(name, option["choices"], value if entries is None else entries)
    if option["elements"] == "str":
        return _texts(name, value if entries is None else entries)
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise NpuError("%s is %r; it must be a list of mappings%s" % (name, value, _keys(option)))
    return [_dictionary("%s[%d]" % (name, number), option, entry) for number, entry in enumerate(entries)]


def _keys(option: spec_defaults.Option) -> str:
    return " with %s" % ", ".join(option["options"]) if "options" in option else ""


def _texts(name: str, value: Any) -> list[str]:
    """Or a single one."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, Sequence) or any(not isinstance(entry, str) or not entry for entry in found):
        raise NpuError("%s is %r; it must be a list of texts" % (name, value))
    return [str(entry) for entry in found]


def _choices(name: str, choices: list[str], value: Any) -> list[str]:
    """Or as text with commas."""
    found = [text.strip() for text in value.split(",")] if isinstance(value, str) else value
    if not isinstance(found, Sequence) or any(entry not in choices for entry in found):
        raise NpuError("%s is %r; it must be a list of %s" % (name, value, ", ".join(choices)))
    return list(found)


def _meaning(name: str, option: spec_defaults.Option) -> str:
    if "choices" in option:
        return " or ".join(map(str, option["choices"]))
    if option["type"] == "bool":
        return "true or false"
    if option["type"] == "raw":
        return NUMBER_OR_PERCENTAGE
    if option["type"] != "int":
        return "text"
    least, most = spec_defaults.range_of(name)
    return "a whole number, %d %s" % (least, "or more" if most is None else "to %d" % most)
