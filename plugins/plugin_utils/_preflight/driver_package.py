# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver package of a host: which release it becomes there, and whether it fits, each package looked into once.

The checksum in the inventory is the digest of the release, so a host that has the release needs nothing of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import package_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._package import contents as package_contents
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.artifact import Artifact
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.contents import PackageContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import REGISTRY, PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import Store
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import signature
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import PACKAGE, CheckedHost

# look(source, config) -> PackageContents; raises NpuError
Look = Callable[[PackageSource, "dict[str, Any]"], PackageContents]

_SPACE_MARGIN = 64 * 2**20


def look(source: PackageSource, config: dict[str, Any]) -> PackageContents:
    """Download the package, verify its checksum and, where signatures are required, its signature, and read it. Raises NpuError.

    ``config``: complete as _settings.host_config makes it.
    """
    return package_contents.read(fetch(source, config), source.name)


def fetch(source: PackageSource, config: dict[str, Any]) -> str:
    """The package as a file on the controller, with its checksum and, where signatures are required, its signature verified.

    Raises NpuError.
    """
    if _must_be_signed(config):
        if source.kind != REGISTRY:
            raise NpuError(
                "npu_driver_signature_policy is %s, and only packages in a registry (%s: oci://...) can be signed. "
                "Push %s to a registry and sign it with cosign, or set npu_driver_signature_policy: %s for these hosts"
                % (signature.REQUIRE, source.setting, source.name, signature.OFF)
            )
        signature.verify(*Artifact(source).signed(), config.get("driver_signature_keys"))
    return Store().file(source)


class Packages:
    """What is in packages: each is looked into once, however many hosts want it."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._known: dict[tuple[Any, ...], PackageContents | NpuError] = {}

    def of(self, config: dict[str, Any]) -> PackageContents:
        """The contents of the host's package. Raises NpuError."""
        source = source_of(config)
        key = (source, config.get("driver_signature_policy"), str(config.get("driver_signature_keys")))
        if key not in self._known:
            try:
                self._known[key] = self._look(source, config)
            except NpuError as exc:
                self._known[key] = exc
        found = self._known[key]
        if isinstance(found, NpuError):
            raise found
        return found


def source_of(config: dict[str, Any]) -> PackageSource:
    """Where the host's package comes from. Raises NpuError."""
    options = {name: config[name] for name in config if name.startswith("registry_")}
    for name in ("package", "package_sha256", "package_username", "package_password"):
        options[name] = config["driver_" + name]
    return PackageSource.of(options)


def resolve(verdict: CheckedHost, packages: Packages) -> None:
    """Sets the package of the host and its digest, and says what does not fit."""
    config, facts = verdict.config, verdict.facts
    try:
        source = source_of(config)
        verdict.package, verdict.digest = source.name, source.digest
        release = Layout.release_name(config["driver_version"], facts["kernel"] or "", source.digest)
        if _has(facts, release):
            return
        contents = packages.of(config)
    except NpuError as exc:
        verdict.reasons.append(one_line(exc.message))
        return
    verdict.package_space = _space(contents)
    verdict.reasons += _misfits(verdict, source, contents)


def _misfits(verdict: CheckedHost, source: PackageSource, contents: PackageContents) -> list[str]:
    """Why the package is not for the host, as clauses."""
    config, facts = verdict.config, verdict.facts
    wanted, kernel, machine = config["driver_version"], facts["kernel"] or "", facts.get("machine")
    found = []
    if contents.version != wanted:
        found.append(package_name.another_version(source.name, contents.version, wanted).message)
    if machine and contents.machine != machine:
        found.append(
            "%s is for %s, and the host is %s: set npu_driver_package for each architecture"
            % (source.name, contents.machine, machine)
        )
    else:
        try:
            _check_kernel(source, kernel, facts.get("symvers"), contents, verdict.notes)
        except NpuError as exc:
            found.append(exc.message)
    try:
        package_name.check_chip(source.name, verdict.family.get("key"))
    except NpuError as exc:
        found.append(exc.message)
    return [one_line(text) for text in found]


def _check_kernel(source: PackageSource, kernel: str, symvers: str | None, contents: PackageContents, notes: list[str]) -> None:
    """Raise NpuError if the package has no modules that the ``kernel`` could load; ``symvers``: the file with its symbols.

    Adds to ``notes`` if it has only those of siblings, other kernels of the same version of Linux.
    """
    if kernel in contents.kernels:
        return
    siblings = [one for one in contents.kernels if one.partition("-")[0] == kernel.partition("-")[0]] if symvers else []
    if not siblings:
        raise package_name.no_modules(source.name, kernel, contents.kernels)
    # Only the host has what can tell, and nothing on it is changed before it does.
    notes.append(
        "%s has no kernel modules for %s. When it is staged, the symbols of those for %s are compared with this kernel's"
        % (source.name, kernel, ", ".join(siblings))
    )


def for_kernel(checked: CheckedHost, kernel: str, version: str, packages: Packages, notes: list[str]) -> dict[str, str] | None:
    """What is to be staged of the package for another kernel, as other_kernels.look says it; None if it is staged already.

    Adds to ``notes``. Raises NpuError.
    """
    config, facts = checked.config, checked.facts
    if any(_is_of(name, version, kernel) for name in _staged(facts)):
        return None
    source = source_of(config)
    if version != config["driver_version"]:
        raise NpuError("%s has driver %s" % (source.name, config["driver_version"]))
    release = Layout.release_name(version, kernel, source.digest)
    contents = packages.of(config)
    following = facts.get("next_kernel")
    symvers = following["symvers"] if following and following["kernel"] == kernel else None
    _check_kernel(source, kernel, symvers, contents, notes)
    return {"kernel": kernel, "version": version, "image": "", "package": source.name, "digest": source.digest, "release": release}


def _is_of(release: str, version: str, kernel: str) -> bool:
    return release.startswith("%s-%s-" % (version, kernel))


def _has(facts: Facts, release: str) -> bool:
    """Whether the host says that it has the release; whether that is damaged, staging finds out."""
    driver = facts.get("driver") or {}
    return release in _staged(facts) or bool(driver.get("release") == release and driver.get("complete"))


def _staged(facts: Facts) -> list[str]:
    """The names of complete releases on the host; an install knows only some of them."""
    known = list((facts.get("upgrade") or {}).get("staged") or {})
    following = facts.get("next_kernel")
    release = following["release"] if following else None
    return [*known, release] if release else known


def _space(contents: PackageContents) -> int:
    """Bytes that must be free on the host: the content is unpacked there, and then copied."""
    return contents.size + 2 * contents.unpacked + _SPACE_MARGIN


def _must_be_signed(config: dict[str, Any]) -> bool:
    return signature.policy(config.get("driver_signature_policy") or signature.OFF) == signature.REQUIRE


def wants_package(checked: CheckedHost) -> bool:
    """Whether the driver of the host is to come from a package."""
    return checked.config["driver_source"] == PACKAGE
