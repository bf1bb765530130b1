# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the checkout on the path as ansible_collections.npuops.ascend."""

from __future__ import annotations

import pytest

from support import collection  # noqa: F401  pylint: disable=unused-import


@pytest.fixture(scope="session", autouse=True)
def lasting_directory(tmp_path_factory):
    """pytest makes its directory when the first test asks for one, and an API server of the tests may be the place just then."""
    tmp_path_factory.getbasetemp()
