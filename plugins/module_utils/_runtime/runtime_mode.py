# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How containers of this host get their chips: by CDI, or by Huawei's Ascend Docker Runtime. Also a part of the node agent."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_untrusted

CDI, ASCEND = "cdi", "ascend"
NAME = "runtime-mode"
# In the directory that the node agent has in any case; an uninstall removes it.
PATH = "/var/lib/npuops/device-plugins/" + NAME

_LARGEST = 64  # bytes


def read(path=PATH):
    """CDI or ASCEND. Without that file it is CDI. Raises OSError if the file is there and cannot be read."""
    return ASCEND if (read_untrusted(path, _LARGEST) or b"").strip() == ASCEND.encode("ascii") else CDI


def of_host(fs=""):
    """The same for a host module. Raises NpuError."""
    try:
        return read(fs + PATH)
    except OSError as exc:
        raise NpuError("%s cannot be read: %s. Remove it, and run npuops.ascend.install" % (PATH, exc.strerror)) from None
