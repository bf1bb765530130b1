# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which components the variables ask for, before their roles run.

The filter npu_component_settings collects the variables; modules that judge all components at once have its result as their
option ``components``, and read it here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jinja2
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults, valid_settings

AGENT = "node_agent"
# Unlike the others, it has no image upstream.
NO_AGENT_IMAGE = (
    "npu_node_agent_image is not set: the image of the node agent, which the playbook npuops.ascend.build_node_agent_image builds"
    " and pushes to your registry; or set npu_node_agent_enabled: false"
)
# What install deploys, in this order, each by its role without npu_.
PARTS = (AGENT, "device_plugin", "exporter", *mindcluster_stack.PARTS)
_COMMON = mindcluster.COMMON.removeprefix("npu_")
# What all components share under names of its own, and nothing else checks before their roles run.
SHARED = ("npu_image_pull_policy", "npu_rollout_timeout", "npu_tolerations")
# Those of MindCluster, and what people call them.
TITLES = {"device_plugin": "device plugin", "exporter": "exporter"} | {
    component.part: component.title for component in mindcluster_stack.COMPONENTS
}
# The options of the documentation fragment ``components``.
ARGUMENTS = {
    "components": {"type": "dict", "default": {}},
    "mindcluster_version_line": {"type": "str", "choices": list(mindcluster.names()), "default": mindcluster.default()},
}


@dataclasses.dataclass(frozen=True)
class Wanted:
    """One component. ``version``: its release, None for the one of the version line; ``images``: by their variables without the
    role's prefix, None for upstream's; ``settings``: the values of its variables, named alike, not checked, without those that
    have their default; ``common``: likewise, of those that all components share.
    """

    part: str
    enabled: bool
    version: str | None
    images: Mapping[str, str | None]
    settings: Mapping[str, Any]
    common: Mapping[str, Any]

    @property
    def role(self) -> str:
        return "npu_" + self.part


def given(variables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By part, the values that the variables of a host set, by their names without the role's prefix. Those that all components
    share are the part ``component``, with SHARED by their whole names.

    An image may be made of other variables of its role. The host does not have their defaults: only the role knows the image then.
    """
    names = {part: _options(part) for part in (*PARTS, _COMMON)}
    names[_COMMON] |= dict(zip(SHARED, SHARED))
    return {
        part: {option: variables[name] for option, name in options.items() if _is_known(variables, name)}
        for part, options in names.items()
    }


def _is_known(variables: Mapping[str, Any], name: str) -> bool:
    value = variables[name] if name in variables else None
    # ansible-core 2.18 gives a text that it cannot evaluate as it is.
    return value is not None and not isinstance(value, jinja2.Undefined) and not (isinstance(value, str) and "{{" in value)


def is_variable(name: str) -> bool:
    """Whether ``given`` reads the variable."""
    return any(name in _options(part).values() for part in (*PARTS, _COMMON))


def of(components: Mapping[str, Any]) -> dict[str, Wanted]:
    """All components, from the option ``components``. Raises NpuError for a switch, a version or an image that makes no sense."""
    return {part: _wanted(part, components.get(part) or {}, components.get(_COMMON) or {}) for part in PARTS}


def _wanted(part: str, settings: Mapping[str, Any], common: Mapping[str, Any]) -> Wanted:
    def value(option: str) -> Any:
        return valid_settings.of_variable("npu_%s_%s" % (part, option), settings.get(option))

    images = [option for option in _options(part) if option == "image" or option.endswith("_image")]
    return Wanted(
        part,
        value("enabled"),
        value("version") if part != AGENT else None,
        {option: value(option) or None for option in images},
        settings,
        common,
    )


def _options(part: str) -> dict[str, str]:
    """Names of variables by the names without the prefix of the part's role."""
    return {name: "npu_%s_%s" % (part, name) for name in spec_defaults.own_options("npu_" + part)}
