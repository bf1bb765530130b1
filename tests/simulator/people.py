# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to a fleet while runs work on it: people, power, hardware; and how it calms down."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import same_driver
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import ANNOTATION

from simulator.api_server import LEASE, NOTE, Object, node_path
from simulator.host import FIRMWARE, NEW, Host
from simulator.schedule import Incident

if TYPE_CHECKING:
    from simulator.simulation import Simulation

_KUBECTL = "kubectl"
_HOLDER = {"pid": 4711, "command": "python3", "device": "/dev/davinci0"}


def happen(simulation: Simulation, incident: Incident) -> None:
    if simulation.cleaning:
        return
    simulation.log("%s: %s%s" % (incident.node, incident.kind, " for %g s" % incident.seconds if incident.seconds else ""))
    _HAPPENINGS[incident.kind](simulation, incident.node, incident.seconds)


def _change(simulation: Simulation, node: str, **patch: Any) -> None:
    simulation.api.change(node_path(node), patch, _KUBECTL)


def _metadata(simulation: Simulation, node: str, labels: Any = None, annotations: Any = None) -> None:
    _change(simulation, node, metadata={"labels": labels or {}, "annotations": annotations or {}})


def _cordon(simulation: Simulation, node: str, _seconds: float) -> None:
    found = simulation.api.peek(node_path(node))
    if found is not None and not found["spec"].get("unschedulable"):
        simulation.foreign.add(node)
        _change(simulation, node, spec={"unschedulable": True})


def _uncordon(simulation: Simulation, node: str, _seconds: float) -> None:
    simulation.foreign.discard(node)
    _change(simulation, node, spec={"unschedulable": None})


def _recordon(simulation: Simulation, node: str, seconds: float) -> None:
    """A person takes over a cordon, whichever client made it."""
    found = simulation.api.peek(node_path(node))
    if found is not None and found["spec"].get("unschedulable"):
        _uncordon(simulation, node, seconds)
        _cordon(simulation, node, seconds)


def _keep(simulation: Simulation, node: str, _seconds: float) -> None:
    """A person wants a cordon to stay, whichever client made it."""
    found = simulation.api.peek(node_path(node))
    if found is not None and found["spec"].get("unschedulable"):
        simulation.foreign.add(node)
        _metadata(simulation, node, {maintenance_record.LABEL_KEEP_CORDONED: "true"})


def _approve(simulation: Simulation, node: str, _seconds: float) -> None:
    """With the command that a run prints: for a recovery where the node is wedged."""
    found = simulation.api.peek(node_path(node))
    recovery = approval.recovery_of(found) if found is not None else None
    asked = {approval.ANNOTATION_APPROVAL_FOR: recovery} if recovery else {}
    _metadata(simulation, node, annotations={approval.ANNOTATION_APPROVE: "true", **asked})


def _annotate(simulation: Simulation, node: str, _seconds: float) -> None:
    """A person notes something on the Node that is none of ours."""
    _metadata(simulation, node, annotations={NOTE: "at %g" % simulation.timeline.time})


def _unapprove(simulation: Simulation, node: str, _seconds: float) -> None:
    _metadata(simulation, node, annotations={approval.ANNOTATION_APPROVE: None})


def _label(name: str, value: str | None) -> Any:
    return lambda simulation, node, _seconds: _metadata(simulation, node, {name: value})


def _delete_node(simulation: Simulation, node: str, _seconds: float) -> None:
    """Soon after that, its kubelet restarts and registers it again, or registers it when the host boots."""
    simulation.foreign.discard(node)
    simulation.api.delete(node_path(node), _KUBECTL)
    simulation.timeline.at(30.0, simulation.hosts[node].restart_kubelet)


def _delete_lease(simulation: Simulation, _node: str, _seconds: float) -> None:
    simulation.api.delete(LEASE, _KUBECTL)


def _remove_record(simulation: Simulation, node: str, _seconds: float) -> None:
    found = simulation.api.peek(node_path(node))
    if found is not None and maintenance_record.ANNOTATION_RECORD in found["metadata"]["annotations"]:
        _metadata(simulation, node, annotations={maintenance_record.ANNOTATION_RECORD: None})


def _forge_firmware(simulation: Simulation, node: str, _seconds: float) -> None:
    """A client that may write to the Node makes its record ask for firmware, as if its reboot were certain."""
    found, host = simulation.api.peek(node_path(node)), simulation.hosts[node]
    text = found and found["metadata"]["annotations"].get(maintenance_record.ANNOTATION_RECORD)
    if text:
        record = json.loads(text)
        record.update(step=maintenance_record.REBOOT, boot_id=host.boot_id, to={"version": "25.5.0", "release": NEW})
        record["to"]["firmware"] = FIRMWARE
        _metadata(simulation, node, annotations={maintenance_record.ANNOTATION_RECORD: json.dumps(record)})


def _power(simulation: Simulation, node: str, _seconds: float) -> None:
    host = simulation.hosts[node]
    simulation.invariants.lost_power(host)
    host.go_down()
    simulation.pods.host_went_down(node)


def _replace(simulation: Simulation, node: str, _seconds: float) -> None:
    """Its machine is exchanged for another one; the Node stays."""
    host = simulation.hosts[node]
    simulation.invariants.lost_power(host)
    simulation.invariants.replaced.add(node)
    simulation.pods.host_went_down(node)
    host.replace()


def _crossed(simulation: Simulation, node: str, seconds: float) -> None:
    """For a while its address leads to another host, as when DHCP gave it away."""
    others = [name for name in simulation.hosts if name != node]
    if others:
        simulation.addresses[node] = others[0]
        simulation.timeline.at(seconds, lambda: simulation.addresses.update({node: node}))


def _late_return(simulation: Simulation, node: str, seconds: float) -> None:
    """Its next boot takes very long."""
    simulation.hosts[node].returns_after = seconds


def _freeze(simulation: Simulation, node: str, seconds: float) -> None:
    simulation.hosts[node].frozen_until = simulation.timeline.time + seconds


def _unreachable(simulation: Simulation, node: str, seconds: float) -> None:
    simulation.hosts[node].unreachable_until = simulation.timeline.time + seconds


def _wedge(simulation: Simulation, node: str, _seconds: float) -> None:
    if simulation.hosts[node].up:
        simulation.hosts[node].wedge()


def _unwedge(simulation: Simulation, node: str, _seconds: float) -> None:
    if not simulation.hosts[node].incurable:
        simulation.hosts[node].unwedge()


def _hold(simulation: Simulation, node: str, _seconds: float) -> None:
    """A process that belongs to no pod has a chip open, for a while."""
    host = simulation.hosts[node]
    host.holders = [dict(_HOLDER)]
    simulation.timeline.at(100.0, host.holders.clear)


def _restore(simulation: Simulation, node: str, seconds: float) -> None:
    """The Node is restored from a backup of etcd, taken ``seconds`` ago: when no run is at work, since none would live through it.
    Its kubelet reports as ever."""
    if simulation.cleaning:
        return
    if simulation.active:
        simulation.timeline.at(20.0, lambda: _restore(simulation, node, seconds + 20.0))
        return
    simulation.foreign.discard(node)
    simulation.api.restore(node_path(node), simulation.timeline.time - seconds)
    restored = simulation.api.peek(node_path(node))
    if restored is not None and maintenance_record.cordoned_by(restored) not in (None, maintenance_record.CORDON_MANAGER):
        simulation.foreign.add(node)  # a person's cordon is in the backup
    simulation.log("%s is restored to what it was %g s ago" % (node, seconds))
    simulation.hosts[node].report()


def _kernel(simulation: Simulation, node: str, _seconds: float) -> None:
    simulation.hosts[node].update_os()


def _pause(simulation: Simulation, _node: str, _seconds: float) -> None:
    if _halt(simulation, lambda halted: maintenance_halt.paused(halted, "li.na", "incident 4711", maintenance_record.rfc3339(0))):
        simulation.invariants.paused_since = simulation.timeline.time


def _resume(simulation: Simulation, _node: str, _seconds: float) -> None:
    simulation.invariants.paused_since = None
    _halt(simulation, maintenance_halt.of_failure)


def _halt(simulation: Simulation, change: Callable[[Any], Any]) -> bool:
    """As the module npu_rollout_pause does it, at once; whether there is a Lease."""
    lease = simulation.api.peek(LEASE)
    if lease is None:
        return False
    slots = json.loads(lease["metadata"].get("annotations", {}).get(ANNOTATION) or "{}")
    slots["halted"] = change(slots.get("halted"))
    simulation.api.change(LEASE, {"metadata": {"annotations": {ANNOTATION: json.dumps(slots, sort_keys=True)}}}, _KUBECTL)
    return True


_HAPPENINGS: dict[str, Any] = {
    "restore": _restore,
    "kernel": _kernel,
    "pause": _pause,
    "resume": _resume,
    "cordon": _cordon,
    "uncordon": _uncordon,
    "recordon": _recordon,
    "keep": _keep,
    "approve": _approve,
    "annotate": _annotate,
    "unapprove": _unapprove,
    "skip": _label(maintenance_record.LABEL_SKIP, "true"),
    "unskip": _label(maintenance_record.LABEL_SKIP, None),
    "request": _label(maintenance_record.LABEL_REQUESTED, "true"),
    "delete-node": _delete_node,
    "delete-lease": _delete_lease,
    "remove-record": _remove_record,
    "remove-state": _label(maintenance_record.LABEL_STATE, None),
    "pause-components": _label(kube_client.LABEL_COMPONENTS, "paused"),
    "power": _power,
    "reboot": _power,
    "freeze": _freeze,
    "unreachable": _unreachable,
    "wedge": _wedge,
    "unwedge": _unwedge,
    "hold": _hold,
    "late-return": _late_return,
    "replace": _replace,
    "crossed": _crossed,
    "forge-firmware": _forge_firmware,
}


def calm(simulation: Simulation) -> None:
    """What a person sees to before cleaning up, and what passes by itself."""
    for name, host in simulation.hosts.items():
        simulation.addresses[name] = name
        host.frozen_until = host.unreachable_until = 0.0
        host.flash_fails = False
        host.holders.clear()
        host.power_on()
        host.restart_kubelet()
        if not host.incurable and host.wedged and host.up:
            host.unwedge()
        node = simulation.api.peek(node_path(name))
        if node is None:
            continue
        wanted = _labels_to_repair(simulation, host, node)
        if wanted:
            _metadata(simulation, name, wanted)
    _resume(simulation, "", 0.0)
    simulation.api.away_until = 0.0
    simulation.pods.calm_down()


def _labels_to_repair(simulation: Simulation, host: Host, node: Object) -> dict[str, str | None]:
    """What install writes on a Node that was registered again, and what a person who changed labels by hand corrects."""
    labels = node["metadata"].get("labels", {})
    begun = maintenance_record.ANNOTATION_RECORD in node["metadata"]["annotations"]
    by_hand = host.name in simulation.invariants.tainted
    paused = any(entry.node == host.name and entry.kind == "pause-components" for entry in simulation.schedule.incidents)
    wanted: dict[str, str | None] = {}
    if maintenance_record.LABEL_SKIP in labels:
        wanted[maintenance_record.LABEL_SKIP] = None
    if kube_client.LABEL_PRESENT not in labels:
        wanted[kube_client.LABEL_PRESENT] = ""
    if kube_client.LABEL_COMPONENTS not in labels or ((paused or by_hand) and not begun):
        wanted[kube_client.LABEL_COMPONENTS] = "enabled"
    # Of a trial, install says nothing.
    if host.up and same_driver(host.driver, host.good) and (by_hand or kube_client.LABEL_DRIVER_VERSION not in labels):
        wanted[kube_client.LABEL_DRIVER_VERSION] = host.driver.partition("-")[0]
    return wanted
