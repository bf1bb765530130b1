# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A /run without space or inodes, in which files can be renamed but not made: the cluster hears of a wedge and of its end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import types

import pytest

from npu_node_agent import cdi_check, marker, probe, wedge_watch
from npu_node_agent.changed import Changed
from npu_node_agent.marker import Markers
from npu_node_agent.metrics import Metrics
from npu_node_agent.report import HEALTHY
from npu_node_agent.wedge_watch import Watch

CONTENT = {"version": "25.5.0", "release": "25.5.0-6.6-abc", "boot_id": "b"}
EXPLAINED = {"since": "2026-11-21T21:14:51Z", "reason": "an earlier one", "output": "", "probes": 3}
FAILED, OK = probe.Result(probe.FAILED, "npu-smi failed", "ret=4"), probe.Result(probe.OK)


class Run:
    """/run/npuops, ``full`` or not, and the health watch of it. ``wanted``: what it told the reporter to report, in order."""

    def __init__(self, path, monkeypatch):
        self.path, self.full, self.wanted, self.verdicts = path, True, [], []
        (path / "boot_id").write_text("b\n")
        monkeypatch.setattr(marker, "write_json", self._write)
        monkeypatch.setattr(cdi_check, "problems", lambda *_arguments: [])

    def _write(self, path, value):
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(value, stream)

    def put(self, name, content):
        (self.path / name).write_text(json.dumps(content))

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            return json.loads((self.path / name).read_text())

    def probes(self, *results):
        """Let one agent make these probes."""
        left = iter(results)

        class Stub:
            """All that the watch asks or tells."""

            count = 0
            want = staticmethod(lambda *_arguments: None)

            async def run(self):
                with contextlib.suppress(StopIteration):
                    return next(left)
                await asyncio.get_running_loop().create_future()

            async def of(self, chips, _hinted):
                return chips

            def on_pci(self):
                return 0

            def expected(self):
                return types.SimpleNamespace(number=0, missing=(), phrase=None)

        async def watch():
            stub, changed = Stub(), Changed()
            markers = Markers(str(self.path), str(self.path / "boot_id"), changed)
            reporter = types.SimpleNamespace(want=lambda state: self.wanted.append(state))
            conditions = types.SimpleNamespace(want=lambda told: self.verdicts.append(told[wedge_watch.driver_condition.TYPE]))
            watched = Watch(
                markers, stub, stub, stub, stub, reporter, conditions, stub, stub, changed, stub, Metrics(), interval=0, limit=1
            )  # fmt: skip
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await watched.run()

        asyncio.run(watch())


@pytest.fixture
def run(tmp_path, monkeypatch):
    return Run(tmp_path, monkeypatch)


def test_a_wedge_is_reported_with_one_time(run, monkeypatch):
    seconds = iter(range(10))
    monkeypatch.setattr(wedge_watch.time, "strftime", lambda *_arguments: "second %d" % next(seconds))
    run.put("driver-ready", CONTENT)
    run.probes(FAILED, FAILED, FAILED)
    assert run.read("driver-suspended") == CONTENT and run.read("driver-ready") is None
    assert run.wanted == [{**CONTENT, "since": "second 0", "reason": "npu-smi failed", "output": "ret=4", "probes": 1}] * 3
    assert "second 0" in run.verdicts[-1].message


def test_an_explanation_is_written_when_there_is_space(run, monkeypatch):
    monkeypatch.setattr(wedge_watch.time, "strftime", lambda *_arguments: "now")
    run.put("driver-ready", CONTENT)
    original = run._write

    def write(*arguments):
        try:
            original(*arguments)
        finally:
            run.full = False

    monkeypatch.setattr(marker, "write_json", write)
    run.probes(FAILED, FAILED)
    assert run.wanted[0] == run.wanted[1] == run.read("driver-suspended") and run.wanted[0]["since"] == "now"


def test_a_driver_that_responds_again_is_ready(run):
    run.put("driver-suspended", {**CONTENT, **EXPLAINED})
    run.probes(OK)
    assert run.read("driver-ready") and run.read("driver-suspended") is None and run.wanted == [HEALTHY]


@pytest.mark.parametrize("full", [True, False])
def test_what_stayed_in_the_marker_is_not_said_of_a_later_wedge(run, full):
    run.put("driver-ready", {**CONTENT, **EXPLAINED})
    run.full = full
    run.probes(FAILED, FAILED)
    assert run.wanted[0] == run.wanted[1] and run.wanted[0]["since"] != EXPLAINED["since"]
    assert run.wanted[0]["reason"] == "npu-smi failed"
    assert full or run.read("driver-suspended") == run.wanted[0]
    run.full = False
    run.probes(OK)
    assert run.read("driver-ready") == CONTENT and run.wanted[-1] == HEALTHY
