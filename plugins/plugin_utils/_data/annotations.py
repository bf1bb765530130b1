# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of the record of a maintenance, and of what else is JSON in an annotation of a Node.

Any client that may write to a Node may write anything there: a user, the node's kubelet, another version of npuops.ascend.
Fields that this version does not know are kept; a field that it knows must have a form that it knows.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any, TypeVar

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import VERDICTS
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import (
    Misfit,
    Shape,
    fields,
    flag,
    listing,
    number,
    one_of,
    optional,
    table,
)

# The record of a maintenance: its fields are those of ``_form``, of which only ``_WHOLE`` are sure to be there, and whatever other
# versions have written.
Record = dict[str, Any]

OrNone = TypeVar("OrNone", Record, Record | None)

# Characters. The API server allows 256 KiB for all annotations of an object.
LIMIT = 128 * 1024
_FAILURE = 8 * 1024

_word = optional(schema.text(256))
_node = schema.text(253, schema.NODE_NAME, "the name of a Node")
# Of pods, hosts and hooks.
_told = optional(schema.text(64 * 1024))
# Link and address of each network port, by the number of its chip: see module_utils/_chips/port_losses.py.
PORTS = table(
    schema.text(20, r"(UP|DOWN|-) ([0-9.]{7,15}|-)", "a link and an address"),
    1024,
    schema.text(4, r"[0-9]+", "the number of a chip"),
)
_driver = optional(fields(version=_word, release=_word, digest=_word, firmware=_word))

# A version that changes what these fields mean gives its records another format.
_of_this_format = fields(["run", "generation"], format=one_of(1))

# What a run needs of a record that it goes on with.
_WHOLE = ("run", "generation", "first_generation", "reason", "from", "to", "step", "boot_id", "attempt", "times", "recoveries")


def parse(text: str | None, steps: Collection[str], reasons: Collection[str]) -> Record:
    """The record in the text of an annotation. ``steps``, ``reasons``: those that there are. Raises Misfit."""
    record = schema.load(text, LIMIT)
    _of_this_format(record, "")
    _form(tuple(steps), tuple(reasons))(record, "")
    return record


@functools.cache
def _form(steps: tuple[str, ...], reasons: tuple[str, ...]) -> Shape:
    # Words of Python's are among them.
    drivers: dict[str, Any] = {"from": _driver, "to": _driver}
    version: dict[str, Any] = {"for": _word}
    return fields(
        run=schema.text(256),
        generation=number(),
        first_generation=number(),
        unseen=number(),
        heartbeat=_word,
        process=_word,
        reason=optional(one_of(*reasons)),
        step=optional(one_of(*steps)),
        due=optional(one_of(*steps)),
        uid=_word,
        unschedulable=optional(flag),
        boot_id=_word,
        attempt=number(0, 10**6),
        approval=optional(fields(time=_word, manager=_word, by=_told, **version)),
        started=_word,
        ended=_word,
        outcome=_word,
        withdrawn_for=_word,
        times=table(_word, 100),
        failure=_told,
        vnpus=_told,
        recoveries=listing(schema.text(64), 1000),
        chips=optional(table(schema.text(32), 1024)),
        ports=optional(PORTS),
        job=optional(fields(id=_word, url=_told, user=_word, workflow=_word)),
        **drivers,
    )


def missing(record: Record) -> list[str]:
    """The fields that a run could not go on without, in their order."""
    return [name for name in _WHOLE if name not in record or (record[name] is None and name not in ("from", "to", "boot_id"))]


def bounded(record: OrNone) -> OrNone:
    """The record as it may be written: what others say in it, such as a hook or a host, is cut."""
    if record is None or len(record.get("failure") or "") <= _FAILURE:
        return record
    return dict(record, failure=cut(record["failure"], _FAILURE))


def cut(text: str, most: int) -> str:
    """The text with at most ``most`` characters, and a sign of it if there were more. In JSON, each may take twelve."""
    return text if len(text) <= most else text[:most] + "..."


def wedge(text: str | None) -> dict[str, Any]:
    """{reason, since, boot_id} of the agent's annotation. Raises Misfit if another client wrote it."""
    told = schema.load(text, LIMIT)
    fields(["reason", "since"], reason=schema.text(LIMIT), since=_word, boot_id=_word)(told, "")
    return told


def acceptance(text: str | None) -> dict[str, Any]:
    """{verdict, level, ended} of the last acceptance of a node. Raises Misfit if another client wrote it."""
    told = schema.load(text, 1000)
    parts: dict[str, Any] = {"verdict": one_of(*VERDICTS), "level": number(1, 3), "ended": schema.text(20, schema.MOMENT)}
    fields(parts, **parts)(told, "")
    return {name: told[name] for name in parts}


def slots(text: str | None) -> dict[str, Any]:
    """{max, halted, holders, proved, served}, as far as they are present. Raises Misfit."""
    told = schema.load(text, LIMIT)
    parts = {"who": _told, "why": _told, "when": _told, "reason": _word, "node": optional(_node)}
    failure = fields(["who", "why", "when"], **parts)
    halted = fields(["who", "why", "when"], **parts, failure=optional(failure))
    holder = fields(["run"], run=schema.text(256), since=_word, reason=_word, pool=optional(schema.text(512)), aside=flag)
    proved = optional(listing(schema.text(512), 1000))
    served = optional(fields(["node", "when"], node=_node, when=schema.text(256)))
    holders = table(holder, 10**4, _node)
    fields(max=number(0, 10**6), halted=optional(halted), holders=holders, proved=proved, served=served)(told, "")
    return told


def mark(text: str | None, off: object) -> dict[str, Any]:
    """{run, since, uid, restore} of a parked workload. ``off``: the value that it has while parked. Raises Misfit."""
    told = schema.load(text, LIMIT)
    fields(["run", "since", "uid", "restore"], run=schema.text(256), since=schema.text(64), uid=schema.text(256))(told, "")
    value, path = told["restore"], "restore"
    for _depth in range(8):
        if not isinstance(value, dict):
            break
        if len(value) != 1:
            raise Misfit("%s has %d fields, not one" % (path, len(value)))
        ((name, value),) = value.items()
        path = "%s.%s" % (path, name)
    shape = flag if isinstance(off, bool) else schema.text(LIMIT) if isinstance(off, str) else number(0, 2**31 - 1)
    optional(shape)(value, path)
    return told
