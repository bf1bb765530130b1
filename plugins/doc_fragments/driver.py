# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The location of a host's driver."""

    DOCUMENTATION = r"""
options:
  source:
    description:
      - Where the driver comes from.
      - V(image) and V(package) are a release that M(npuops.ascend.npu_driver_stage) staged below O(root).
      - V(preinstalled) is a driver that is already on the host. It is searched for in O(root), C(/var/lib/Ascend) and
        C(/usr/local/Ascend), and where C(/etc/ascend_install.info) says that a package installed it.
    type: str
    choices: [image, package, preinstalled]
    default: image
  root:
    description:
      - The directory that contains C(driver).
    type: path
    default: /var/lib/Ascend
"""

    # Of steps of playbooks, which have these of the host from its variables.
    STEP = r"""
options:
  driver_root:
    description: The directory that contains C(driver) on the host.
    type: path
    default: /var/lib/Ascend
  driver_source:
    description: The option of the same name of M(npuops.ascend.npu_facts).
    type: str
    choices: [image, package, preinstalled]
    default: image
  library_path:
    description: The option of the same name of M(npuops.ascend.npu_validate).
    type: str
    choices: [hook, env, none]
    default: hook
"""

    TREE = r"""
options:
  tree:
    description:
      - Path of the driver tree. By default the first that exists of C(/var/lib/Ascend/driver), C(/usr/local/Ascend/driver) and the
        directory in C(/etc/ascend_install.info).
    type: path
"""
