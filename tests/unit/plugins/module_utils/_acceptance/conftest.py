# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that is accepted."""

from __future__ import annotations

import pytest

from support.host.accepted_host import host_to_accept


@pytest.fixture
def host(tmp_path, monkeypatch):
    return host_to_accept(tmp_path, monkeypatch)
