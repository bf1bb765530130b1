# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of single hosts that preflight and plan judge: which driver, from which registry. And what must be alike on all."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

# Without the prefix npu_, as the option `config` of hosts has them.
NAMES = (
    "node_name",
    "chips",
    "driver_source",
    "driver_version",
    "driver_repository",
    "driver_image",
    "driver_image_path",
    "driver_kernels",
    "driver_package",
    "driver_package_sha256",
    "driver_package_username",
    "driver_package_password",
    "driver_profile",
    "driver_digest",
    "driver_signature_policy",
    "driver_signature_keys",
    "driver_root",
    "runtime_mode",
    "runtime_package",
    "runtime_package_sha256",
    "runtime_package_username",
    "runtime_package_password",
    "vnpu",
    "device_plugin_share_count",
    "firmware_policy",
    "firmware_version",
    "firmware_package",
    "firmware_package_sha256",
    "firmware_package_username",
    "firmware_package_password",
    "install_gate",
    "accept_toolbox_image",
    "registry_mirror",
    "registry_username",
    "registry_password",
    "registry_plain_http",
    "registry_ca_file",
)


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` with the defaults; None is what is not set and has no default."""
    return {name: copy.deepcopy(_default(name)) if config.get(name) is None else config[name] for name in NAMES}


def argument_spec() -> dict[str, dict[str, Any]]:
    """The suboptions of a module's option ``config``."""
    spec = {name: {"type": spec_defaults.option("npu_" + name)["type"]} for name in NAMES}
    # A name, or a list of names.
    spec["driver_kernels"] = {"type": "list", "elements": "str"}
    # A key, or a list of keys.
    spec["driver_signature_keys"] = {"type": "raw"}
    # Preflight says what is wrong with them; no other module reads them.
    spec["device_plugin_share_count"] = {"type": "raw"}
    spec["install_gate"] = {"type": "raw"}
    spec["registry_password"]["no_log"] = True
    spec["driver_package_password"]["no_log"] = True
    spec["firmware_package_password"]["no_log"] = True
    spec["runtime_package_password"]["no_log"] = True
    # On the controller, where ~ is the home of the user that runs Ansible.
    spec["registry_ca_file"] = {"type": "path"}
    return spec


@functools.lru_cache(maxsize=None)
def _default(name: str) -> Any:
    default = spec_defaults.default("npu_" + name)
    return None if default in ("", []) else default
