# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the Ascend Docker Runtime can be installed on a host, before anything of it is changed."""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import installation
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import ascend_runtime, containerd_runtime, default_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def problems(source, fs="", find_daemon=containerd_runtime.find):
    """Why the runtime cannot be installed on this host, as sentences; ``source``: of the driver."""
    if source != "preinstalled":
        yield from ascend_runtime.problems(source)
        return
    try:
        found = installation.foreign(fs) or installation.unfit_place(fs) or no_driver(fs)
        if found is None:
            default_runtime.Registration(find_daemon(), installation.PROGRAM).examine()
    except NpuError as exc:
        found = exc.message
    if found:
        yield "npu_runtime_package: %s" % found


def no_driver(fs=""):
    """Why containers would get no driver, as a sentence; None if they would."""
    if not os.path.isdir(fs + ascend_runtime.LIBRARIES):
        return "there is no driver in %s, from where containers get it" % ascend_runtime.LIBRARIES
    return None
