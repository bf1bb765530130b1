# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of a Node, which becomes part of paths, of commands and of names of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import NODE_NAME

_NAME = re.compile(NODE_NAME)


def check(name: str) -> None:
    """Raise NpuError unless ``name`` may be the name of a Node."""
    if not _NAME.fullmatch(name):
        raise NpuError("%r is not a valid name for a Node. Set npu_node_name for this host in the inventory" % name)


def of_host(host: Mapping[str, Any]) -> str:
    """The name of the Node of a host: npu_node_name, or else the name of the host. Not checked."""
    # As it is: a str of it would lose the mark of data from outside.
    name: str = (host.get("config") or {}).get("node_name") or host["name"]
    return name
