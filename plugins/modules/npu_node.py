#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_node
short_description: Labels and annotations of many nodes in one call
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Brings labels and annotations of nodes about, and leaves all others as they are.
  - Reads all nodes in pages and writes only those that differ, each with one patch that carries the resourceVersion,
    so that nobody's concurrent change is lost.
  - The label C(npuops.ascend/components) is left alone on a node with the annotation C(npuops.ascend/maintenance) and
    on a node where it is V(paused).
  - Runs on the controller.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - npuops.ascend.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - python >= 3.11
  - kubernetes >= 24.2.0
options:
  nodes:
    description: The nodes and what they shall carry.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the Node object.
        type: str
        required: true
      labels:
        description: Labels by name. A null value removes the label.
        type: dict
        default: {}
      annotations:
        description: Annotations by name. A null value removes the annotation.
        type: dict
        default: {}
"""

EXAMPLES = r"""
- name: Pause the components on two nodes
  npuops.ascend.npu_node:
    nodes:
      - name: npu-a
        labels:
          npuops.ascend/components: paused
      - name: npu-b
        labels:
          npuops.ascend/components: paused
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description: Names of the nodes that were changed, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError


def _as_text(values):
    """Label values are strings; YAML may have made 25.5 a number or yes a boolean."""
    return {key: None if value is None else str(value) for key, value in values.items()}


def main():
    module = _cluster.k8s_module(
        {
            "nodes": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "labels": {"type": "dict", "default": {}},
                    "annotations": {"type": "dict", "default": {}},
                },
            },
        }
    )
    wanted = [
        {"name": entry["name"], "labels": _as_text(entry["labels"]), "annotations": _as_text(entry["annotations"])}
        for entry in module.params["nodes"]
    ]
    try:
        changes = _cluster.apply_metadata(_cluster.connect(module), wanted, module.check_mode)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)
    result = {"changed": bool(changes), "nodes": [change["name"] for change in changes]}
    if changes:
        result["msg"] = "Labels of %s" % ", ".join(result["nodes"])
    if module._diff:
        result["diff"] = {
            "before": {change["name"]: change["before"] for change in changes},
            "after": {change["name"]: change["after"] for change in changes},
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
