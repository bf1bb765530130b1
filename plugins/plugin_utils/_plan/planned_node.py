# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node in the plan: what is known of it, and what was decided."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Brings, Driver, Validation
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.wanted_vnpus import Wanted
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import version_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import BLOCKED, DUE


class PlannedNode:
    """One host with the verdict on it."""

    def __init__(self, checked: CheckedHost, node: Object | None) -> None:
        """``checked``: _preflight.checked_host.CheckedHost; ``node``: the Node or None."""
        self.checked, self.node = checked, node
        self.name, self.node_name, self.facts = checked.name, checked.node_name, checked.facts
        self.verdict = ""  # one of _record.verdict, when it is judged
        self.reasons: list[str] = []  # why nothing can be done with it as it is
        self.blockers: list[dict[str, Any]] = []  # Blocker.result() dicts: pods that do not go now
        self.blocker_text: str | None = None
        self.notes: list[str] = []
        self.target: dict[str, Any] | None = None  # {version, release, digest, image, package, firmware}
        self.brings: Brings | None = None  # the firmware of its image or package, if the chips are to have that
        self.firmware_package: str | None = None  # the name of that package, where it is one of its own
        self.firmware_problem = False  # it is to have firmware, and which one is not known
        self.firmware_space = 0  # bytes that this needs on the host, if it is to be staged
        self.running_firmware: str | None = None  # what they have now, if that is known
        self.requested = False
        self.registry: str | None = None  # what tells that a registry runs on it
        self.record = _readable_record(node)
        self.evictions = {"npu": 0, "other": 0, "jobs": 0}
        self.order: int | None = None
        self.canary = False
        self.proved = False  # another host of its pool has what this one is to get
        self.vnpu_problem: str | None = None  # why it cannot have those of npu_vnpu
        self.vnpus: Wanted | None = None  # the virtual NPUs that the host gets before its reboot
        self.later = False  # not in a run for canaries only: due, blocked by pods, or failed before
        self.estimate: int | None = None  # seconds

    @property
    def labels(self) -> Labels:
        return kube_client.labels(self.node) if self.node else {}

    @property
    def annotations(self) -> Labels:
        return kube_client.annotations(self.node) if self.node else {}

    @property
    def driver(self) -> Driver:
        return self.facts.get("driver") or {}

    @property
    def validation(self) -> Validation:
        """Of the driver that the host has now."""
        return self.checked.host.get("validation") or {}

    @property
    def loaded_release(self) -> str | None:
        return self.driver.get("loaded_release") or (self.driver.get("release") if self.driver.get("loaded") else None)

    @property
    def loaded_version(self) -> str | None:
        return self.driver.get("loaded_version") or version_of(self.loaded_release) or None

    @property
    def pool(self) -> str:
        """Nodes that are alike: the first of each shows whether the release works there."""
        wanted = self.target or (self.record or {}).get("to") or {"release": (self.facts.get("upgrade") or {}).get("trial")}
        # A host that does not answer is of the kind that its Node has been labelled with.
        family = self.checked.family.get("name") or (
            kube_client.labels(self.node).get(kube_client.LABEL_CHIP) if self.node else None
        )
        firmware = " with firmware %s" % wanted["firmware"] if wanted.get("firmware") else ""
        # The release comes last: by that, a node that was confirmed proves it for its kind.
        return "%s%s %s" % (family, firmware, wanted.get("release"))

    @property
    def wedged(self) -> bool:
        return kube_client.ANNOTATION_WEDGED in self.annotations

    @property
    def same_machine(self) -> bool:
        """Whether the host that answers is the machine that the Node stands for."""
        return self.node is not None and kube_client.boot_id(self.node) == self.facts.get("boot_id")

    @property
    def deferred_before(self) -> bool:
        """Whether a drain that was blocked is how its last maintenance ended."""
        return self.node is not None and maintenance_record.last(self.node).get("outcome") == "deferred"

    @property
    def firmware(self) -> dict[str, Any] | None:
        """{from, to, drivers}, if the firmware of its chips is to change."""
        if self.brings is None or self.running_firmware == self.brings["version"]:
            return None
        return {"from": self.running_firmware, "to": self.brings["version"], "drivers": list(self.brings["drivers"])}

    @property
    def waiting_firmware(self) -> str | None:
        """The firmware that is in the flash of its chips, which run it after the next boot; None if they run it already."""
        return host_answers.waiting_firmware(self.facts)

    @property
    def due(self) -> bool:
        return self.verdict in DUE

    @property
    def deferrable(self) -> bool:
        """Blocked by nothing but what may go away by itself: pods that cannot leave now."""
        return self.verdict == BLOCKED and not self.reasons

    @property
    def why(self) -> list[str]:
        """All that is in the way, as clauses."""
        return self.reasons + ([self.blocker_text] if self.blocker_text else [])

    def result(self) -> dict[str, Any]:
        return {
            "host": self.name,
            "node": self.node_name,
            "verdict": self.verdict,
            "reasons": self.why,
            "deferrable": self.deferrable,
            "blockers": self.blockers,
            "notes": self.notes,
            "order": self.order,
            "canary": self.canary,
            "later": self.later,
            "pool": self.pool if self.target or self.record else None,
            "proved": self.proved,
            "family": self.checked.family.get("name"),
            "family_key": self.checked.family.get("key"),
            "resource": self.checked.family.get("resource"),
            "chips": self.facts.get("chip_count", 0),
            "offers": node_offers.of(self.facts),
            "vnpu_layout": self.vnpus.layout if self.vnpus else None,
            "from": {"version": self.loaded_version, "release": self.loaded_release},
            "to": self.target,
            "upstream": self.checked.upstream,
            "firmware": {key: self.firmware[key] for key in ("from", "to")} if self.firmware else None,
            "other_kernels": self.checked.other_kernels,
            "profile": self.checked.profile,
            "requested": self.requested,
            "wedged": self.wedged,
            "evictions": self.evictions,
            "state": self.labels.get(maintenance_record.LABEL_STATE),
            "step": (self.record or {}).get("step"),
            "run": (self.record or {}).get("run"),
            "estimate_seconds": self.estimate,
        }


def _readable_record(node: Object | None) -> dict[str, Any] | None:
    """One that cannot be read is told with the verdict."""
    try:
        return maintenance_record.decode(node) if node else None
    except NpuError:
        return None
