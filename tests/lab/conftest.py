# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures `lab`, `installed` and `quick_agents`. No test here starts or ends the lab."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

import pytest

# It makes the checkout importable.
from support import collection  # noqa: F401  pylint: disable=unused-import
from support.lab import leftovers
from support.lab.healing import QUICK
from support.lab.lab import Lab
from support.paths import CHECKOUT


def pytest_configure() -> None:
    """SIGTERM ends the tests and what they run, as Ctrl-C does: a process that a script runs in the background ignores Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The running lab. A missing one is an error, never a skip: a test run without a lab has proved nothing."""
    state = pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab")
    if not (state / "inventory.yml").exists():
        pytest.exit(f"{state} holds no lab: start it first (make lab)", returncode=3)
    with contextlib.closing(Lab(state)) as running:
        yield running


@pytest.fixture(scope="session")
def installed(lab):
    """The cluster as install makes it, once; a test that changes it puts it back. Not for tests that judge an install."""
    leftovers.remember(lab)
    lab.playbook("install")


@pytest.fixture(scope="session")
def quick_agents(lab, installed):
    """Node agents that look every few seconds, for all tests from the first one that needs them."""
    lab.playbook("install", **QUICK)
    yield
    if not os.environ.get("NPU_LAB_GOES"):
        lab.playbook("install", npu_rollout_max_unavailable="100%")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In whatever way tests were named or chosen: first those that leave drivers and agents alone, then rollouts, which end with another
    driver, then those that change the agents, and at the end those marked last."""

    def order(item: pytest.Item) -> tuple[bool, bool, bool]:
        last = item.get_closest_marker("last") is not None
        return last, "quick_agents" in item.fixturenames, item.path.parent.name == "maintenance"

    items.sort(key=order)
