# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell clusters with Dynamic Resource Allocation (DRA) which chips do not serve: a DeviceTaintRule without an effect for each."""

from __future__ import annotations

import functools
import logging
import urllib.parse
from typing import Iterable, NamedTuple, Optional, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health

from . import chips_condition, dra_devices, taint_rule
from .background import Background
from .changed import Changed
from .kube import MERGE_PATCH, Api, ApiError
from .physical_ids import PhysicalIds, Place

log = logging.getLogger(__name__)

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"

_MOST = 64  # rules of a node
_NOT_FOUND, _CONFLICT = 404, 409
_REFUSALS = (403, _NOT_FOUND, 422)
_REFRESH = 5 * 60.0  # seconds, as long as a chip does not serve: the driver may publish it later
_RETRY_FIRST, _RETRY_LONGEST = 2.0, 60.0
_LIMIT = 120  # seconds for one round of calls, those of npu-smi among them


class Sick(NamedTuple):
    """A chip that does not serve. ``name``: for people; ``value``: that of its taint."""

    place: Place
    name: str
    value: str


class DeviceTaints:
    """Keeps the rules of this node. Does nothing without ``api`` or ``node``.

    An agent that stops removes none: its successor looks which there are.
    """

    def __init__(
        self,
        api: Optional[Api],
        node: str,
        physical_ids: PhysicalIds,
        changed: Changed,
        refresh: float = _REFRESH,
        retry: float = _RETRY_FIRST,
    ) -> None:
        self._api = api
        self._node = node
        self._physical_ids = physical_ids
        self._changed = changed
        self._refresh = refresh
        self._retry = retry
        self._listed: Sequence[str] = ()
        self._wanted: Optional[tuple[Sick, ...]] = None
        self._done: Optional[tuple[Sick, ...]] = None
        self._background = Background("device taints")

    def want(self, chips: Sequence[dict]) -> None:
        """``chips``: of chip_health.view with their codes, as npu-smi lists them. Without a call, the rules stay."""
        listed = ["%d %s" % (chip["npu"], chip_health.key(chip)) for chip in chips]
        if listed != self._listed:
            self._listed = listed
            self._physical_ids.forget()
        wanted = tuple(
            Sick((chip["npu"], chip["chip"]), chip_health.name(chip), taint_rule.value(chip))
            for chip in chips
            if not chips_condition.serves(chip)
        )
        if wanted != self._wanted:
            self._wanted = wanted
            self._changed.notify()

    async def run(self) -> None:
        """Write until cancelled."""
        api = self._api
        if api is None or not self._node:
            await self._changed.until(lambda: False)
            return
        delay = self._retry
        complaint = ""
        while True:
            await self._changed.until(lambda: self._wanted != self._done, self._refresh if self._done else None)
            wanted = self._wanted
            assert wanted is not None  # or nothing would have changed
            pause = 0.0
            try:
                problem = await self._background.call(functools.partial(self._write, api, wanted), _LIMIT)
                self._done, delay = wanted, self._retry
            except (OSError, ApiError, ValueError, LookupError, TypeError, RuntimeError) as exc:  # also timeouts, missing threads
                # Part of it may have taken effect: what the cluster has is not known.
                self._done = None
                if isinstance(exc, ApiError) and exc.status in _REFUSALS:
                    # The cluster does not have the API, or the agent may not use it. Nothing depends on it, so it is tried rarely.
                    problem, pause = "device taints are not possible here: %s" % exc, self._refresh
                else:
                    problem, pause = "cannot write the device taints, retrying: %s" % (str(exc) or type(exc).__name__), delay
                    delay = min(delay * 2, _RETRY_LONGEST)
            if problem and problem != complaint:
                log.warning("%s", problem)
            complaint = problem
            if pause:
                # Other chips would not help, because the problem is the API server.
                await self._changed.until(lambda: False, pause)

    def _write(self, api: Api, wanted: Iterable[Sick]) -> str:
        """Make the calls of one round; blocking. Returns a phrase about the chips that no device stands for, or ""."""
        selector = "%s=%s" % (taint_rule.LABEL, taint_rule.label(self._node))
        there = {rule["metadata"]["name"]: rule for rule in self._list(api, RULES, labelSelector=selector)}
        rules, unknown, uncertain = self._rules(api, list(wanted))
        for name, found in there.items():
            if not taint_rule.is_of(self._node, found) or name in uncertain:
                continue
            if name not in rules:
                self._remove(api, name)
            elif rules[name]["spec"]["taint"]["value"] != found["spec"]["taint"].get("value"):
                self._change(api, found, rules[name]["spec"]["taint"]["value"])
        new = [rule for name, rule in rules.items() if name not in there]
        if new:
            # When the Node goes, the rule does.
            uid = api.request("GET", "/api/v1/nodes/" + self._node)["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": uid}
            for rule in new:
                self._create(api, rule, owner)
        return "no device of %s on this node is %s" % (dra_devices.DRIVER, ", ".join(unknown)) if unknown else ""

    def _rules(self, api: Api, wanted: Sequence[Sick]) -> tuple[dict[str, dict], list[str], set[str]]:
        """The rules that are to be there, by name; the names of the chips that no device stands for; the names of the rules that
        may be about one of those, because npu-smi has not told which chip their device is."""
        if not wanted:
            return {}, [], set()
        selector = "spec.nodeName=%s,spec.driver=%s" % (self._node, dra_devices.DRIVER)
        devices = dra_devices.devices(self._list(api, SLICES, fieldSelector=selector), self._node)
        physical = self._physical_ids.of([sick.place for sick in wanted], devices)
        rules: list[dict] = []
        unknown = []
        for sick in wanted:
            names = devices[physical[sick.place]] if sick.place in physical else []
            rules += [taint_rule.rule(self._node, device, sick.value) for device in names]
            if not names:
                unknown.append(sick.name)
        uncertain = set()
        if any(sick.place not in physical for sick in wanted):
            unasked = [name for number, names in devices.items() if number not in self._physical_ids.known for name in names]
            uncertain = {taint_rule.rule(self._node, name, "")["metadata"]["name"] for name in unasked}
        return {rule["metadata"]["name"]: rule for rule in rules[:_MOST]}, unknown, uncertain

    def _list(self, api: Api, path: str, **selectors: str) -> list[dict]:
        return api.request("GET", "%s?%s" % (path, urllib.parse.urlencode({**selectors, "limit": 2 * _MOST})))["items"] or []

    def _create(self, api: Api, rule: dict, owner: dict) -> None:
        body = {**rule, "metadata": {**rule["metadata"], "ownerReferences": [owner]}}
        try:
            api.request("POST", RULES, body)
        except ApiError as exc:
            if exc.status != _CONFLICT:
                raise
            return  # there already: only the answer was lost, or a person made it
        log.warning("device taint: %s is %s", rule["spec"]["deviceSelector"]["device"], rule["spec"]["taint"]["value"])

    def _change(self, api: Api, found: dict, value: str) -> None:
        metadata = found["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"taint": {"value": value}}}
        api.request("PATCH", _path(metadata["name"]), body, MERGE_PATCH)

    def _remove(self, api: Api, name: str) -> None:
        try:
            api.request("DELETE", _path(name))
        except ApiError as exc:
            if exc.status != _NOT_FOUND:
                raise
        log.info("device taint: %s is removed", name)


def _path(name: str) -> str:
    return "%s/%s" % (RULES, urllib.parse.quote(name, safe=""))
