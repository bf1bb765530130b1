# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_layout
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.at_once import show_lines_at_once
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_call import HostPort
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.interrupted import Notes
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.progress import Progress
from ansible_collections.npuops.ascend.plugins.plugin_utils._awx.job import job_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, node_drain, smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import cycle as maintenance_cycle
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import MakeSmokePod
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.firing_alerts import FiringAlerts
from ansible_collections.npuops.ascend.plugins.plugin_utils._notify import notices, webhook
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_process
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults, valid_settings

# What ``until`` may say beside the steps.
HOOK = "hook"

show_lines_at_once()
# Ansible loads this file before it starts workers.
_NOTES = Notes().tell_at_exit()
_PROGRESS = Progress()
atexit.register(_PROGRESS.close)


class ActionModule(ClusterAction):
    """See the documentation of the module npu_maintenance."""

    ARGUMENTS = {
        "node": {"type": "str", "required": True},
        "run": {"type": "str", "required": True},
        "previous": {"type": "dict"},
        "until": {"type": "str", "choices": [HOOK, *maintenance_cycle.UNTIL], "default": "done"},
        "reason": {
            "type": "str",
            "choices": list(maintenance_record.REASONS),
            "default": maintenance_record.UPGRADE_REASON,
        },
        "target": {
            "type": "dict",
            "options": {
                "version": {"type": "str", "required": True},
                "release": {"type": "str", "required": True},
                "digest": {"type": "str"},
                "firmware": {"type": "str"},
            },
        },
        "resource": {"type": "str"},
        "chips": {"type": "int", "default": 0},
        "offers": {"type": "dict", "default": {}},
        "vnpu_layout": {"type": "raw"},
        "settings": {"type": "dict", "default": {}},
        "heal_settings": {"type": "dict", "default": {}},
        "namespace": NAMESPACE,
        "root": {"type": "path", "default": spec_defaults.default("npu_driver_root")},
        "library_path": {"type": "str", "choices": ["hook", "env", "none"]},
        "network": {"type": "str", "choices": ["strict", "warn", "off"], "default": "off"},
        "failure": {"type": "str"},
        "pool": {"type": "str"},
        "proved": {"type": "bool", "default": False},
        "in_flight": {"type": "list", "elements": "str", "default": []},
        "due": {"type": "int", "default": 1},
        "notify": webhook.ARGUMENT,
    }
    _requires_connection = True

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        ended = maintenance_outcome.handed_on(params["previous"])
        if ended:
            return ended
        if self.check_mode:
            return {"outcome": maintenance_outcome.CHECK_MODE, "msg": "Would run the maintenance of %s" % params["node"]}
        if self._connection.transport == "local":
            raise NpuError(
                "The host of %s is reached through a local connection: the controller would reboot itself. Run the"
                " playbook from another machine." % params["node"]
            )
        settings, until = valid_settings.settings("npu_upgrade", params["settings"]), params["until"]
        if until == HOOK:
            until = maintenance_cycle.before_hook(settings, params["reason"])
        cycle = self._cycle_of(params, settings)
        _PROGRESS.begin()
        try:
            result = cycle.run(until)
        except NpuError as exc:
            self._ended(params, maintenance_outcome.FAILED, exc.message)
            raise NpuError(exc.message, **dict({"outcome": maintenance_outcome.FAILED, "changed": cycle.changed}, **exc.details))
        # Between two calls tasks of the user's run, and the node is in the middle all the same.
        if result["outcome"] != maintenance_outcome.UNDER_WAY:
            self._ended(params, result["outcome"], result["reason"])
        return dict(result, changed=cycle.changed, msg=result["reason"] or result["outcome"])

    def _cycle_of(self, params: dict[str, Any], settings: dict[str, Any]) -> maintenance_cycle.Cycle:
        cluster = kube_client.connect(params)
        self._cluster_address = cluster.address
        clock = cluster.clock
        recovers = params["reason"] == maintenance_record.RECOVERY_REASON
        purpose = maintenance_cycle.Recovery(guards_of(params["heal_settings"])) if recovers else maintenance_cycle.Upgrade()
        if not recovers and not params["target"]:
            raise NpuError("target is missing: an upgrade needs to know the release.")
        pods = drain_policy.DrainPolicy.of(settings["wait_for_jobs"], settings["pod_deletion"], settings["drain"])
        if recovers:
            pods = pods.of_recovery()
        auto = valid_settings.settings("npu_heal", params["heal_settings"])["auto"] if recovers else settings["auto"]
        policy = maintenance_cycle.MaintenancePolicy.of(settings, auto, recovers)
        at_once = min(policy.max_parallel or params["due"], params["due"])
        request = maintenance_cycle.MaintenanceRequest(
            node=params["node"],
            run=params["run"],
            reason=params["reason"],
            target={} if recovers else _target(params["target"]),
            purpose=purpose,
            resource=params["resource"] or "",
            chips=params["chips"],
            offers=_offers(params["offers"]),
            network=params["network"],
            vnpu_layout=_layout(params["vnpu_layout"]),
            namespace=params["namespace"],
            process=run_process.own(),
            job=job_of(self._task_vars, os.environ),
            failure=params["failure"] or None,
            pool=params["pool"] or "",
            proved=params["proved"],
            in_flight=tuple(params["in_flight"]),
            at_once=at_once,
        )
        return maintenance_cycle.Cycle(
            cluster,
            HostPort(self, self._task_vars, params["root"], params["library_path"]),
            lambda cluster, beat, say: node_drain.Drain(
                cluster,
                params["node"],
                pods,
                beat,
                say,
                clock,
                leave_stuck=recovers,
                namespace=params["namespace"],
                at_once=at_once,
            ),
            request,
            policy,
            clock,
            _Lines(
                params["node"],
                params["reason"],
                lambda sentence: self._notify(params, notices.approval(params["run"], params["reason"], params["node"], sentence)),
            ),
            self._smoke_pod(params["node"], settings, clock),
            _alerts(settings),
        )

    def _ended(self, params: dict[str, Any], outcome: str, why: str | None) -> None:
        _NOTES.end(params["node"])
        _PROGRESS.end(params["node"], outcome)
        progress = _PROGRESS.text(params["due"])
        if progress:
            screen.show(progress)
        if outcome == maintenance_outcome.FAILED:
            self._notify(
                params, notices.failure(params["run"], params["reason"], params["node"], outcome, why or "no reason given")
            )

    def _notify(self, params: dict[str, Any], notice: notices.Notice) -> None:
        webhook.notify(params["notify"], notice, self._cluster_address, screen.warn)

    def _smoke_pod(self, node: str, settings: dict[str, Any], clock: Clock) -> MakeSmokePod | None:
        path, timeout = settings["smoke_pod"], settings["smoke_timeout"]
        if not path:
            return None
        pod = smoke_pod.load(path)
        return lambda cluster, beat, say: smoke_pod.SmokePod(cluster, node, pod, timeout, beat, say, clock)


def _alerts(settings: dict[str, Any]) -> Callable[[], str | None] | None:
    alerts = FiringAlerts.of(settings["alerts"])
    return alerts.refusal if alerts else None


def _target(given: dict[str, Any]) -> dict[str, Any]:
    """Without firmware if none is to be written, as in records from before there was any."""
    return {name: value for name, value in given.items() if name != "firmware" or value}


def _offers(given: dict[str, Any]) -> dict[str, int]:
    try:
        return {str(resource): int(count) for resource, count in given.items()}
    except (OverflowError, TypeError, ValueError):
        raise NpuError("offers must have a number for each resource.") from None


def _layout(given: Any) -> list[dict[str, Any]] | None:
    return None if given is None or given == "" else vnpu_layout.parse(given)


# Nothing of the node has been changed yet.
_NOT_BEGUN = ("", None, *maintenance_record.DUE)


class _Lines:
    """One line per step, at once: a result is only shown when its task has ended, which may be half an hour later."""

    def __init__(self, node: str, reason: str, ask: Callable[[str], None]) -> None:
        """``ask(sentence)``: gets the first line of a node that waits for its approval."""
        self._node = node
        self._ask: Callable[[str], None] | None = ask
        self._playbook = "heal" if reason == maintenance_record.RECOVERY_REASON else reason

    def __call__(self, step: str, seconds: float, sentence: str) -> None:
        if step not in _NOT_BEGUN:
            _NOTES.begin(self._node, step, self._playbook)
        if step == maintenance_record.APPROVAL and self._ask:
            self._ask(sentence)
            self._ask = None
        minutes, rest = divmod(int(seconds), 60)
        # A label says which step is due. In a line, beside what has happened, it would read as if something were missing.
        shown = step.removesuffix("-required") or "-"
        screen.show("%s  %02d:%02d  %s  %s" % (self._node, minutes, rest, shown, sentence))
