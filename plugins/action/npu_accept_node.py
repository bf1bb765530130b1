# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.ascend_dmi import LIMITS, TOOLBOX
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.toolbox_image import LIMIT as PULL_LIMIT
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import BAD, PULLING, UNKNOWN, finding, worst
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import (
    acceptance_document,
    collective,
    collective_nodes,
    left_pods,
    node_use,
    publication,
    smoke_pods,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import DRIVER_OF_HOST, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_call import HostPort
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.interruptible import Interruptible
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import (
    AcceptanceFinding,
    AcceptanceResult,
    FinishedAcceptance,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.waiting_acceptances import CollectiveRequest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import rfc3339
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

# Seconds that one call on the host waits for the diagnosis.
_WAIT = 20
# Calls in a row that a host may leave unanswered while its diagnosis runs, a pause between them, and when to tell that it runs.
_MOST_SILENT = 10
_PAUSE = 10
_TELL = 60
_GRACE = 300  # seconds that a diagnosis may take beyond its own limit


class ActionModule(ClusterAction):
    """See the documentation of the module npu_accept_node."""

    ARGUMENTS = {
        "node": {"type": "str", "required": True},
        "level": {"type": "raw"},
        "ignore": {"type": "list", "elements": "str", "default": []},
        "directory": {"type": "path"},
        "toolbox": {"type": "path", "default": TOOLBOX},
        "toolbox_image": {"type": "str"},
        "credentials_of": {"type": "str"},
        "registry_mirror": {"type": "raw"},
        **registry_options.ARGUMENTS,
        "network": {"type": "str", "choices": ["off", "warn", "strict"], "default": "strict"},
        "collective_pod": {"type": "path"},
        "settings": {"type": "dict", "default": {}},
        **DRIVER_OF_HOST,
    }
    _requires_connection = True

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        node, level = params["node"], valid_settings.of_variable("npu_accept_level", params["level"])
        node_name.check(node)
        params = dict(params, level=level)
        answer = waits = None
        try:
            # Before hours of a diagnosis: a manifest that cannot be read.
            manifest, paired = self._manifest(params), self._collective_pod(params)
            self._remove_left(params, [pod for pod in (manifest, paired) if pod])
            obstacle = self._obstacle(params)
            answer = self._answer(params, obstacle)
            if manifest and obstacle is None:
                answer["result"]["findings"] += self._smoke_pods(params, manifest, answer["result"])
            document = acceptance_document.of_result(node, level, answer["result"], params["ignore"])
            if paired and document["verdict"] not in BAD:
                waits = self._request(params)
        except (NpuError, AnsibleError) as exc:
            document = acceptance_document.without_result(node, level, rfc3339(time.time()), one_line(exc))
        boot_id = answer["boot_id"] if answer else None
        if waits:
            told = publication.publish(document, None, None, boot_id)
        else:
            directory, connect = (None, None) if self.check_mode else (params["directory"], lambda: self._connected(params))
            told = publication.publish(document, directory, connect if answer else None, boot_id)
        return {**told, "boot_id": boot_id, "collective": waits} if waits else told

    def _obstacle(self, params: dict[str, Any]) -> str | None:
        """Why the chips of the node must not be loaded, as a clause; only the cluster knows."""
        if params["level"] == 1:
            return None
        drivers = drain_policy.DrainPolicy.of(pod_deletion=params["settings"].get("pod_deletion")).dra_drivers
        try:
            return node_use.reason(self._connected(params), params["node"], drivers)
        except NpuError as exc:
            return "not run, because it is not known whether pods use the node: %s" % exc.message

    def _manifest(self, params: dict[str, Any]) -> Object | None:
        """The user's own pod, if it is to run. Raises NpuError."""
        path = params["settings"].get("smoke_pod")
        return smoke_pod.load(path) if path and params["level"] >= smoke_pods.LEVEL and not self.check_mode else None

    def _collective_pod(self, params: dict[str, Any]) -> Object | None:
        """The user's own pod for pairs of nodes, if it is to run. Raises NpuError."""
        path, wanted = params["collective_pod"], params["level"] >= collective_nodes.LEVEL and not self.check_mode
        return collective.load(path) if path and wanted else None

    def _remove_left(self, params: dict[str, Any], manifests: Sequence[Object]) -> None:
        with contextlib.suppress(NpuError):  # _obstacle asks the same API server, and tells
            cluster = self._connected(params) if manifests else None
            if cluster:
                timeout = valid_settings.settings("npu_upgrade", params["settings"])["smoke_timeout"]
                left_pods.remove(cluster, params["node"], manifests, timeout, screen.show, cluster.clock)

    def _request(self, params: dict[str, Any]) -> CollectiveRequest:
        """What npu_accept_collective needs to know of this host, besides the document. Raises NpuError."""
        settings = valid_settings.settings("npu_upgrade", params["settings"])
        return {
            "pod": os.path.abspath(params["collective_pod"]),
            "timeout": settings["smoke_timeout"],
            "dra_drivers": sorted(drain_policy.DrainPolicy.of(pod_deletion=settings["pod_deletion"]).dra_drivers),
            "ignored": collective_nodes.NAME in params["ignore"],
            "directory": os.path.abspath(params["directory"]) if params["directory"] else None,
        }

    def _smoke_pods(self, params: dict[str, Any], manifest: Object, result: AcceptanceResult) -> list[AcceptanceFinding]:
        """The finding of these pods; none if the node has not joined the cluster, or if its chips have failed already."""
        counted = [found for found in result["findings"] if found["name"] not in params["ignore"]]
        if not result["chips"] or worst(counted) in BAD:
            return []
        timeout = valid_settings.settings("npu_upgrade", params["settings"])["smoke_timeout"]
        self._remove_left(params, [manifest])  # another run may have waited for the same diagnosis
        try:
            with Interruptible() as clock:
                cluster = kube_retry.RetryingCluster(self._connected(params), screen.warn, clock)
                node = cluster.get("/api/v1/nodes/" + params["node"])
                if node is None:
                    return []
                # The diagnosis may have taken hours.
                obstacle = self._obstacle(params)
                if obstacle:
                    return [finding(smoke_pods.NAME, smoke_pods.LEVEL, UNKNOWN, obstacle)]
                screen.show("%s: runs smoke pods" % params["node"])
                return [smoke_pods.check(cluster, node, result["chips"], manifest, timeout, screen.show, clock)]
        except kube_client.NoCredentials:
            return []
        except NpuError as exc:
            return [finding(smoke_pods.NAME, smoke_pods.LEVEL, UNKNOWN, one_line(exc), "Run accept again when that is mended")]

    @staticmethod
    def _image(params: dict[str, Any]) -> dict[str, Any]:
        """The arguments of npu_accept for an image with ToolBox, if it uses one. Raises NpuError."""
        if not params["toolbox_image"] or params["level"] == 1:
            return {}
        names = ["toolbox_image", "registry_mirror", *registry_options.ARGUMENTS]
        image, meant_for = (mirrored(params[name], params["registry_mirror"]) for name in ("toolbox_image", "credentials_of"))
        # No registry gets the credentials of another one.
        if meant_for and parse_reference(meant_for).registry != parse_reference(image).registry:
            names = names[:2]
        return {name: params[name] for name in names}

    def _answer(self, params: dict[str, Any], obstacle: str | None) -> FinishedAcceptance:
        """What the host finds, when it has ended. Raises NpuError."""
        host = HostPort(self, self._task_vars, params["driver_root"])
        arguments = {
            **self._image(params),
            "level": params["level"],
            "source": params["driver_source"],
            "library_path": params["library_path"],
            "network": params["network"],
            "toolbox": params["toolbox"],
            "ignore": params["ignore"],
            "wait": _WAIT,
        }
        if obstacle:
            arguments["blocked"] = obstacle
        begun = told = time.monotonic()
        # A pull is begun at most twice.
        end = begun + LIMITS.get(params["level"], 0) + _GRACE + (2 * PULL_LIMIT if "toolbox_image" in arguments else 0)
        answered, silent, doing = False, 0, ""
        while True:
            try:
                answer = host.accepted(arguments)
                if answer["result"] is not None:
                    return {"result": answer["result"], "boot_id": answer["boot_id"]}
                answered, silent, doing = True, 0, "ascend-dmi has been running"
                arguments["began"] = answer["began"]
                if answer["state"] == PULLING:
                    doing = "the host has been pulling the ToolBox image"
                    # Pods may come onto the node before ascend-dmi is started.
                    arguments["blocked"] = self._obstacle(params)
            except HostUnreachable:
                silent += 1
                # Only a diagnosis that was started goes on without a connection.
                if not answered or silent > _MOST_SILENT:
                    raise
                time.sleep(_PAUSE)
            now = time.monotonic()
            if now > end:
                raise NpuError("the diagnosis has not ended after %d minutes" % ((now - begun) / 60))
            if now - told >= _TELL:
                told = now
                screen.show("%s: %s for %d minutes" % (params["node"], doing, (now - begun) / 60))
