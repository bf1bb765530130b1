# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of pytest that writes the CPU seconds of each test into the JUnit file, as the property `cpu`, for dev/testrun.

Those of fixtures count for the first test that needs them, and those of a child when it has ended.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from support import costs

_BEGUN = pytest.StashKey()


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used) + costs.elsewhere()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGUN] = _cpu()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    if call.when == "teardown":
        item.user_properties.append(("cpu", f"{_cpu() - item.stash[_BEGUN]:.2f}"))
    return (yield)
