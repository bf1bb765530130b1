# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.progress import Progress


class Time:
    now = 1000.0

    def __call__(self):
        return self.now


def in_worker(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def progress(time):
    with contextlib.closing(Progress(time)) as made:
        yield made


def test_workers_know_of_each_other(progress, time):
    """Several at once, which share the position in the file."""
    in_worker(progress.begin)
    in_worker(progress.begin)
    time.now += 600
    in_worker(lambda: (progress.end("npu-a", "done"), progress.text(24)))
    in_worker(lambda: (progress.text(24), progress.end("npu-b", "done")))
    in_worker(lambda: progress.end("npu-c", "deferred"))
    in_worker(lambda: progress.end("npu-d", "failed"))
    assert progress.text(24) == "2 of 24 nodes done, 1 deferred, 1 failed, about 70 min left"


def test_a_deferred_node_is_tried_again_and_counts_once(progress, time):
    progress.begin()
    time.now += 60
    progress.end("npu-a", "deferred")
    assert progress.text(2) == "0 of 2 nodes done, 1 deferred"
    progress.end("npu-b", "done")
    assert progress.text(2) == "1 of 2 nodes done, 1 deferred, about 60 s left"
    progress.end("npu-a", "done")
    assert progress.text(2) == "2 of 2 nodes done"


def test_a_halt_leaves_no_time_to_tell(progress, time):
    progress.begin()
    time.now += 60
    progress.end("npu-a", "failed")
    assert progress.text(3) == "0 of 3 nodes done, 1 failed"
    progress.end("npu-b", "done")
    progress.end("npu-c", "halted")
    assert progress.text(4) == "1 of 4 nodes done, 1 failed, 1 halted"


@pytest.mark.parametrize("outcome", ["done", "up-to-date", "withdrawn"])
def test_what_needs_nothing_more_is_done(progress, outcome):
    progress.begin()
    progress.end("npu-a", outcome)
    progress.end("npu-b", "awaiting-approval")
    assert progress.text(2) == "1 of 2 nodes done, 1 awaiting-approval"


@pytest.mark.parametrize(
    ("seconds", "told"), [(1, "1 s"), (90 * 60, "1 h 30 min"), (3600, "60 min"), (5 * 3600 + 600, "5 h"), (200 * 3600, "200 h")]
)
def test_how_long_it_takes(progress, time, seconds, told):
    progress.begin()
    time.now += seconds
    progress.end("npu-a", "done")
    assert progress.text(2) == "1 of 2 nodes done, about %s left" % told


@pytest.mark.parametrize("due", [0, 1])
def test_a_single_node_needs_no_count(progress, due):
    progress.begin()
    progress.end("npu-a", "done")
    assert progress.text(due) == ""
