# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a client writes into an annotation is a value of the declared form, or refused as declared."""

from __future__ import annotations

import copy
import json
import types
import typing

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers, schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import Misfit
from hypothesis import given
from hypothesis import strategies as st

from support.properties import bounded, changed, hostile_json, megabytes, values

STEPS, REASONS = ("cordon-required", "reboot-required"), ("upgrade", "recovery")
THEN = "2026-11-21T11:59:50Z"
RECORD = {
    "run": "r1", "job": {"id": "1", "url": "https://awx.example/1", "user": "u", "workflow": None}, "generation": 3, "first_generation": 2,
    "heartbeat": THEN, "reason": "upgrade", "from": {"version": "25.5.0", "release": "a"}, "to": {"version": "1", "release": "b", "digest": "c"},
    "step": "reboot-required", "uid": "u", "unschedulable": False, "boot_id": None, "attempt": 1, "started": THEN, "failure": "x",
    "approval": {"time": THEN, "manager": "kubectl", "by": "u"}, "times": {"cordon-required": THEN}, "recoveries": [THEN], "format": 1,
    "chips": {"0000:c1:00.0/0": "OK"}, "ports": {"0": "UP 10.64.11.10"},
}  # fmt: skip
WEDGE = {"since": THEN, "reason": "hangs", "boot_id": "boot-a", "probes": 3}
HALTED = {"who": "r1", "why": "a failed", "when": THEN, "reason": "upgrade", "node": "a.b-c"}
SLOTS = {
    "max": 2, "halted": HALTED, "holders": {"a": {"run": "r1", "since": THEN, "reason": "upgrade", "pool": "p", "aside": False}, "b": {"run": "r2"}},
    "proved": ["p 1"], "served": {"node": "a.b-c", "when": THEN},
}  # fmt: skip
MARK = {"run": "r1", "since": THEN, "uid": "u", "restore": {"spec": {"replicas": 3}}}
READERS = {
    "record": (lambda text: data_annotations.parse(text, STEPS, REASONS), RECORD, ("run", "generation")),
    "wedge": (data_annotations.wedge, WEDGE, ("reason", "since")),
    "slots": (data_annotations.slots, SLOTS, ()),
    "mark of replicas": (lambda text: data_annotations.mark(text, 0), MARK, ("run", "since", "uid", "restore")),
    "mark of suspend": (lambda text: data_annotations.mark(text, False), MARK, ("run", "since", "uid", "restore")),
}


def check(name, text):
    """The value if it may be worked with, None if it is refused as declared."""
    read, _valid, required = READERS[name]
    try:
        with bounded():
            value = read(text)
    except Misfit as exc:
        assert len(str(exc)) < 2000 and str(exc).isprintable(), "it stands in a sentence"
        return None
    assert isinstance(value, dict) and all(field in value for field in required)
    # What everybody does with it: copied before it is changed, written back, put into results.
    with bounded():
        assert json.loads(json.dumps(copy.deepcopy(value), allow_nan=False)) == json.loads(text)
        repr(value)
    return value


@given(st.sampled_from(sorted(READERS)), st.data())
def test_an_annotation_is_read_or_refused(name, data):
    check(name, data.draw(hostile_json(READERS[name][1])))


@given(st.sampled_from(sorted(READERS)), megabytes({"[", '{"a":', '"', "1", "\\u0000", '{"run":"', " ", "1e"}))
def test_megabytes_are_refused_in_time(name, text):
    assert check(name, text) is None


words = st.one_of(st.none(), st.text(max_size=256))
drivers = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"version": words, "release": words, "digest": words}))
records = st.fixed_dictionaries(
    {"run": st.text(max_size=256), "generation": st.integers(0, 2**53)},
    optional={
        "first_generation": st.integers(0, 2**53), "heartbeat": words, "reason": st.sampled_from((*REASONS, None)),
        "step": st.sampled_from((*STEPS, None)), "unschedulable": st.sampled_from((True, False, None)), "boot_id": words,
        "attempt": st.integers(0, 10**6), "from": drivers, "to": drivers, "times": st.dictionaries(st.text(max_size=40), words, max_size=5),
        "failure": st.one_of(words, st.integers(8000, 20000).map("y".__mul__)), "recoveries": st.lists(st.text(max_size=64), max_size=5),
        "of another version": values,
    },
)  # fmt: skip


@given(records)
def test_what_is_written_can_be_read_again(record):
    written = data_annotations.bounded(record)
    text = json.dumps(written)
    if "NaN" in text or "Infinity" in text or "9" * 4301 in text:
        return  # none of ours has a number that is not in JSON
    assert data_annotations.parse(text, STEPS, REASONS) == written
    assert {**record, "failure": None} == {**written, "failure": None}
    assert len(written.get("failure") or "") <= 8 * 1024 + 3
    missing = data_annotations.missing(written)
    assert all(written.get(name) is None for name in missing)


# Of types with a shape of their own.
SHAPED = (
    (host_answers.Kernel, "6.6.0-145.x86_64"),
    (host_answers.Address, "10.0.0.1"),
    (host_answers.Link, "UP"),
    (host_answers.NetworkMode, "warn"),
)


@st.composite
def fitting(draw, kind, depth=0):
    """A value of a type of ``host_answers``; None for a shape of its own, which draws no value."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    for shaped, value in SHAPED:
        if kind == shaped:
            return value
    if origin is typing.Annotated:
        own = {str: "/x", int: 1, list[str]: ["7.0.0", "7.7.99"]}
        return own.get(inner[0], [] if typing.get_origin(inner[0]) is list else None)
    if origin in (typing.Union, types.UnionType):
        (only,) = (entry for entry in inner if entry is not types.NoneType)
        value = draw(st.one_of(st.none(), fitting(only, depth)))
        return None if only is host_answers.Facts.__annotations__["family"] else value
    if origin is list:
        return draw(st.lists(fitting(inner[0], depth + 1), max_size=2))
    if origin is dict:
        return draw(st.dictionaries(st.text(max_size=5), fitting(inner[1], depth + 1), max_size=2))
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {
            name: draw(fitting(hint, depth + 1))
            for name, hint in hints.items()
            if name in kind.__required_keys__ or draw(st.booleans())
        }
    plain = {bool: st.booleans(), int: st.integers(0, 1000), float: st.floats(0, 2**53), str: st.just("/x"), typing.Any: values}
    return draw(plain[kind])


@given(st.sampled_from(("Facts", "Validation", "View", "RebootAnswer", "FirmwareAnswer", "Verdict")), st.data())
def test_what_fits_its_type_is_taken(name, data):
    kind = getattr(host_answers, name)
    schema.of(kind)(data.draw(fitting(kind)), "")


@given(st.sampled_from(("Facts", "Validation", "View", "RebootAnswer", "FirmwareAnswer", "Verdict")), st.data())
def test_what_a_host_answers_is_taken_or_refused(name, data):
    answer = data.draw(fitting(getattr(host_answers, name)))
    for _number in range(data.draw(st.integers(1, 3))):
        answer = data.draw(changed(answer))
    with bounded():
        if name in ("Facts", "Validation"):
            why = host_answers.why_not(*((answer,) if name == "Facts" else ({}, answer)))
            assert why is None or why.startswith("its facts are not valid: ")
            return
        reader = {
            "View": host_answers.view,
            "RebootAnswer": host_answers.reboot_answer,
            "FirmwareAnswer": host_answers.firmware_answer,
            "Verdict": host_answers.verdict,
        }[name]
        try:
            assert reader(answer) is answer
        except NpuError as exc:
            assert exc.message.startswith("What the host answered is not valid: ")
        else:
            assert getattr(host_answers, name).__required_keys__ <= set(answer)
