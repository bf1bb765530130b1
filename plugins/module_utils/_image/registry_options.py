# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of modules that talk to a registry. Their documentation is the fragment registry."""

from __future__ import annotations

ARGUMENTS = {
    "registry_username": {"type": "str"},
    "registry_password": {"type": "str", "no_log": True},
    "registry_plain_http": {"type": "bool", "default": False},
    "registry_ca_file": {"type": "path"},
}


def access(options):
    """The keyword arguments of RegistryClient and Stager, of a module's ``options``."""
    return {name[len("registry_") :]: options[name] for name in ARGUMENTS}
