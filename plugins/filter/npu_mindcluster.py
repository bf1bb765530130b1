# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_mindcluster
short_description: What a version line of MindCluster needs of Kubernetes
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Returns what is known of a version line. A version line is the releases with the same first two numbers, which have the same
    manifests.
  - Fails for a version line that is not known, and for a component whose version or image belongs to another version line, or for a
    chip family
    without a device plugin.
positional: component, version, image, accelerators, settings, common
options:
  _input:
    description: The version line, such as V(26.1). The newest one if empty.
    type: str
    required: true
  component:
    description: The role of the component whose version and image are checked.
    type: str
  version:
    description: The release of the component.
    type: str
  image:
    description: The image of the component, or a dictionary of its images by their variables without the role. A tag that names no
      release is not checked.
    type: raw
  accelerators:
    description: The chip families that the device plugin is deployed for.
    type: list
    elements: str
    default: []
  settings:
    description: Further settings of the component, by their names without the prefix. They add to its flags and mounts.
    type: dict
    default: {}
  common:
    description: The settings that all components share, by their names without C(npu_component_). They add to its flags.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show which release a version line installs
  ansible.builtin.debug:
    msg: "{{ ('26.1' | npuops.ascend.npu_mindcluster).version }}"
"""

RETURN = r"""
_value:
  description: The version line, with its C(name), the C(version) that it installs, and what C(device_plugin), C(exporter)
    and the other components need.
  type: dict
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def npu_mindcluster(
    version_line: str | None,
    component: str | None = None,
    version: str | None = None,
    image: str | Mapping[str, str | None] | None = None,
    accelerators: Iterable[str] = (),
    settings: Mapping[str, Any] | None = None,
    common: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
    from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster

    try:
        row = mindcluster.version_line(str(version_line or ""))
        if component:
            row = mindcluster.component(row["name"], component, settings or {}, common)
    except NpuError as exc:
        raise AnsibleFilterError(exc.message) from exc
    reasons = mindcluster.mismatches(row["name"], component, version, image) if component else []
    reasons += filter(None, (mindcluster.no_plugin(row["name"], accelerator) for accelerator in accelerators))
    if reasons:
        raise AnsibleFilterError("; ".join(reasons))
    return row


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_mindcluster": npu_mindcluster}
