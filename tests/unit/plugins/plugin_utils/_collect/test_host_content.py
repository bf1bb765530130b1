# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host sends for its bundle: honest, damaged and hostile."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import MOST_FILES, Gathered
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._collect import host_content

LIMIT = 2**20
FILE = {"name": "facts.json", "source": "npu_facts", "cut": False, "text": "{}"}
LEFT = {"what": "npu-smi", "why": "it hangs", "absent": False}


def packed(data):
    return {"content": base64.b64encode(gzip.compress(data)).decode()}


def answer(files=(FILE,), left_out=(LEFT,), schema=1, more=0):
    content = {"schema": schema, "files": list(files), "left_out": list(left_out), "more_left_out": more}
    return packed(json.dumps(content).encode())


def added(content):
    part = Gathered(LIMIT, 60)
    host_content.add(part, content, LIMIT)
    return part


def test_an_honest_answer():
    part = added(answer(more=7))
    assert part.files == [dict(FILE, name="host/facts.json")] and part.left_out == [LEFT] and part.more_left_out == 7


def test_what_the_host_did_not_remove_is_removed_here():
    part = added(answer([dict(FILE, text="token=pl4nted \x1b[2J\ud800")], [dict(LEFT, why="\x1b token=pl4nted")]))
    assert "pl4nted" not in str(part.files + part.left_out) and "\x1b" not in str(part.files) + part.left_out[0]["why"]


BOMB = packed(b"0" * (2**28))
HOSTILE = {
    "nothing": {},
    "another type": {"content": ["x"]},
    "no Base64": {"content": "\x00\xff{}"},
    "no gzip": {"content": base64.b64encode(b"{}").decode()},
    "a bomb": BOMB,
    "cut off": {"content": answer()["content"][:40]},
    "too large": {"content": "A" * (2 * LIMIT + 2**22) * 2},
    "no JSON": packed(b"{"),
    "JSON that is nested deeply": packed(b"[" * 10**6),
    "a number without end": packed(b"1" * 10**5),
    "another schema": answer(schema=99),
    "no list": packed(b'{"schema": 1, "files": {}, "left_out": []}'),
    "a list": packed(b"[]"),
    "too many files": answer([dict(FILE, name="f%d" % number) for number in range(MOST_FILES + 1)]),
    "twice": answer([FILE, FILE]),
    "no text": answer([dict(FILE, text=1)]),
    "no name": answer([{key: value for key, value in FILE.items() if key != "name"}]),
    "a reason that is none": answer(left_out=[dict(LEFT, why=None)]),
    "a count that is none": answer(more="7"),
    "a count below zero": answer(more=-1),
    "a count of anything": answer(more=10**30),
    "no entry": answer(left_out=["x"]),
}
NAMES = [
    "../../etc/cron.d/x",
    "/etc/passwd",
    "a/../../b",
    ".ssh/authorized_keys",
    "a\nb",
    "",
    "a" * 200,
    "a/" * 11 + "b",
    "C:\\x",
    "~/x",
    "a\u202eb",
]


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_such_answer_is_refused_as_a_whole(what):
    part = Gathered(LIMIT, 60)
    with pytest.raises(NpuError, match="nothing of the answer is used"):
        host_content.add(part, HOSTILE[what], LIMIT)
    assert part.files == [] and part.left_out == []


def test_a_bomb_is_not_unpacked():
    tracemalloc.start()
    try:
        with pytest.raises(NpuError, match="unpacks to more than"):
            added(BOMB)
        assert tracemalloc.get_traced_memory()[1] < 2**26  # a quarter of what is in it
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(NpuError, match="is not the name of a file"):
        added(answer([FILE, dict(FILE, name=name)]))


def test_more_than_was_asked_for_is_left_out():
    part = added(answer([FILE, dict(FILE, name="log", source="log", text="x" * (LIMIT + 1))]))
    assert [file["name"] for file in part.files] == ["host/facts.json"] and part.left_out[0]["what"] == "log"
