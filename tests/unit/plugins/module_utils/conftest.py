# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for the tests of the host side."""

from __future__ import annotations

import pytest

from support.host.fake_host import Host


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with nothing on it; its programs are on the PATH."""
    made = Host(tmp_path)
    for name in ("PATH", "NPU_HOST_ROOT", "FAKE"):
        monkeypatch.setenv(name, made.env[name])
    return made
