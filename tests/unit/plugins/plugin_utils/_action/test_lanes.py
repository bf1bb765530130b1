# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextvars
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.lanes import Lanes

from support.patience import PATIENCE


@pytest.mark.parametrize("number", [0, 1, 3, 50])
def test_each_is_asked_once(number):
    asked = []

    def ask(name):
        asked.append(name)
        return name.upper()

    assert Lanes(ask, "late", PATIENCE).run(list("abcde"), number) == {name: name.upper() for name in "abcde"}
    assert sorted(asked) == list("abcde")
    assert Lanes(ask, "late", PATIENCE).run([], number) == {}


def test_as_many_at_once_as_there_are_lanes():
    together = threading.Barrier(3, timeout=PATIENCE)
    # Each waits for two others: with fewer lanes the barrier breaks.
    assert set(Lanes(lambda _name: together.wait() in range(3), False, PATIENCE).run(list("abcdef"), 3).values()) == {True}


def test_one_that_never_answers_delays_no_other():
    """Also with a single lane; what it says later is lost."""
    released, said = threading.Event(), threading.Event()

    def ask(name):
        if name == "a":
            assert released.wait(PATIENCE)
            said.set()
        return "answer of " + name

    lanes = Lanes(ask, "late", 0.2)
    answers = lanes.run(["a", "b", "c"], 1)
    assert answers == {"a": "late", "b": "answer of b", "c": "answer of c"} and lanes.given_up == {"a"}
    released.set()
    assert said.wait(PATIENCE) and answers["a"] == "late"


def test_each_sees_what_is_set_for_the_task():
    current = contextvars.ContextVar("current", default=None)
    current.set("this task")
    assert Lanes(lambda _name: current.get(), None, PATIENCE).run(["a", "b"], 2) == {"a": "this task", "b": "this task"}
