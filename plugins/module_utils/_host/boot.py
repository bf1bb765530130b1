# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This boot of the host: its ID, its age, and what the boot units have published in it."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_object, read_text


def uptime(fs=""):
    """Seconds since the kernel started; 0.0 if unknown."""
    return float((read_text(fs + "/proc/uptime") or "0").split()[0])


def boot_id(fs=""):
    """The ID of this boot, as in the Node's nodeInfo.bootID."""
    return (read_text(fs + "/proc/sys/kernel/random/boot_id") or "").strip()


def read_marker(name, fs=""):
    """The content of /run/npuops/<name> as a dict; None if it is absent, unreadable or from another boot."""
    marker = read_object("%s/run/npuops/%s" % (fs, name))
    return marker if marker and marker.get("boot_id") == boot_id(fs) else None
