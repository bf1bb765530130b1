# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volcano's Jobs, which are aborted and resumed by Commands, as ``vcctl job suspend`` and ``vcctl job resume`` do it.

A Command is an object that Volcano's controller deletes and then executes, in the order in which they come. What is still there
has no effect yet. A resume that comes to a Job that was never aborted does nothing. From pkg/controllers/job of Volcano 1.9 and
1.16, MindCluster's is 1.7 or 1.9.
"""

from __future__ import annotations

import hashlib
import json
import shlex

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.workload_kinds import Workload

_GROUP, _VERSION = "bus.volcano.sh", "v1alpha1"
_COMMANDS = "/apis/%s/%s/namespaces/%%s/commands" % (_GROUP, _VERSION)
_ABORT, RESUME = "AbortJob", "ResumeJob"
# How often, and how long in between, to look whether a Command was executed, before others have their turn.
_LOOKS, _PAUSE_SECONDS = 6, 0.5


class NoCommands(kube_client.Refused):
    """The cluster does not have the kind Command."""


# What one has to be allowed to do.
PERMISSIONS = tuple((verb, "commands", _GROUP, None, None) for verb in ("get", "create", "delete"))


def abort(cluster: RetryingCluster, workload: Workload) -> None:
    """Tell the controller to end all pods of the Job. Twice is as good as once."""
    _send(cluster, workload, _ABORT)


def tell_to_resume(cluster: RetryingCluster, workload: Workload) -> None:
    """Tell the controller to start the pods of the Job again. It counts each time as a restart."""
    # The order of two that wait is not certain.
    _withdraw(cluster, workload, _ABORT)
    try:
        _send(cluster, workload, RESUME)
    except NoCommands:
        if workload.stopped:
            raise  # otherwise nothing was ever aborted


def resumed(cluster: RetryingCluster, workload: Workload) -> Workload | None:
    """The Job as it is when the controller has resumed it; None when it was deleted. Raises Failing when that takes long."""
    for look in range(_LOOKS):
        if look:
            cluster.clock.sleep(_PAUSE_SECONDS)
        waits = cluster.get(_path(workload, RESUME)) is not None
        item = cluster.get(workload.path)
        if item is None:
            return None
        now = Workload(workload.kind, item)
        if now.over or not (waits or now.stopped):
            return now
    raise kube_client.Failing(
        "Volcano's controller has not resumed it: %s"
        % ("it does not take Commands; see whether it runs" if waits else "its phase is still %s" % now.phase)
    )


def by_hand(workload: Workload, mark: str) -> str:
    """The commands with which a person resumes a Job and takes the label and annotation ``mark`` off it."""
    create = "echo %s | kubectl create -f -" % shlex.quote(json.dumps(_command(workload, RESUME), separators=(",", ":")))
    where, what = ["kubectl", "-n", workload.namespace or ""], [workload.kind.resource, workload.name, mark + "-"]
    return " && ".join([create, *(shlex.join([*where, verb, *what]) for verb in ("label", "annotate"))])


def _command(workload: Workload, action: str) -> Object:
    metadata = workload.item["metadata"]
    job = {
        "apiVersion": "%s/%s" % (workload.kind.group, workload.kind.version),
        "kind": workload.kind.name,
        "name": workload.name,
        "uid": metadata["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "%s/%s" % (_GROUP, _VERSION),
        "kind": "Command",
        "metadata": {"name": _name(workload, action), "namespace": workload.namespace, "ownerReferences": [job]},
        "action": action,
        "target": job,
        "reason": "Parked" if action == _ABORT else "Restored",
        "message": "npuops.ascend %s it for the time of an upgrade" % ("parks" if action == _ABORT else "has parked"),
    }


def _name(workload: Workload, action: str) -> str:
    """One for each Job and action: who sends it again finds the first."""
    uid = hashlib.sha256(workload.item["metadata"]["uid"].encode()).hexdigest()[:16]
    return "npuops-%s-%s" % (action.lower(), uid)


def _path(workload: Workload, action: str) -> str:
    return "%s/%s" % (_COMMANDS % workload.namespace, _name(workload, action))


def _send(cluster: RetryingCluster, workload: Workload, action: str) -> None:
    body = _command(workload, action)
    try:
        cluster.request("post", _COMMANDS % workload.namespace, body=body, field_manager=kube_client.FIELD_MANAGER)
    except kube_client.Conflict:
        pass  # an earlier one still waits
    except kube_client.NotFound as exc:
        raise NoCommands(
            "the cluster does not have the kind Command of %s/%s, with which Volcano's controller is asked to do that, or the"
            " namespace was deleted (%s). Install all of Volcano's CustomResourceDefinitions" % (_GROUP, _VERSION, exc.message)
        ) from None


def _withdraw(cluster: RetryingCluster, workload: Workload, action: str) -> None:
    try:
        cluster.request("delete", _path(workload, action))
    except kube_client.NotFound:
        pass
