# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each test costs is in the JUnit file."""

from support.cpu_of_tests import pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401  pylint: disable=unused-import
from support.skewed_clock import skew

# Before anything keeps time.time.
skew()
