# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape that data from outside must have before it is used: types, bounds and sizes.

A shape is a function of (value, the name of its place). It raises Misfit, or returns nothing.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

# What the API server takes for the name of a Node. It stands in commands that people copy into a shell.
NODE_NAME = r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


# A time in UTC.
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
# The name of a field that is told as it is.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# Levels of objects and lists. What is nested more deeply than copy and repr can follow must not come in.
_MOST_LEVELS = 32

# (the value, the name of its place). Raises Misfit.
Shape = Callable[[Any, str], None]


class Misfit(ValueError):
    """Which place has what wrong, as a phrase."""


def load(text: object, most: int) -> Any:
    """The JSON value in ``text`` of at most so many characters. Raises Misfit."""
    if not isinstance(text, str):
        raise Misfit("it is %s, not a string" % _called(text))
    if len(text) > most:
        raise Misfit("it has %d characters, which is more than %d" % (len(text), most))
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise Misfit("it is nested too deeply") from None
    except ValueError as exc:
        raise Misfit("it is not JSON (%s)" % exc) from None
    if text.count("[") + text.count("{") < _MOST_LEVELS:
        return value
    level = [value]
    for _number in range(_MOST_LEVELS):
        level = [inner for entry in level for inner in _entries(entry)]
        if not level:
            return value
    raise Misfit("it is nested too deeply")


def _entries(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _finite(text: str) -> float:
    """1e400 would be written back as Infinity, which is not JSON."""
    number_ = float(text)
    return number_ if math.isfinite(number_) else _no_number(shown(text))


def _no_number(name: str) -> NoReturn:
    raise ValueError("%s is no number" % name)


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def text(most: int = 1024, pattern: str | None = None, called: str = "such a string") -> Shape:
    expression = re.compile(pattern) if pattern else None

    def shape(value: Any, where: str) -> None:
        if not isinstance(value, str):
            raise Misfit("%s is %s, not a string" % (where, _called(value)))
        if len(value) > most:
            raise Misfit("%s has %d characters, which is more than %d" % (where, len(value), most))
        if expression and not expression.fullmatch(value):
            raise Misfit("%s is %s, which is not %s" % (where, shown(value), called))

    return shape


def number(least: float = 0, most: float = 2**53, real: bool = False) -> Shape:
    kinds = (int, float) if real else (int,)

    def shape(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise Misfit("%s is %s, not a number" % (where, _called(value)))
        if not least <= value <= most:
            raise Misfit("%s is %s, which is not between %s and %s" % (where, shown(value), least, most))

    return shape


def flag(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise Misfit("%s is %s, not true or false" % (where, _called(value)))


def anything(_value: Any, _where: str) -> None:
    pass


def one_of(*choices: Any) -> Shape:
    def shape(value: Any, where: str) -> None:
        if value not in choices:
            raise Misfit("%s is %s, which this version does not know" % (where, shown(value)))

    return shape


def optional(inner: Shape) -> Shape:
    def shape(value: Any, where: str) -> None:
        if value is not None:
            inner(value, where)

    return shape


def listing(inner: Shape, most: int = 1000) -> Shape:
    def shape(value: Any, where: str) -> None:
        if not isinstance(value, list):
            raise Misfit("%s is %s, not a list" % (where, _called(value)))
        if len(value) > most:
            raise Misfit("%s has %d entries, which is more than %d" % (where, len(value), most))
        for number_, entry in enumerate(value):
            inner(entry, "%s[%d]" % (where, number_))

    return shape


def table(inner: Shape, most: int = 1000, names: Shape | None = None) -> Shape:
    """A dictionary with names that are not known beforehand. ``names``: the shape of each, None for any."""

    def shape(value: Any, where: str) -> None:
        _dictionary(value, where, most)
        for name, entry in value.items():
            if names is not None:
                names(name, "a name in %s" % where)
            inner(entry, _inside(where, name))

    return shape


def fields(required: Iterable[str] | None = None, **known: Shape) -> Shape:
    """A dictionary with fields that are known; others are let be, for there may be newer versions. Each may be missing but
    those in ``required``."""

    def shape(value: Any, where: str) -> None:
        _dictionary(value, where, 1000)
        for name in required or ():
            if name not in value:
                raise Misfit("%s is missing" % _inside(where, name))
        for name, inner in known.items():
            if name in value:
                inner(value[name], "%s.%s" % (where, name) if where else name)

    return shape


def of(kind: Any) -> Shape:
    """The shape of a type: bool, int, float or str; such a type, a list, a dictionary or a TypedDict of what has a shape; any of
    these or None. ``Annotated`` names a shape of its own."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return inner[1]
    if origin in (typing.Union, types.UnionType):
        (only,) = (entry for entry in inner if entry is not types.NoneType)
        return optional(of(only))
    if origin is list:
        return listing(of(inner[0]))
    if origin is dict:
        return table(of(inner[1]))
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return fields(sorted(kind.__required_keys__), **{name: of(hint) for name, hint in hints.items()})
    plain: dict[object, Shape] = {bool: flag, int: number(), float: number(real=True), str: text(), typing.Any: anything}
    return plain[kind]


def _dictionary(value: Any, where: str, most: int) -> None:
    if not isinstance(value, dict):
        raise Misfit("%s is %s, not an object" % (where or "it", _called(value)))
    if len(value) > most:
        raise Misfit("%s has %d entries, which is more than %d" % (where or "it", len(value), most))
    for name in value:
        if not isinstance(name, str):
            raise Misfit("%s has a name that is not a string" % (where or "it"))


def _inside(where: str, name: str) -> str:
    name = name if _PLAIN_NAME.fullmatch(name) else shown(name)
    return "%s.%s" % (where, name) if where else name


def shown(value: Any) -> str:
    """A value from outside, for use in a sentence: quoted, on one line, short."""
    told = repr(value)
    return told if len(told) <= 60 else told[:57] + "..."


def _called(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "true or false", dict: "an object", list: "a list", str: "a string"}
    return next((told for kind, told in kinds.items() if isinstance(value, kind)), "a number")
