# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import signal
import time

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.interruptible import Interruptible

from support.patience import PATIENCE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_next_pause_and_no_later_one(number):
    before, began = signal.getsignal(number), time.monotonic()
    with pytest.raises(SystemExit) as raised, Interruptible() as clock:
        os.kill(os.getpid(), number)
        with pytest.raises(SystemExit):
            clock.sleep(PATIENCE)
        os.kill(os.getpid(), number)  # Ansible sends another one 5 s later
        clock.sleep(0.01)
        raise SystemExit(1)
    assert raised.value.code == 1 and time.monotonic() - began < PATIENCE and signal.getsignal(number) is before


def test_a_signal_without_a_pause_after_it_is_not_lost():
    with pytest.raises(SystemExit) as raised, Interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
    assert raised.value.code == 143


def test_when_the_parent_is_gone(monkeypatch):
    with Interruptible() as clock:
        monkeypatch.setattr(os, "getppid", lambda: 1)
        with pytest.raises(SystemExit):
            clock.sleep(PATIENCE)
        clock.sleep(0.01)


def test_a_pause():
    with Interruptible() as clock:
        began = clock.monotonic()
        clock.sleep(0.01)
        assert clock.monotonic() - began >= 0.01
