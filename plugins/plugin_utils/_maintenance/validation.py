# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host that came back and its node are in order: on the new driver, or after going back to the old one."""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health, port_losses
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Verdict, View
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.smoke_pod import SmokeFailed
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import Invalid, Work
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable, held_text, on_trial
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

_ALLOCATABLE_LIMIT = 300  # seconds
_PORTS_LIMIT = 120  # seconds until the links of the ports are up after a boot
_PORTS_POLL = 5.0  # each look is a call of hccn_tool for each port
_MOST_HOLDERS = 5
# What programs say of a chip that the driver has given to another container: DCMI's code, and that of the runtime of CANN.
_BUSY = re.compile(r"-8020\b|device is used|\b(?:error|drvRet=|ret=)\s*87\b")


class Check:
    def __init__(self, work: Work) -> None:
        """``work``: Work."""
        self._work = work
        self._vnpus: list[Vnpu] | None = None  # those that the host is to have, as it says itself
        self._trial = False

    def in_order(
        self,
        version: str | None,
        release: str | None,
        firmware: str | None = None,
        trial: bool = False,
    ) -> None:
        """Raise Invalid unless host and node are as they should be. The components run again afterwards.

        ``release``: the one the host must have, ``firmware``: the version that its chips must run, None for any. ``trial``: whether
        it is a new driver, which is to blame for chips that are worse than the record has them. Otherwise nothing can be done
        about them here, and the node serves with its other chips.
        """
        work, self._trial = self._work, trial
        # Their pods start meanwhile: an init container of theirs waits for the driver, and the kubelet takes its time to tell what
        # they offer.
        labels = work.components_back()
        if labels:
            work.log.step(work.log.own["step"], labels=labels)
        view, why = work.host.wait_driver()
        self._same_driver(view, release)
        if why:
            raise Invalid(why)
        work.say("validates the host")
        result = work.host.validate(version)
        if not result["valid"]:
            raise Invalid("the host is not healthy: %s" % result["msg"])
        chips = result.get("chip_health") or []
        before = work.log.own.get("chips")
        worse = chip_health.worse(before, chips) if trial else []
        if worse:
            raise Invalid("its chips are worse than before: %s" % ", ".join(worse))
        if chip_health.told(chips):
            work.say("goes on with chips that are not OK: %s" % chip_health.told(chips))
        unknown = chip_health.told(chip_health.unknown(before, chips)) if trial else ""
        if unknown:
            work.say("it is not known how they were before the reboot: %s" % unknown)
        self._note_firmware(result.get("firmware_version"))
        if firmware and result.get("firmware_version") != firmware:
            flash = view.get("firmware") or {}
            written = (flash.get("version"), flash.get("state")) == (firmware, "written")
            written = written and same_driver(flash.get("release"), release)
            raise Invalid(
                "its chips run the firmware %s, not %s, which was %swritten before the reboot"
                % (result.get("firmware_version") or "unknown", firmware, "" if written else "not "),
                not_written=not written and not on_trial(view),
            )
        self._wait_ports()
        told = result.get("vnpus")
        self._vnpus = None if told is None else [Vnpu(one["chip"], one["id"], one["template"]) for one in told]
        self._wait_allocatable(result)

    def _wait_ports(self) -> None:
        """Wait until the network ports have what they had before the reboot. Raises Invalid if they do not get it and the user is
        strict about them, also on the way back: a node whose jobs cannot reach others is of no use then."""
        work, before = self._work, self._work.log.own.get("ports")
        if not before or work.request.network == "off":
            return
        deadline, told = work.clock.monotonic() + _PORTS_LIMIT, False
        while worse := port_losses.worse(before, work.host.view(ports=True).get("ports") or {}):
            if work.clock.monotonic() >= deadline:
                text = "its network ports are worse than before the reboot: %s; see docs/network.md" % and_more(worse)
                if work.request.network == "strict":
                    raise Invalid(text)
                work.say("goes on although %s" % text)
                return
            if not told:
                work.say("waits for its network ports: %s" % and_more(worse))
                told = True
            work.beat()
            work.clock.sleep(_PORTS_POLL)

    def _note_firmware(self, version: str | None) -> None:
        """It does not go back with the driver, so the node says what its chips run even if the maintenance fails."""
        log, wanted = self._work.log, kube_client.label_value(version)
        if kube_client.labels(log.node).get(kube_client.LABEL_FIRMWARE_VERSION) != wanted:
            log.step(log.own["step"], labels={kube_client.LABEL_FIRMWARE_VERSION: wanted})

    def run_smoke_pod(self) -> None:
        """The user's own pod on this node. Raises Invalid."""
        if self._work.smoke is None:
            return
        self._work.say("runs the smoke pod")
        try:
            self._work.smoke.run()
        except SmokeFailed as exc:
            raise Invalid(exc.message + self._holders_of(exc.message))

    def _holders_of(self, message: str) -> str:
        """Who has the chips that the pod did not get, as the end of its message; "" if that is not why it failed, or not known."""
        if not _BUSY.search(message):
            return ""
        try:
            reserved = self._work.host.validate(None).get("reserved") or []
            holders = self._work.host.view()["holders"]
        except HostUnreachable:
            raise
        except NpuError:
            return ""
        told = [printable(text).rstrip(".") for text in reserved[:_MOST_HOLDERS]]
        told += [held_text(holders[:_MOST_HOLDERS])] if holders else []
        return "; " + "; ".join(told) if told else ""

    def confirm(self, release: str, boot_id: str) -> bool:
        """Take the release as good in the boot in which it was validated: the last thing to be done on the host.

        False when the host was rebooted since, to the same driver. Raises Invalid.
        """
        try:
            self._work.host.confirmed(self._work.log.own["generation"], release, boot_id)
            return True
        except HostUnreachable:
            raise
        except NpuError as exc:
            view = self._work.host.view()
            self._same_driver(view, release)
            if view["boot_id"] != boot_id:
                return False
            raise Invalid("the release could not be confirmed: %s" % exc.message)

    @staticmethod
    def _same_driver(view: View, release: str | None) -> None:
        if release is not None and view["driver"] != release:
            raise Invalid("the host was rebooted again and is on %s" % view["driver"], trial_over=True)

    def _wait_allocatable(self, result: Verdict) -> None:
        work = self._work
        if not work.request.resource or work.components() != "enabled":
            return
        try:
            self._until_allocatable(result)
        finally:
            work.log.waited()

    def _until_allocatable(self, result: Verdict) -> None:
        work = self._work
        started, at_once, told = work.clock.monotonic(), work.request.at_once, False
        while True:
            # Before the look: its answer may have what the wait would be for.
            work.beat()
            node, (least, wanted) = work.log.look(), self._wanted(result)
            offered = {resource: kube_client.allocatable(node, resource) for resource in wanted}
            if all(least[resource] <= offered[resource] <= count for resource, count in wanted.items()):
                return
            waited = work.clock.monotonic() - started
            if waited >= _ALLOCATABLE_LIMIT:
                short = [
                    "%d of %d %s" % (offered[resource], count, resource)
                    for resource, count in wanted.items()
                    if not least[resource] <= offered[resource] <= count
                ]
                raise Invalid(
                    "the node offers %s after %d s; see the device plugin's pod there" % (" and ".join(short), _ALLOCATABLE_LIMIT)
                )
            if not told:
                work.say("waits until the node offers %s" % " and ".join("%d %s" % (count, name) for name, count in wanted.items()))
                told = True
            most = min(maintenance_record.BEAT_SECONDS, _ALLOCATABLE_LIMIT - waited)
            work.log.wait(kube_retry.pause_after(waited, at_once=at_once), kube_retry.gather_seconds(at_once), most)

    def _wanted(self, result: Verdict) -> tuple[dict[str, int], dict[str, int]]:
        """(the fewest, the most) devices that the node may offer, as {resource: count}. Only whole chips are shared."""
        request = self._work.request
        wanted = dict(request.offers) or {request.resource: request.chips}
        # They may have changed since the plan.
        if self._vnpus is not None:
            wanted = chips_vnpu.offered(request.resource, self._chips(result), self._vnpus)
        elif request.resource in wanted:
            wanted[request.resource] = max(0, wanted[request.resource] + self._chips(result) - request.chips)
        least = chip_health.fewest(wanted, result.get("chip_health") or [])
        if request.resource in wanted:
            each = self._devices_per_chip()
            wanted[request.resource] *= each
            least[request.resource] *= each
        return least, wanted

    def _chips(self, result: Verdict) -> int:
        """How many chips the host is to offer. If one is gone, a driver on trial was refused before; otherwise the others serve.
        One that was lost may have come back with the reboot."""
        there, planned = result.get("chips"), self._work.request.chips
        compared = self._work.log.own.get("chips") is not None or not self._trial
        return there if there and (compared or there > planned) else planned

    def _devices_per_chip(self) -> int:
        work = self._work
        pods = work.cluster.list("/api/v1/pods", field_selector="spec.nodeName=" + work.request.node)
        plugins = component_names.DEVICE_PLUGINS.values()
        return shared_chips.devices_per_chip(
            pod for pod in pods if component_names.daemonset_of(pod["metadata"], work.request.namespace) in plugins
        )
