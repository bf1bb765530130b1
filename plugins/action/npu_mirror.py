# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference, is_registry, parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import MIRRORED
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.at_once import show_lines_at_once
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.controller import ControllerAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror import copying, host_packages, mirror_table, places
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.bundle import Bundle
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.package_files import JoinedSource, PackageFiles, is_package
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.registries import (
    Registries,
    RegistryDestination,
    RegistrySource,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import OCI, PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import Store
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config

show_lines_at_once()


class ActionModule(ControllerAction):
    """See the documentation of the module npu_mirror."""

    ARGUMENTS: dict[str, Any] = {
        "images": {"type": "list", "elements": "str", "default": []},
        "packages": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "package": {"type": "str", "required": True},
                "sha256": {"type": "str", "required": True},
                "username": {"type": "str"},
                "password": {"type": "str", "no_log": True},
            },
        },
        "hosts": dict(HOSTS, required=False, default=[]),
        "from": {"type": "path"},
        "to": {"type": "raw"},
        "checksum": {"type": "str"},
        "registries": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "registry": {"type": "str", "required": True},
                "username": {"type": "str"},
                "password": {"type": "str", "no_log": True},
                "plain_http": {"type": "bool", "default": False},
                "ca_file": {"type": "path"},
            },
        },
        "registry_mirror": {"type": "raw"},
        "credentials_of": {"type": "str"},
        **registry_options.ARGUMENTS,
    }
    RULES = {
        "required_together": [("registry_username", "registry_password")],
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        registries = Registries(_access(params))
        source, checksum = _source(params, registries)
        destination = _destination(params, registries)
        copy = copying.Copy(source, destination, screen.show)
        copy.plan()
        if copy.problems and not copy.steps:
            raise NpuError("; ".join(copy.problems))
        changed = copy.is_needed
        if changed and not self._task.check_mode:
            try:
                copy.run()
            except NpuError as exc:
                if not isinstance(destination, Bundle):
                    raise
                checksum, told = _after_failure(destination)
                raise NpuError("%s. %s" % (exc.message, told), checksum=checksum, **exc.details) from None
        if copy.problems:
            told = "%d others %s" % (len(copy.steps) - len(copy.refused), "are there" if not self._task.check_mode else "can be")
            if isinstance(destination, Bundle) and not (changed and self._task.check_mode):
                checksum, of_bundle = _after_failure(destination)
                told += ". " + of_bundle
            raise NpuError("%s. %s" % ("; ".join(copy.problems), told), changed=changed, checksum=checksum)
        # In check mode, a run would write another one.
        if isinstance(destination, Bundle) and not (changed and self._task.check_mode):
            checksum = destination.checksum()
        return {
            "changed": changed,
            "images": [step.result() for step in copy.steps],
            "missing": copy.size,
            "checksum": checksum,
            "table": mirror_table.table(copy.steps),
            "bundle": isinstance(destination, Bundle),
            "packages": [] if isinstance(destination, Bundle) else _packages(copy),
            "msg": mirror_table.summary(copy.steps, changed),
        }


def _after_failure(bundle: Bundle) -> tuple[str | None, str]:
    """The checksum of the bundle if it is complete without what failed, and what to say about it."""
    with contextlib.suppress(NpuError):
        if bundle.is_complete():
            checksum = bundle.checksum()
            return checksum, "Checksum of the bundle: " + checksum
    return None, "Until a run succeeds, the bundle %s is not complete and cannot be used" % bundle.path


def _source(params: dict[str, Any], registries: Registries) -> tuple[copying.Source, str | None]:
    """Where the images come from, and the checksum of the bundle if it is one."""
    if params["from"]:
        if params["images"] or params["packages"]:
            raise NpuError(
                "npu_mirror_from names a bundle, of which all is copied: leave out npu_mirror_images and npu_mirror_packages, or"
                " npu_mirror_from"
            )
        bundle = Bundle(params["from"])
        return bundle, bundle.verify(params["checksum"])
    if not params["images"] and not params["packages"]:
        raise NpuError(
            "There is nothing to copy: name images (npu_mirror_images), packages (npu_mirror_packages) or a bundle"
            " (npu_mirror_from)"
        )
    references = dict.fromkeys(_reference(text, "npu_mirror_images") for text in params["images"])
    packages = {}
    for entry in params["packages"]:
        source = _package(entry, params)
        packages[source.digest] = source
    return JoinedSource(RegistrySource(registries, list(references)), PackageFiles(list(packages.values()), Store())), None


def _reference(text: str, variable: str) -> Reference:
    try:
        return parse_reference(text.strip())
    except NpuError as exc:
        raise NpuError("%s: %s" % (variable, exc.message)) from None


def _packages(copy: copying.Copy) -> list[str]:
    """The values of npu_driver_package and the like for what is in a registry now."""
    return [OCI + step.name for step in copy.steps if is_package(step.image)]


def _package(entry: dict[str, Any], params: dict[str, Any]) -> PackageSource:
    """A package of npu_mirror_packages. Raises NpuError."""
    if entry["package"].strip().startswith(OCI):
        raise NpuError(
            "npu_mirror_packages names %s, which is copied like an image: name it in npu_mirror_images, without %s"
            % (entry["package"], OCI)
        )
    options = {"package_" + name: entry[name] for name in ("sha256", "username", "password")}
    found = PackageSource.of(dict(options, package=entry["package"], registry_ca_file=params["registry_ca_file"]), MIRRORED)
    if found.username or found.password:
        return found
    # As the host has it: with its account, and with what its URL has that no list names.
    known = (own for host in params["hosts"] for own in _packages_of(host))
    return next((own for own in known if own.is_same(found)), found)


def _packages_of(host: dict[str, Any]) -> list[PackageSource]:
    try:
        return host_packages.sources_of(host_config.complete(host["config"]))
    except NpuError:
        return []  # npu_images tells


def _destination(params: dict[str, Any], registries: Registries) -> Bundle | RegistryDestination:
    to = params["to"] or params["registry_mirror"]
    if not to:
        raise NpuError(
            "npu_mirror_to is not set: a directory for a bundle, such as /media/usb/npuops, or a registry with a prefix, such as"
            " registry.example.com/mirror"
        )
    path = places.directory(params["to"])
    if path is None:
        variable = "npu_mirror_to" if params["to"] else "npu_registry_mirror"
        places.check_prefix(to, variable)

        def target(reference: Reference) -> Reference:
            return places.name_in(to, reference, variable)

        return RegistryDestination(registries, target)
    if params["from"]:
        raise NpuError("npu_mirror_from and npu_mirror_to both name a directory: copy it with another tool, such as cp -r")
    bundle = Bundle(path)
    bundle.check()
    return bundle


def _access(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The arguments of RegistryClient by registry: each gets its own credentials, and no others."""
    found: dict[str, dict[str, Any]] = {}
    own = _own_registry(params)
    if own:
        found[own] = registry_options.access(params)
    for entry in params["registries"]:
        registry = entry["registry"]
        if not is_registry(registry):
            raise NpuError("npu_mirror_registries names the registry %r; it must be a host name with an optional port" % registry)
        if bool(entry["username"]) != bool(entry["password"]):
            raise NpuError("npu_mirror_registries has only one of username and password for %s" % registry)
        found[registry] = {name: value for name, value in entry.items() if name != "registry"}
    return found


def _own_registry(params: dict[str, Any]) -> str | None:
    """The registry that the fleet pulls from: the one for which npu_registry_username and the like are."""
    mirror, text = params["registry_mirror"], params["credentials_of"]
    if text:
        return parse_reference(mirrored(str(_reference(text, "npu_driver_image or npu_driver_repository")), mirror)).registry
    # All names begin with the prefix.
    return parse_reference(mirrored("registry.invalid/x:x", mirror)).registry if mirror and isinstance(mirror, str) else None
