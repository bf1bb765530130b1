# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent of npuops.ascend: CDI bridge for the upstream device plugin, and health watch of the driver."""

from __future__ import annotations

__version__ = "0.1.0"
