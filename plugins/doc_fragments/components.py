# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The options that say which components are deployed, and how."""

    DOCUMENTATION = r"""
options:
  components:
    description:
      - The settings of the components, as P(npuops.ascend.npu_component_settings#filter) returns them. For each component, by the
        name of its role without C(npu_), the values of its variables, by their names without the prefix of that role. What all
        components share is in C(component).
      - What is not set has the default of the role.
    type: dict
    default: {}
  mindcluster_version_line:
    description: The version line of MindCluster that is deployed.
    type: str
    choices: ["7.3", "26.1"]
    default: "26.1"
"""
