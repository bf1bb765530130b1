# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver image of a host: its reference, and what the registry says of it, asked with the host's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.profile import image_profile, profile_tag
from ansible_collections.npuops.ascend.plugins.module_utils._firmware.firmware import (
    ANNOTATION_DRIVERS,
    ANNOTATION_VERSION,
    declared,
    is_version,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import is_digest
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference, parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Brings, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_package, signature
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config

# resolve(reference, config, machine) -> digest; raises NpuError
Resolve = Callable[[str, dict[str, Any], "str | None"], str]

# What the registry's answer depends on, besides the reference.
_OF_IMAGES = ("registry_", "driver_digest", "driver_signature_")


def reference_of(config: dict[str, Any], facts: Facts) -> tuple[str, str | None]:
    """(reference text, profile or None) of the driver image for a host, upstream. Raises NpuError when it cannot be told."""
    if config["driver_image"]:
        return config["driver_image"], config["driver_profile"]
    if not config["driver_repository"]:
        raise NpuError(
            "npu_driver_repository is not set: the repository that holds the driver images, such as"
            " registry.example.com/mlops/ascend-driver (or npu_driver_image for a whole reference)"
        )
    if config["driver_profile"]:
        tag = profile_tag(config["driver_version"], config["driver_profile"])
    else:
        family = facts.get("family") or {}
        tag = image_profile(config["driver_version"], family.get("key"), facts.get("kernel_key"), facts.get("os_key"))
    return "%s:%s" % (config["driver_repository"], tag), tag


class Answers:
    """What the registry says of references: each is looked up once for each architecture, however many hosts want it.

    ``packages``: the same for packages.
    """

    def __init__(self, resolve: Resolve, look: driver_package.Look = driver_package.look) -> None:
        self._resolve = resolve
        self.packages = driver_package.Packages(look)
        self._known: dict[tuple[str | None, ...], str | NpuError] = {}

    def of(self, reference: str, config: dict[str, Any], machine: str | None) -> str:
        """The digest. Raises NpuError."""
        key = (reference, machine) + tuple(str(config[name]) for name in sorted(host_config.NAMES) if name.startswith(_OF_IMAGES))
        if key not in self._known:
            try:
                self._known[key] = self._resolve(reference, config, machine)
            except NpuError as exc:
                self._known[key] = exc
        answer = self._known[key]
        if isinstance(answer, NpuError):
            raise answer
        return answer


def resolve_all(candidates: Iterable[CheckedHost], answers: Answers, explicit: bool = False) -> None:
    """Sets the image or the package of each host, and its digest."""
    for verdict in candidates:
        if not verdict.wants_driver:
            continue
        if explicit and not verdict.host["config"].get("driver_version"):
            # What install begins with is no answer to the question what a fleet that runs shall be moved to.
            verdict.reasons.append("npu_driver_version is not set: set the version to upgrade to, in the inventory or with -e")
            continue
        if driver_package.wants_package(verdict):
            driver_package.resolve(verdict, answers.packages)
            continue
        try:
            upstream, profile = reference_of(verdict.config, verdict.facts)
            reference = mirrored(upstream, verdict.config["registry_mirror"])
        except NpuError as exc:
            verdict.reasons.append(one_line(exc.message))
            continue
        verdict.image, verdict.upstream, verdict.profile = reference, upstream, profile
        try:
            verdict.digest = answers.of(reference, verdict.config, verdict.facts.get("machine"))
        except ImageNotFound as exc:
            told = " for the profile %s" % profile if profile else ""
            verdict.reasons.append("no driver image%s: %s" % (told, one_line(exc.message)))
        except NpuError as exc:
            # The registry's trouble, not this image's: one line for all hosts.
            verdict.reasons.append(one_line(exc.message))


def resolve(reference_text: str, config: dict[str, Any], machine: str | None = None) -> str:
    """The digest of a reference, verified where signatures are required. Raises NpuError.

    ``config``: complete as _settings.host_config makes it. The digest in it counts for more than the tag. ``machine``: ``uname -m``
    of the host. From an index, it is the digest of the image for that machine: what else is in the index may change at any time.
    """
    reference = parse_reference(reference_text)
    required = signature.policy(config.get("driver_signature_policy") or signature.OFF) == signature.REQUIRE
    pinned = config.get("driver_digest")
    if pinned and not is_digest(pinned):
        raise NpuError("npu_driver_digest is %r; it must be sha256: and 64 hexadecimal digits" % pinned)
    if pinned and reference.digest and pinned != reference.digest:
        raise NpuError("npu_driver_image names %s, and npu_driver_digest is %s" % (reference.digest, pinned))
    client = _client(reference, config)
    named = client.resolve(reference.repository, pinned or reference.digest or reference.tag)
    found = client.for_machine(reference.repository, named, machine) if machine else named
    if required:
        signature.verify(client, reference.repository, found.digest, config.get("driver_signature_keys"), named.digest)
    return found.digest


def size(reference_text: str, digest: str, config: dict[str, Any], machine: str | None) -> int:
    """Bytes of the layers of the image with that digest for a host whose ``uname -m`` is ``machine``. Raises NpuError."""
    reference = parse_reference(reference_text)
    _descriptor, manifest = _client(reference, config).image(reference.repository, digest, machine)
    return sum(layer["size"] for layer in manifest["layers"])


def firmware(reference_text: str, digest: str, config: dict[str, Any], machine: str | None) -> Brings | None:
    """The firmware package in the image, as its annotations say, or None. Raises NpuError."""
    reference = parse_reference(reference_text)
    _descriptor, manifest = _client(reference, config).image(reference.repository, digest, machine)
    told = manifest.get("annotations") or {}
    version = told.get(ANNOTATION_VERSION)
    if version is None:
        return None
    if not is_version(version):
        raise NpuError(
            "the annotation %s of %s is not a version: %s" % (ANNOTATION_VERSION, reference_text, printable(str(version)))
        )
    drivers = told.get(ANNOTATION_DRIVERS)
    return {"version": version, "drivers": declared(drivers) if isinstance(drivers, str) else []}


def _client(reference: Reference, config: dict[str, Any]) -> RegistryClient:
    return RegistryClient(
        reference.registry,
        username=config["registry_username"],
        password=config["registry_password"],
        plain_http=config["registry_plain_http"],
        ca_file=config["registry_ca_file"],
    )
