# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual NPUs that npu_vnpu asks for, compared with those of a host."""

from __future__ import annotations

import collections
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_layout, vnpu_plan
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Facts, Vnpus
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster

# {chip: {template: count}}
_Counts = dict[int, dict[str, int]]


class Wanted:
    """What ``npu_vnpu`` makes of a host. ``layout``: as vnpu_layout.parse makes it; ``checked``: whether the host itself has judged
    it, by what npu-smi says; ``problem``: why the host says that it cannot be, or None; ``changed``: whether anything has to
    change; ``way``: from what to what, for people.
    """

    def __init__(self, given: Any, facts: Facts) -> None:
        """``given``: the value of npu_vnpu; None for what an earlier run was to bring about. Raises NpuError if the host cannot
        have that."""
        recorded = recorded_vnpus(facts)
        asked = recorded + _vnpus(facts.get("vnpus_missing"))
        self.layout: list[dict[str, Any]] = vnpu_layout.of_vnpus(asked) if given is None else vnpu_layout.parse(given)
        self._facts = facts
        self._wanted: _Counts = vnpu_plan.expand(self.layout, (facts.get("family") or {}).get("name", ""), self._chips())
        plan = facts.get("vnpu_plan") if given is not None else None
        before: _Counts = vnpu_layout.counts(recorded)
        self.checked = plan is not None
        self.problem = plan["problem"] if plan else None
        self.changed = plan["changed"] if plan else self._wanted != before
        self.way = "%s instead of %s" % (_told(self._wanted), _told(before))

    @property
    def divided(self) -> bool:
        """Whether any chip is to be divided."""
        return bool(self._wanted)

    def offers(self) -> dict[str, int]:
        """{resource: count} that the node is to offer, the resource of whole chips first."""
        vnpus = [
            Vnpu(chip, 0, template)
            for chip, templates in self._wanted.items()
            for template, count in templates.items()
            for _each in range(count)
        ]
        return chips_vnpu.offered((self._facts.get("family") or {})["resource"], self._facts.get("chip_count") or 0, vnpus)

    def _chips(self) -> list[int]:
        """While the driver is not loaded, the numbers of the chips are not known, only how many there are."""
        known = self._facts.get("chip_numbers")
        if known:
            return known
        named = {chip for entry in self.layout for chip in entry["chips"] or ()}
        return sorted(named | set(range(self._facts.get("chip_count") or 0)))


def recorded_vnpus(facts: Facts) -> list[Vnpu]:
    """Those that the host is to have."""
    return _vnpus(facts.get("vnpus"))


def _vnpus(entries: Vnpus | None) -> list[Vnpu]:
    return [Vnpu(entry["chip"], entry["id"], entry["template"]) for entry in entries or ()]


def difference(given: Any, facts: Facts) -> str | None:
    """How the virtual NPUs of a host differ from npu_vnpu, as a clause; None if they do not, or the host has no chips."""
    if given is None or not facts.get("family") or host_answers.why_not(facts):
        return None
    try:
        wanted = Wanted(given, facts)
    except NpuError as exc:
        return "npu_vnpu: %s" % exc.message
    return "npu_vnpu asks for %s: see npuops.ascend.install" % wanted.way if wanted.changed else None


def excluded(wanted: Wanted | None, facts: Facts, share_count: int, hot_reset: str) -> list[str]:
    """What the device plugin cannot do on a host with virtual NPUs, as sentences. ``wanted``: what the host gets, None for what it
    has; ``share_count``, ``hot_reset``: of the device plugin."""
    family = facts.get("family") or {}
    if not (wanted.divided if wanted else facts.get("vnpus")):
        return []
    reasons = []
    if share_count > 1 and family.get("name") in mindcluster.shared_chips(family.get("accelerator") or ""):
        reasons.append(
            "its chips are divided into virtual NPUs, and npu_device_plugin_share_count is %d: the device plugin would not start."
            " Set it to 1, or npu_vnpu to []" % share_count
        )
    if hot_reset != "disabled":
        reasons.append(
            "its chips are divided into virtual NPUs, and npu_device_plugin_hot_reset is %s: the driver does not reset such"
            " chips. Set it to disabled, or npu_vnpu to []" % hot_reset
        )
    return reasons


def _told(counts: _Counts) -> str:
    templates: collections.Counter[str] = collections.Counter()
    for chip in counts.values():
        templates.update(chip)
    if not templates:
        return "whole chips"
    names = ", ".join("%d %s" % (count, name) for name, count in sorted(templates.items()))
    return "%s on chip %s" % (names, ", ".join(str(chip) for chip in sorted(counts)))
