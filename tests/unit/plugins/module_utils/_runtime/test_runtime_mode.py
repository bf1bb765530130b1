# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import runtime_mode


@pytest.fixture
def path(tmp_path):
    path = tmp_path / runtime_mode.PATH.lstrip("/")
    path.parent.mkdir(parents=True)
    return path


def test_what_it_says(tmp_path, path):
    assert runtime_mode.of_host(str(tmp_path)) == "cdi"
    for content, mode in ((b"ascend\n", "ascend"), (b"cdi\n", "cdi"), (b"", "cdi"), (b"\xff" * 10000, "cdi")):
        path.write_bytes(content)
        assert runtime_mode.of_host(str(tmp_path)) == mode


def test_a_pipe_is_not_waited_for(tmp_path, path):
    os.mkfifo(path)
    assert runtime_mode.of_host(str(tmp_path)) == "cdi"


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/hostname"), lambda path: path.mkdir()])
def test_what_is_no_file_is_told(tmp_path, path, make):
    make(path)
    with pytest.raises(NpuError, match="runtime-mode cannot be read: .*Remove it, and run npuops.ascend.install"):
        runtime_mode.of_host(str(tmp_path))
