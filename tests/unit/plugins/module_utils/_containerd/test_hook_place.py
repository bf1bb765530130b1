# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import hook_place
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def test_a_hook_that_could_not_run_is_refused(tmp_path, monkeypatch):
    """Otherwise, no container with a chip starts, and validate advises to run install again."""
    monkeypatch.setattr(hook_place.mounts, "options", lambda path: {"noexec"} if path.startswith(str(tmp_path)) else set())
    hook_place.check()
    with pytest.raises(NpuError, match="npu-cdi-hook is on a file system mounted noexec.* npu_runtime_library_path: env"):
        hook_place.check(str(tmp_path))
