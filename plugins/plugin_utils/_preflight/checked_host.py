# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host with what preflight found out about it."""

from __future__ import annotations

import posixpath
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts, Family
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import missing_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.wanted_vnpus import Wanted
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import BLOCKED, READY, SKIPPED, UNREACHABLE
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config

# Values of npu_driver_source.
IMAGE, PACKAGE, PREINSTALLED = "image", "package", "preinstalled"

# CheckedHost.components of a node that adoption moves: until then, nothing that its pods and its device plugin rely on is changed.
HELD = "held"

_HOST_ARCH = {"aarch64": "huawei-arm", "x86_64": "huawei-x86"}


class CheckedHost:
    """What install will do with one host, and why not."""

    def __init__(self, host: AskedHost) -> None:
        self.host = host
        self.name: str = host["name"]
        self.config = host_config.complete(host["config"])
        self.facts: Facts = host.get("facts") or Facts()
        self.node_name: str = self.config["node_name"] or self.name
        self.reasons: list[str] = []
        self.notes: list[str] = []
        self.image: str | None = None  # its reference, in the mirror if there is one
        self.upstream: str | None = None  # its reference without a mirror, by which a release is staged again through another one
        self.package: str | None = None  # its name, where the driver comes from one
        self.package_space: int | None = None  # bytes that it needs on the host, if it is to be staged
        self.digest: str | None = None
        self.profile: str | None = None
        # Whether it is to have a driver of ours, from an image or from a package.
        self.wants_driver = False
        self.components = "enabled"
        # The level at which its node must be accepted before it serves; 0: it serves at once.
        self.gate = 0
        # A release that is on the host and stays in effect: the one that is wanted, or another one that runs.
        self.keep_release: str | None = None
        self.runs_another = False
        # What is staged for kernels that do not run yet: {kernel, version, image, upstream or package, digest, release} each.
        self.other_kernels: list[dict[str, str]] = []
        # The virtual NPUs that it is to have, None if they do not change; and whether its node leaves the service for that.
        self.vnpus: Wanted | None = None
        self.vnpu_pause = False

    @property
    def family(self) -> Family:
        return self.facts.get("family") or {}

    @property
    def has_chips(self) -> bool:
        return bool(self.facts.get("chip_count"))

    @property
    def missing_chips(self) -> str | None:
        """Which of the chips that it is to have are missing, as a phrase."""
        return missing_chips.missing(self.facts, self.config["chips"])

    @property
    def status(self) -> str:
        if self.host.get("unreachable"):
            return UNREACHABLE
        if self.reasons:
            return BLOCKED
        return READY if self.has_chips else SKIPPED

    @property
    def driver_path(self) -> str | None:
        """The driver tree on the host, as the components mount it."""
        if self.config["driver_source"] == PREINSTALLED:
            return (self.facts.get("driver") or {}).get("tree")
        return posixpath.join(self.config["driver_root"], "driver")

    @property
    def distribution(self) -> str:
        """The Kubernetes distribution. What a host says its paths are is not mounted: it may say any."""
        name = (self.facts.get("runtime") or {}).get("name")
        return name if name and host_distributions.named(name) else host_distributions.PLAIN.name

    @property
    def expected_version(self) -> str | None:
        """The version of the driver that install validates; None for any."""
        return self.config["driver_version"] if self.wants_driver and not self.runs_another else None

    def result(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "reasons": self.reasons,
            "notes": self.notes,
            "node_name": self.node_name,
            "family": self.family.get("name"),
            "accelerator": self.family.get("accelerator"),
            "resource": self.family.get("resource"),
            "chips": self.facts.get("chip_count", 0),
            "offers": self.vnpus.offers() if self.vnpus else node_offers.of(self.facts),
            "vnpu_layout": self.vnpus.layout if self.vnpus and (self.vnpus.changed or self.vnpu_pause) else None,
            "vnpu_pause": self.vnpu_pause,
            "boot_id": self.facts.get("boot_id"),
            "host_arch": _HOST_ARCH.get(self.facts.get("machine") or ""),
            "driver_source": self.config["driver_source"],
            "driver_version": self.config["driver_version"],
            "driver_path": self.driver_path,
            "distribution": self.distribution,
            "image": self.image,
            "upstream": self.upstream,
            "package": self.package,
            "digest": self.digest,
            "profile": self.profile,
            "components": self.components,
            "gate": self.gate,
            "keep_release": self.keep_release,
            "other_kernels": self.other_kernels,
            "expected_version": self.expected_version,
            "family_key": self.family.get("key"),
        }

    @property
    def may_be_settled(self) -> bool:
        """Whether, as far as its facts tell, nothing is to be staged on it and its virtual NPUs do not change."""
        kept = not self.wants_driver or (self.keep_release is not None and not self.other_kernels)
        by_cdi = self.config["runtime_mode"] == "cdi"
        return self.status == READY and kept and by_cdi and not self.vnpu_pause and not (self.vnpus and self.vnpus.changed)

    def line(self) -> str:
        """The plan for this host, for people."""
        if self.status == SKIPPED:
            return "%s: %s" % (self.name, "; ".join(self.notes))
        if self.package:
            source = "driver package %s" % self.package
        else:
            source = "the driver in %s" % self.driver_path if not self.image else "driver image %s" % self.image
        text = "%s: %d x %s, %s" % (self.name, self.facts["chip_count"] or 0, self.family["name"], source)
        for other in self.other_kernels:
            text += ", driver %(version)s for kernel %(kernel)s" % other
        gate = ["pods wait until npuops.ascend.accept has accepted it at level %d" % self.gate] if self.gate else []
        return "; ".join([text] + self.notes + gate)
