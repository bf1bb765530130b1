# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each test begins with healthy nodes without a maintenance. After the last test, they have the driver that the inventory names."""

from __future__ import annotations

import os

import pytest

from support.lab import leftovers
from support.lab.rollout import reset, upgrade


@pytest.fixture(scope="session", autouse=True)
def installed(lab):
    """The cluster as install makes it, before and after."""
    leftovers.remember(lab)
    reset(lab)
    lab.playbook("install")
    yield
    if os.environ.get("NPU_LAB_GOES"):
        return
    reset(lab)
    upgrade(lab, npu_upgrade_max_parallel=0)
    lab.playbook("validate")


@pytest.fixture
def idle(lab):
    """The lab, with no trace of an earlier test."""
    reset(lab)
    return lab


def pytest_runtest_logreport(report):
    """Tell a failure when it happens: all of these take more than half an hour."""
    if report.failed:
        print(f"\n{report.nodeid} {report.when}\n{report.longreprtext}", flush=True)
