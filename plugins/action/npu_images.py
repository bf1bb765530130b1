# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.controller import ControllerAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.image_list import ImageList
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.unknown_variables import unknown_variables


class ActionModule(ControllerAction):
    """See the documentation of the module npu_images."""

    ARGUMENTS: dict[str, Any] = {
        "hosts": HOSTS,
        "driver_versions": {"type": "list", "elements": "str", "default": []},
        **wanted_components.ARGUMENTS,
        "execution_environment_image": {"type": "str"},
        "extra": {"type": "list", "elements": "str", "default": []},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        # A misspelt npu_mirror_images would be the fleet's images.
        misspelt = unknown_variables(name for host in params["hosts"] for name in host["variables"])
        if misspelt:
            raise NpuError("; ".join(misspelt))
        found = ImageList()
        found.add_drivers(params["hosts"], params["driver_versions"])
        found.add_toolboxes(params["hosts"])
        # As install takes the settings of the components.
        mirror = host_config.complete(params["hosts"][0]["config"])["registry_mirror"] if params["hosts"] else None
        found.add_components(params["mindcluster_version_line"], wanted_components.of(params["components"]).values(), mirror)
        if params["execution_environment_image"]:
            found.add(params["execution_environment_image"], "AWX", mirror)
        for image in params["extra"]:
            found.add(image, "npu_mirror_extra_images")
        return {
            "changed": False,
            "images": found.images,
            "packages": found.packages,
            "needed_by": found.result(),
            "table": found.table(),
        }
