# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_module import HostAction


class ActionModule(HostAction):
    """Runs the module npu_accept, whose documentation is with it."""
