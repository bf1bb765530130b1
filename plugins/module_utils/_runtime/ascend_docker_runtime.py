# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huawei's ascend-docker-runtime, which gives containers their chips where nothing else does. Nothing here changes it."""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

NAME = "ascend-docker-runtime"
# What it gives to containers, and where it writes what it does.
BASE_LIST = "/etc/ascend-docker-runtime.d/base.list"
LOGS = "/var/log/ascend-docker-runtime"

_DOCKER = "/etc/docker/daemon.json"
_LARGEST = 1024 * 1024


def configured(config_path, fs=""):
    """The files that configure it: that of containerd (``config_path``, may be None) and that of Docker, where they name it."""
    return [path for path in (config_path, _DOCKER) if path and _names_it(fs + path)]


def _names_it(path):
    try:
        small = os.path.isfile(path) and os.path.getsize(path) <= _LARGEST
    except OSError:
        return False
    return small and NAME in (read_text(path) or "").lower()
