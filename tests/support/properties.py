# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the property tests (test_*_properties.py) share: how many examples they try, and damaged text and JSON.

Imports hypothesis, which hosts do not have: dev/python38 runs test_<module>.py only, and nothing that such a file imports may import
this.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal

from support.paths import CHECKOUT

# What hypothesis stores belongs to no commit.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(CHECKOUT / ".cache" / "hypothesis"))

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# A property may not depend on how fast the machine is, so no example has a deadline (``bounded`` counts CPU time).
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
# The same examples in each run: a failure is due to the change that is tested.
settings.register_profile("ci", derandomize=True, database=None, max_examples=60, **_COMMON)
# Other examples in each run; failing ones are tried first in the next.
settings.register_profile("deep", max_examples=3000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# For examples of megabytes, which take a tenth of a second each.
few = settings(settings(), max_examples=max(settings().max_examples // 6, 5))

_CPU_SECONDS = 20
# More than the interpreter's own limits for nesting and for the digits of a number.
_MANY = 4000

# Separators of lines for str.splitlines and not for others, control characters, wide and combining ones, digits of other scripts.
STRANGE = "\x00\x01\t\x0b\x0c\r\x1b\x1c\x85\u00a0\u00b2\u0301\u0663\u200b\u2028\u202e\u4e2d\uff11\ufeff\U0001f600"


@contextlib.contextmanager
def bounded(seconds=_CPU_SECONDS):
    """Fail after that many seconds of this process's CPU time. Regular expressions are also interrupted."""

    def over(_number, _frame):
        raise AssertionError("still at it after %d s of CPU time" % seconds)

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def megabytes(pieces):
    """Texts of one to two MiB made of one of ``pieces``, between two others."""
    piece = st.sampled_from(sorted(pieces))
    return st.builds(lambda first, middle, last: first + middle * (2**20 // len(middle) + 1) + last, piece, piece, piece)


@st.composite
def damaged(draw, texts, pieces=()):
    """One of ``texts`` (a strategy) after cuts, insertions, and lines that were lost, repeated or shuffled. ``pieces``: inserted."""
    text = draw(texts)
    inserted = st.one_of(st.text(STRANGE, min_size=1, max_size=3), st.sampled_from(sorted({"\n", *pieces})), st.text(max_size=8))
    for _number in range(draw(st.integers(1, 3))):
        how = draw(st.sampled_from(("cut", "insert", "replace", "number", "lose", "repeat", "shuffle")))
        here, there = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        lines = text.splitlines(True)
        if how == "cut":
            text = text[:here] + (text[there:] if draw(st.booleans()) else "")
        elif how == "insert":
            text = text[:here] + draw(inserted) + text[here:]
        elif how == "replace":
            text = text[:here] + draw(inserted) + text[min(there, here + 12) :]
        elif how == "number":
            numbers = [match.span() for match in re.finditer("[0-9]+", text)][:40]
            if numbers:
                here, there = draw(st.sampled_from(numbers))
                text = (
                    text[:here]
                    + draw(st.sampled_from(("9" * 5000, "0" * 5000, "-1", "1e9", "\uff11", "\u00b2", "")))
                    + text[there:]
                )
        elif how == "shuffle":
            text = "".join(draw(st.permutations(lines[:40]))) + "".join(lines[40:])
        elif lines:
            number = draw(st.integers(0, len(lines) - 1))
            lines[number : number + 1] = [] if how == "lose" else [lines[number]] * draw(st.integers(2, 4))
            text = "".join(lines)
    return text


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from((10**30, "", "\ud800", "9" * 5000, "y" * 300, "2026-11-21T12:00:00Z", "0001-01-01T00:00:00Z")),
    st.text(STRANGE, max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)


@st.composite
def nested(draw):
    """A JSON value that is nested deeply, most often as deeply as Python can just follow."""
    # hypothesis allows 2000 more than usual.
    depth = draw(st.one_of(st.integers(20, 3000), st.sampled_from((_MANY,))))
    inside = draw(st.sampled_from(("[", '{"a":')))
    return inside * depth + "1" + ("]" if inside == "[" else "}") * depth


@st.composite
def changed(draw, value):
    """``value`` with one place in it changed into something else: the further in, the more often."""
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        name = draw(st.sampled_from(sorted(value)))
        how = draw(st.sampled_from(("lose", "add", "inside", "inside", "inside", "inside")))
        if how == "lose":
            return {key: item for key, item in value.items() if key != name}
        if how == "add":
            return {**value, draw(st.text(max_size=8)): draw(values)}
        return {**value, name: draw(changed(value[name]))}
    if isinstance(value, list) and value and draw(st.booleans()):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(changed(value[place])), *value[place + 1 :]]
    return draw(values)


_MARK = "the place of a deeply nested value"


@st.composite
def hostile_json(draw, value):
    """Text that a client may write into an annotation in the place of ``value`` as JSON."""
    how = draw(st.sampled_from(("changed", "changed", "changed", "nested", "text", "nothing like it")))
    if how == "nothing like it":
        return draw(
            st.one_of(nested(), values.map(json.dumps), st.text(max_size=30), st.sampled_from(("NaN", "9e999", "1" * 5000, "{")))
        )
    if how == "text":
        return draw(damaged(st.just(json.dumps(value)), pieces=("NaN", "null", "1e400", "{", "]", '"', "\\ud800")))
    if how == "nested" and isinstance(value, dict):
        name = draw(st.sampled_from([*sorted(value), "a field of another version"]))
        return json.dumps({**value, name: _MARK}).replace(json.dumps(_MARK), draw(nested()))
    for _number in range(draw(st.integers(1, 3))):
        value = draw(changed(value))
    return json.dumps(value)
