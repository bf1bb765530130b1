# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Where the driver of a host is."""

    DOCUMENTATION = r"""
options:
  source:
    description:
      - Where the driver comes from. With V(preinstalled) it is looked for in O(root), C(/var/lib/Ascend) and
        C(/usr/local/Ascend).
    type: str
    choices: [image, preinstalled]
    default: image
  root:
    description:
      - The directory with C(driver) in it.
    type: path
    default: /var/lib/Ascend
"""
