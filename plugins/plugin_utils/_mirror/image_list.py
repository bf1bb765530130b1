# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which images a fleet needs: the drivers of its hosts, the ToolBox of accept, and the components that install deploys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import VARIABLE, is_in_mirror
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.columns import aligned
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster, wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.wanted_components import Wanted
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror import host_packages
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import REGISTRY, WEB, PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_image, driver_package, other_kernels
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import PREINSTALLED, CheckedHost


class ImageList:
    """Images by their names upstream, each with what needs it."""

    def __init__(self) -> None:
        self._needed_by: dict[str, list[str]] = {}
        self._packages: dict[PackageSource, list[str]] = {}
        self._left_out: dict[str, list[str]] = {}
        self._reasons: list[str] = []

    @property
    def images(self) -> list[str]:
        return list(self._needed_by)

    def add(self, image: str, needed_by: str, mirror: Any = None) -> None:
        """``mirror``: its npu_registry_mirror; what has a name in it is not copied. Raises NpuError for what is no reference."""
        listed = self._left_out if is_in_mirror(image, mirror) else self._needed_by
        listed.setdefault(str(parse_reference(image)), []).append(needed_by)

    def add_drivers(self, hosts: Iterable[AskedHost], versions: Sequence[str] = ()) -> None:
        """The driver of each host, its image in its version or in all of ``versions``, and its packages.

        Raises NpuError if it cannot be told of one.
        """
        for host in hosts:
            problem = host.get("error") or host.get("pending") or ("it cannot be reached" if host.get("unreachable") else None)
            if problem is None and not host.get("facts"):
                problem = "its facts were not read"
            if problem:
                self._reasons.append("%s: %s" % (host["name"], one_line(problem)))
                continue
            checked = CheckedHost(host)
            if not checked.has_chips:
                continue
            self._add_packages(checked)
            if checked.config["driver_source"] == PREINSTALLED or driver_package.wants_package(checked):
                continue
            for version in versions or [checked.config["driver_version"]]:
                self._add_driver(checked, version)
                self._add_other_kernels(checked, version)
        if self._reasons:
            raise NpuError(
                "The driver images of these hosts are not known. Correct that, or leave the hosts out with --limit: "
                + "; ".join(dict.fromkeys(self._reasons))
            )

    def add_toolboxes(self, hosts: Iterable[AskedHost]) -> None:
        """The image with which accept tests the chips of a host, where there is one. Raises NpuError."""
        for host in hosts:
            checked = CheckedHost(host)
            image = checked.config["accept_toolbox_image"]
            if image and checked.has_chips:
                self.add(image, "accept of " + checked.name, checked.config["registry_mirror"])

    def _add_packages(self, checked: CheckedHost) -> None:
        """An artifact is copied like an image. A file on the controller is where it is needed."""
        try:
            # By their names upstream, whatever mirror there is.
            sources = host_packages.sources_of(dict(checked.config, registry_mirror=None))
        except NpuError as exc:
            self._reasons.append("%s: %s" % (checked.name, one_line(exc.message)))
            return
        for source in sources:
            needed_by = "%s of %s" % (source.what, checked.name)
            if source.kind == REGISTRY:
                self.add(source.place, needed_by, checked.config["registry_mirror"])
            elif source.kind == WEB:
                listed = next((one for one in self._packages if one.is_same(source)), source)
                self._packages.setdefault(listed, []).append(needed_by)

    def _add_driver(self, checked: CheckedHost, version: str) -> None:
        digest = checked.config["driver_digest"] if version == checked.config["driver_version"] else None
        try:
            image, _profile = driver_image.reference_of(dict(checked.config, driver_version=version), checked.facts)
            reference = parse_reference(image)
            pinned = image + ("@" + digest if digest and not reference.digest else "")
            self.add(pinned, "driver of " + checked.name, checked.config["registry_mirror"])
        except NpuError as exc:
            self._reasons.append("%s: %s" % (checked.name, one_line(exc.message)))

    def _add_other_kernels(self, checked: CheckedHost, version: str) -> None:
        reasons: list[str] = []
        for kernel, named in other_kernels.wanted(checked, reasons):
            needed_by = "driver of %s for kernel %s" % (checked.name, kernel)
            try:
                self.add(other_kernels.reference(checked, kernel, version), needed_by, checked.config["registry_mirror"])
            except NpuError as exc:
                if named:
                    reasons.append(one_line(exc.message))
        self._reasons += ["%s: %s" % (checked.name, reason) for reason in reasons]

    def add_components(self, version_line: str, components: Iterable[Wanted], mirror: Any = None) -> None:
        """What install deploys: those that are enabled. ``mirror``: as for ``add``. Raises NpuError."""
        for wanted in components:
            if not wanted.enabled:
                continue
            if wanted.part == wanted_components.AGENT:
                self._add_agent(wanted.images["image"], mirror)
            else:
                self._add_component(version_line, wanted, mirror)

    def _add_agent(self, image: str | None, mirror: Any) -> None:
        if not image:
            raise NpuError(wanted_components.NO_AGENT_IMAGE)
        self.add(image, "node agent", mirror)

    def _add_component(self, version_line: str, wanted: Wanted, mirror: Any) -> None:
        reasons = mindcluster.mismatches(version_line, wanted.role, wanted.version, wanted.images)
        if reasons:
            raise NpuError("; ".join(reasons))
        for setting, image in wanted.images.items():
            found = image or mindcluster.image(version_line, wanted.part, wanted.version, setting)
            self.add(found, wanted_components.TITLES[wanted.part], mirror)

    def result(self) -> list[dict[str, Any]]:
        return [{"image": image, "needed_by": needed_by} for image, needed_by in self._needed_by.items()]

    @property
    def packages(self) -> list[dict[str, str]]:
        """{package, sha256} of packages on web servers: for each one its URL, without what is secret in it."""
        return [{"package": one.name, "sha256": one.digest.rpartition(":")[2]} for one in self._packages]

    def table(self) -> list[str]:
        """The list for people."""
        needed_by = [*self._needed_by.items(), *((source.name, needed) for source, needed in self._packages.items())]
        rows = aligned([["IMAGE", "NEEDED BY"], *([name, ", ".join(needed)] for name, needed in needed_by)])
        return rows + ["not listed, its name is below %s: %s" % (VARIABLE, name) for name in self._left_out]
