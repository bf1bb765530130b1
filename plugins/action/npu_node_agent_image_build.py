# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.controller import ControllerAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import base as agent_base
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image.image import ARCHITECTURES, AgentImage, workspace


class ActionModule(ControllerAction):
    """See the documentation of the module npu_node_agent_image_build."""

    ARGUMENTS: dict[str, Any] = {
        "image": {"type": "str", "required": True},
        "base": {"type": "str", "default": agent_base.DEFAULT},
        "base_username": {"type": "str"},
        "base_password": {"type": "str", "no_log": True},
        "base_plain_http": {"type": "bool", "default": False},
        "architectures": {"type": "list", "elements": "str", "choices": list(ARCHITECTURES), "default": list(ARCHITECTURES)},
        "wheels": {"type": "path"},
        **registry_options.ARGUMENTS,
    }
    RULES = {"required_together": [("base_username", "base_password"), ("registry_username", "registry_password")]}

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        reference = parse_reference(params["image"])
        if reference.digest:
            raise NpuError(
                "image is %s; it must be registry, repository and tag: its digest follows from its content" % (params["image"],)
            )
        if not params["architectures"]:
            raise NpuError("architectures is empty; it must name at least one of %s" % ", ".join(ARCHITECTURES))
        client = RegistryClient(reference.registry, **registry_options.access(params))
        base = agent_base.Base(_base_client(params, reference.registry), params["base"])
        with workspace() as workdir:
            wheels = Path(params["wheels"]) if params["wheels"] else None
            image = AgentImage(client, reference, base, params["architectures"], workdir, wheels)
            reason = image.reason()
            if reason and not self._task.check_mode:
                image.push()
        return {
            "changed": reason is not None,
            "msg": reason or "%s is up to date" % str(reference),
            "image": str(reference),
            "digest": image.digest,
            "base": "%s@%s" % (base.name, base.digest),
            "platforms": [{"platform": "linux/" + one.architecture, "digest": one.digest} for one in image.platforms],
        }


def _base_client(params: dict[str, Any], registry: str) -> RegistryClient:
    """The client of the base image's registry; the registry options are for the registry of ``image``, wherever it is used."""
    its = parse_reference(params["base"]).registry
    access = {"ca_file": params["registry_ca_file"], "plain_http": params["base_plain_http"]}
    if its == registry:
        access = registry_options.access(params)
    if params["base_username"]:
        access.update(username=params["base_username"], password=params["base_password"])
    return RegistryClient(its, **access)
