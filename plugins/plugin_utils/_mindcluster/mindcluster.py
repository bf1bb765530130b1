# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's version lines: what their components need of Kubernetes, as mindcluster.yml says it."""

from __future__ import annotations

import copy
import functools
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults, valid_settings

# As upstream names its releases: v26.1.0, v26.1.0.beta.2, v7.0.RC1. A tag may have more after that.
_RELEASE = re.compile(r"v?([0-9]{1,2}\.[0-9])\.(?:[0-9]+|RC[0-9]+)(?![0-9])")
# A release becomes part of tags, and of the name of Volcano's plugin.
_TAG = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}\Z")
# Tags of images with Volcano begin with its release, and may have no other: v1.12.0-v26.1.0-alpinelatest.
_VOLCANO = re.compile(r"v?1\.[0-9]{1,2}\.[0-9]{1,2}(?:-|$)")
# What ascend-for-volcano calls itself, with its release.
VOLCANO_PLUGIN = "volcano-npu_%s"
# The role whose settings all components share.
COMMON = "npu_component"
_HERE = os.path.dirname(os.path.abspath(__file__))


@functools.lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The content of mindcluster.yml."""
    return _read("mindcluster.yml")


@functools.lru_cache(maxsize=1)
def scripts() -> dict[str, str]:
    """The content of scripts.yml."""
    return _read("scripts.yml")


def _read(name: str) -> dict[str, Any]:
    with open(os.path.join(_HERE, name), encoding="utf-8") as stream:
        return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def names() -> tuple[str, ...]:
    """The names of the version lines, the oldest first."""
    return tuple(table()["version_lines"])


def default() -> str:
    """The name of the version line that is installed by default."""
    return names()[-1]


def version_line(name: str | None = None) -> dict[str, Any]:
    """What is known of the version line, with the names of its families' objects. Raises NpuError for one that is not known."""
    rows = table()
    name = name or default()
    if name not in rows["version_lines"]:
        raise NpuError("npu_mindcluster_version_line is %s; it must be one of %s" % (name, ", ".join(names())))
    known = rows["version_lines"][name]
    plugin = known["device_plugin"]
    families = {family: dict(rows["families"][family], flags=[], **row) for family, row in plugin["families"].items()}
    return dict(known, name=name, images=rows["images"], scripts=scripts(), device_plugin=dict(plugin, families=families))


def image(name: str | None, part: str, version: str | None = None, setting: str = "image") -> str:
    """Upstream's image of ``part``, a component by its role without npu_, in that release or the one that the version line
    installs.

    ``setting``: which of its images, by the variable without the role.
    """
    row = version_line(name)
    repository = row["images"]["%s_%s" % (part, setting.removesuffix("_image")) if setting != "image" else part]
    return "%s:%s" % (repository, row[part].get("tag", "%s") % (version or row["version"]))


def component(name: str | None, role: str, given: Mapping[str, Any], common: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The version line with what the settings of a component add to it.

    ``role``: that of the component, such as npu_exporter; ``given``: its settings by their names without that prefix; ``common``:
    those of the role npu_component, likewise.
    Raises NpuError for settings that make no sense.
    """
    row = version_line(name)
    settings = valid_settings.settings(role, given)
    if role == "npu_volcano":
        return dict(row, volcano=_volcano(row, settings))
    part = role.removeprefix("npu_")
    wanted = dict(row[part])
    wanted["flags"] = _with_logs(row, part, wanted["flags"], common)
    options = table()["options"]
    if role == "npu_ascend_operator":
        wanted["flags"] += options["gang_scheduling"][settings["gang_scheduling"]]
    if role == "npu_device_plugin":
        wanted["flags"] += (options["volcano"] if settings["volcano"] else []) + options["hot_reset"][settings["hot_reset"]]
        if settings["volcano"]:
            wanted["families"] = {
                accelerator: dict(family, mounts=family["mounts"] + family["volcano_mounts"])
                for accelerator, family in wanted["families"].items()
            }
        if settings["share_count"] > 1:
            reason = _cannot_share(settings)
            if reason:
                raise NpuError(reason)
            flags = [options["share_count"] % settings["share_count"]]
            wanted["families"] = {
                accelerator: dict(family, flags=flags) if family["shared_chips"] else family
                for accelerator, family in wanted["families"].items()
            }
    return dict(row, **{part: wanted})


def _volcano(row: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the version line has of Volcano, with the name of its ``plugin`` and the ``configuration`` of the scheduler, as text."""
    wanted = dict(row["volcano"], plugin=VOLCANO_PLUGIN % (settings["version"] or row["version"]))
    level = ["-v=%d" % settings["log_level"]]
    rules = copy.deepcopy(table()["volcano"])
    for tier in rules["tiers"]:
        for plugin in tier["plugins"]:
            plugin["name"] = plugin["name"].replace("%s", wanted["plugin"])
    arguments = dict(wanted["arguments"], **{table()["options"]["use_clusterd"]: str(settings["use_clusterd"]).lower()})
    for name, value in settings["arguments"].items():
        if not isinstance(name, str) or not isinstance(value, (str, int, bool)):
            raise NpuError(
                "npu_volcano_arguments has %s: %s; it must be a dictionary of texts and numbers, such as super-pod-size: 48"
                % (name, value)
            )
        arguments[name] = str(value).lower() if isinstance(value, bool) else str(value)
    rules["configurations"] = [{"name": "init-params", "arguments": arguments}]
    configuration = yaml.safe_dump(rules, sort_keys=False)
    return dict(
        wanted,
        scheduler=wanted["scheduler"] + level,
        controllers=wanted["controllers"] + level,
        arguments=arguments,
        configuration=configuration,
    )


def _cannot_share(settings: Mapping[str, Any]) -> str | None:
    """Why chips cannot be shared with the other settings, as a sentence; or None.

    Of both, Volcano is what 7.3 ends at. 26.1 starts, but Volcano cannot read the names of shared devices and assigns none.
    """
    head = "npu_device_plugin_share_count is %d, and " % settings["share_count"]
    if settings["volcano"]:
        return head + (
            "npu_device_plugin_volcano is true: Volcano cannot assign shared chips. Set npu_device_plugin_share_count: 1, or"
            " npu_device_plugin_volcano: false"
        )
    if settings["hot_reset"] != "disabled":
        return head + (
            "npu_device_plugin_hot_reset is %s: a reset would hit all pods that share the chip. Set"
            " npu_device_plugin_share_count: 1, or npu_device_plugin_hot_reset: disabled" % settings["hot_reset"]
        )
    return None


def shared_chips(accelerator: str) -> list[str]:
    """The chips, by their families' names, that the device plugin for nodes with this label accelerator can offer several times."""
    return table()["families"].get(accelerator, {}).get("shared_chips", [])


def _with_logs(row: Mapping[str, Any], part: str, flags: Iterable[str], common: Mapping[str, Any] | None) -> list[str]:
    """The flags of a component with those of its logs."""
    settings = valid_settings.settings(COMMON, common)
    most = row[part]["most_log_backups"]
    if settings["log_max_backups"] > most:
        found = (COMMON, settings["log_max_backups"], row["name"], most)
        raise NpuError("%s_log_max_backups is %d; MindCluster %s keeps %d at most" % found)
    level = "-logLevel=%d" % settings["log_levels"][part]
    limits = [
        "%s=%d" % (flag, settings[option])
        for option, flag in (("log_max_age", "-maxAge"), ("log_max_backups", "-maxBackups"))
        if settings[option] != spec_defaults.default("%s_%s" % (COMMON, option))
    ]
    return [level if flag.startswith("-logLevel=") else flag for flag in flags] + limits


def no_plugin(name: str | None, accelerator: str, chip: str | None = None) -> str | None:
    """Why there is no device plugin for nodes with this label accelerator, as a sentence; or None. ``chip``: the family's name."""
    row = version_line(name)
    if accelerator in row["device_plugin"]["families"]:
        return None
    family = "the %s (%s)" % (chip, accelerator) if chip else accelerator
    return "MindCluster %s has no device plugin for %s" % (row["name"], family)


def version_line_of(version: str) -> str | None:
    """The name of the version line that a release or the tag of an image belongs to, also of one that is not in the table; or
    None."""
    match = _RELEASE.match(_VOLCANO.sub("", version, count=1)) if _TAG.match(version) else None
    return match.group(1) if match else None


def version_line_of_image(image: str) -> str | None:
    """The same of an image; None without a tag that names a release."""
    try:
        return version_line_of(parse_reference(image).tag or "")
    except NpuError:
        return None


def mismatches(name: str | None, component: str, version: str | None, image: str | Mapping[str, str | None] | None) -> list[str]:
    """Why version and image of a component cannot be installed with the manifests of the version line, as sentences.

    ``component``: its role; ``version``, ``image``: its variables, or None; of a component with several images, each by its
    variable without the role. An image whose tag names no release is taken as it is.
    """
    row = version_line(name)
    images = image if isinstance(image, Mapping) else {"image": image}
    if version:
        found = version_line_of(version)
        if found is None:
            return [
                "%s_version is %s, which names no release of MindCluster, such as %s. For an image with another tag, set %s"
                % (
                    component,
                    printable(version, 80),
                    row["version"],
                    " and ".join("%s_%s" % (component, setting) for setting in images),
                )
            ]
        if found != row["name"]:
            return ["%s_version is %s, %s" % (component, version, _other(row, found, component + "_version"))]
    reasons = []
    for setting, one in images.items():
        variable = "%s_%s" % (component, setting)
        found = version_line_of_image(one) if one else None
        if found not in (None, row["name"]):
            reasons.append("%s is %s, %s" % (variable, one, _other(row, found, variable)))
    return reasons


def _other(row: dict[str, Any], found: str | None, variable: str) -> str:
    text = "of MindCluster %s, and npu_mindcluster_version_line is %s: its manifest does not fit. Set %s to %s" % (
        found,
        row["name"],
        variable,
        row["version"] if variable.endswith("_version") else "an image of " + row["version"],
    )
    return text + (', or npu_mindcluster_version_line: "%s"' % found if found in names() else "")
