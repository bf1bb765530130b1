# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the hook of the CDI spec can run where it is. Not in cdi_spec, which the node agent has without _host.mounts."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._containerd.cdi_spec import HOOK
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def check(fs=""):
    """Raise NpuError if the hook could not run: no container with a chip would start."""
    if "noexec" in mounts.options(fs + HOOK):
        raise NpuError(
            "%s is on a file system mounted noexec, so the hook for the driver's libraries cannot run. Remount it with exec, or set"
            " npu_runtime_library_path: env" % HOOK
        )
