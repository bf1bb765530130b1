# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver for the kernels that a host is going to boot: the images that npu_driver_kernels asks for, beside that of the running
kernel.

At a boot into another kernel, npu-driver-select takes the release of the same version for that kernel. So what is staged here is
always a version that the host runs, or is to run.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.profile import of_other_kernel
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_package
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.driver_image import Answers, reference_of

NEXT = "next"
_KERNEL = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~-]{0,254}\Z")
# Settings that name one image, which is for one kernel.
_OF_ONE_IMAGE = ("driver_image", "driver_profile", "driver_digest")


def next_of(facts: Facts) -> str | None:
    """The kernel that the host boots next, if that is known and not the running one."""
    following = facts.get("next_kernel")
    return following["kernel"] if following else None


def stages_next(config: dict[str, Any]) -> bool:
    """Whether the setting asks for the driver of the next kernel."""
    return NEXT in _setting(config)


@dataclasses.dataclass
class Found:
    """What ``look`` found: ``images``: {kernel, version, image, upstream, digest, release} each; what is in the way; and notes."""

    images: list[dict[str, str]] = dataclasses.field(default_factory=list)
    reasons: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    def has(self, version: str, kernel: str) -> bool:
        """Whether there is an image of the driver ``version`` for the ``kernel``."""
        return any((image["version"], image["kernel"]) == (version, kernel) for image in self.images)


def look(checked: CheckedHost, versions: Sequence[str], answers: Answers) -> Found:
    """The images for other kernels of the host, of each of ``versions``, the most important one first.

    What is missing for a kernel that the setting names is a reason. For the next kernel it is a note: whether that is in the way
    depends on whether the host is to be rebooted.
    """
    found = Found()
    if not checked.wants_driver or not checked.facts.get("kernel"):
        return found
    for kernel, named in wanted(checked, found.reasons):
        for number, version in enumerate(versions):
            try:
                image = _image(checked, kernel, version, answers, found.notes)
                found.images += [image] if image else []
            except NpuError as exc:
                told = "npu_driver_kernels names the kernel %s" if named else "its next boot is into kernel %s"
                problem = "%s, and driver %s cannot be staged for that: %s" % (told % kernel, version, one_line(exc.message))
                # Of a version that is only the way back, there may be none.
                (found.reasons if named and number == 0 else found.notes).append(problem)
    return found


def wanted(checked: CheckedHost, reasons: list[str]) -> list[tuple[str, bool]]:
    """(kernel, whether the setting names it) of the kernels other than the running one; adds ``reasons`` for names of none."""
    following = next_of(checked.facts)
    kernels: dict[str, bool] = {}
    for name in _setting(checked.config):
        if name == NEXT:
            if following:
                kernels.setdefault(following, False)
        elif not _KERNEL.match(name):
            reasons.append("npu_driver_kernels has %r; it must have kernel releases as of uname -r, or %s" % (name[:64], NEXT))
        elif name != checked.facts["kernel"]:
            kernels[name] = True
    return list(kernels.items())


def _setting(config: dict[str, Any]) -> list[str]:
    return [str(name) for name in config.get("driver_kernels") or []]


def reference(checked: CheckedHost, kernel: str, version: str) -> str:
    """That of the driver ``version`` for the ``kernel``, upstream. Raises NpuError."""
    config, facts = checked.config, checked.facts
    given = [name for name in _OF_ONE_IMAGE if config[name]]
    if given:
        raise NpuError("npu_%s is set, which is for one kernel; set npu_driver_repository instead" % given[0])
    kernel_key, os_key = of_other_kernel(kernel, facts.get("os_key"))
    of_kernel: Any = dict(facts, kernel=kernel, kernel_key=kernel_key, os_key=os_key)
    return reference_of(dict(config, driver_version=version), of_kernel)[0]


def _image(checked: CheckedHost, kernel: str, version: str, answers: Answers, notes: list[str]) -> dict[str, str] | None:
    """{kernel, version, image, upstream, digest, release}; None if nothing has to be staged. Raises NpuError."""
    if driver_package.wants_package(checked):
        return driver_package.for_kernel(checked, kernel, version, answers.packages, notes)
    upstream = reference(checked, kernel, version)
    image = mirrored(upstream, checked.config["registry_mirror"])
    digest = answers.of(image, checked.config, checked.facts.get("machine"))
    release = Layout.release_name(version, kernel, digest)
    return {"kernel": kernel, "version": version, "image": image, "upstream": upstream, "digest": digest, "release": release}
