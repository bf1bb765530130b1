# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """How to reach a registry: the arguments of module_utils/_image/registry_options.py."""

    DOCUMENTATION = r"""
options:
  registry_username:
    description:
      - User name for the registry.
    type: str
  registry_password:
    description:
      - Password for the registry.
    type: str
  registry_plain_http:
    description:
      - Whether to use HTTP instead of HTTPS for the registry.
    type: bool
    default: false
  registry_ca_file:
    description:
      - PEM file with the certificate authorities to trust for the registry, besides the system's.
    type: path
"""
