# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_mirrored
short_description: The name of an image in a registry mirror
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Returns the reference under which an image is pulled. The prefix of the mirror takes the place of the registry.
  - An image that is in the mirror already keeps its name.
positional: mirror
options:
  _input:
    description: Reference of an image, or an empty text.
    type: str
    required: true
  mirror:
    description:
      - A prefix, a dictionary of prefixes by registry, or an empty text for no mirror, as in the variable C(npu_registry_mirror).
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show where the exporter is pulled from
  ansible.builtin.debug:
    msg: "{{ 'quay.io/ascend/npu-exporter:v26.1.0' | npuops.ascend.npu_mirrored('registry.example.com/mirror') }}"
  # registry.example.com/mirror/ascend/npu-exporter:v26.1.0
"""

RETURN = r"""
_value:
  description: The reference.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def npu_mirrored(image: str, mirror: Any) -> str:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
    from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside

    try:
        return outside(mirrored(image, mirror))
    except NpuError as exc:
        raise AnsibleFilterError(exc.message) from exc


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_mirrored": npu_mirrored}
