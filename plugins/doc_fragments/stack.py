# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The options that say which of MindCluster's optional components are deployed, and with which images."""

    DOCUMENTATION = r"""
options:
  stack:
    description: MindCluster's optional components.
    type: dict
    default: {}
    suboptions:
      volcano:
        description: Volcano.
        type: dict
        default: {}
        suboptions:
          enabled: {description: Whether it is deployed., type: bool, default: false}
          version: {description: "Its release, one of O(mindcluster_version_line). By default, the one that this names.", type: str}
          scheduler_image: {description: "The image of its scheduler, instead of upstream's.", type: str}
          controllers_image: {description: "The image of its controllers, instead of upstream's.", type: str}
          settings: {description: "Further settings of its role, by their names without the prefix.", type: dict, default: {}}
      clusterd:
        description: clusterd.
        type: dict
        default: {}
        suboptions:
          enabled: {description: Whether it is deployed., type: bool, default: false}
          version: {description: "Its release, one of O(mindcluster_version_line). By default, the one that this names.", type: str}
          image: {description: "Its image. A tag that names a release must name one of O(mindcluster_version_line).", type: str}
          settings: {description: "Further settings of its role, by their names without the prefix.", type: dict, default: {}}
      noded:
        description: noded.
        type: dict
        default: {}
        suboptions:
          enabled: {description: Whether it is deployed., type: bool, default: false}
          version: {description: "Its release, one of O(mindcluster_version_line). By default, the one that this names.", type: str}
          image: {description: "Its image. A tag that names a release must name one of O(mindcluster_version_line).", type: str}
          settings: {description: "Further settings of its role, by their names without the prefix.", type: dict, default: {}}
      ascend_operator:
        description: The ascend-operator.
        type: dict
        default: {}
        suboptions:
          enabled: {description: Whether it is deployed., type: bool, default: false}
          version: {description: "Its release, one of O(mindcluster_version_line). By default, the one that this names.", type: str}
          image: {description: "Its image. A tag that names a release must name one of O(mindcluster_version_line).", type: str}
          settings: {description: "Further settings of its role, by their names without the prefix.", type: dict, default: {}}
  mindcluster_version_line:
    description: The version line of MindCluster that is deployed.
    type: str
    choices: ["7.3", "26.1"]
    default: "26.1"
"""
