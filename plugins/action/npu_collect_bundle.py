# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import platform
import time
from typing import Any

from ansible import __version__ as ansible_version
from ansible.errors import AnsibleError
from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import DRIVER_OF_HOST, NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_call import HostPort
from ansible_collections.npuops.ascend.plugins.plugin_utils._collect import cluster_part, host_content, node_bundle, versions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import rfc3339

# Of the limit, what the cluster's part may use: a long list of pods leaves the host's part its room.
_CLUSTER_SHARE = 4
# Seconds that the host's part may take beyond its limit: a command that was begun ends, and the answer is sent.
_GRACE = 60


class ActionModule(ClusterAction):
    """See the documentation of the module npu_collect_bundle."""

    ARGUMENTS = {
        "node": {"type": "str", "required": True},
        "directory": {"type": "path", "required": True},
        "size": {"type": "int", "default": 20},
        "timeout": {"type": "int", "default": 300},
        "namespace": NAMESPACE,
        **DRIVER_OF_HOST,
    }
    _requires_connection = True

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        node = params["node"]
        node_name.check(node)
        for name, lowest in (("size", 1), ("timeout", 1)):
            if params[name] < lowest:
                raise NpuError("npu_collect_%s is %d, but must be at least %d" % (name, params[name], lowest))
        if self.check_mode:
            line = "%s: would write a bundle of at most %d MiB to %s, from the host and the cluster" % (
                node, params["size"], params["directory"],
            )  # fmt: skip
            return {"path": None, "missing": [], "line": line, "msg": line}
        created = time.time()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created))
        limit = params["size"] * 2**20
        cluster = self._of_cluster(params, limit // _CLUSTER_SHARE)
        part = self._of_host(params, limit, cluster)
        for file in cluster.files:
            part.files.append(file)
        part.left_out[:0] = cluster.left_out
        part.more_left_out += cluster.more_left_out
        lacks = node_bundle.missing(part)
        if not part.files:
            raise NpuError("%s: nothing could be collected. %s" % (node, "; ".join(lacks)))
        index = node_bundle.manifest(
            part,
            {
                "node": node,
                "host": str(self._task_vars.get("inventory_hostname", "")),
                "created": rfc3339(created),
                "limits": {"bytes": limit, "seconds": params["timeout"]},
                "versions": {
                    "ansible-core": ansible_version,
                    "python": platform.python_version(),
                    "npuops.ascend": versions.of_collection(),
                },
            },
        )
        name = node_bundle.file_name(node, stamp)
        data = node_bundle.archive(part, index, name[: -len(".tar.gz")], int(created))
        path = node_bundle.write(params["directory"], name, data)
        line = node_bundle.line(node, path, len(data), lacks, part.more_left_out)
        return {"path": path, "size": len(data), "missing": lacks, "line": line, "msg": line}

    def _of_cluster(self, params: dict[str, Any], limit: int) -> Gathered:
        part = Gathered(limit, params["timeout"])
        try:
            cluster_part.gather(part, kube_client.connect(params), params["node"], params["namespace"])
        except NpuError as exc:
            part.leave_out("the cluster's part", exc.message)
        return part

    def _of_host(self, params: dict[str, Any], limit: int, cluster: Gathered) -> Gathered:
        """With the room that the cluster's part has left."""
        room = limit - cluster.used
        part = Gathered(room, params["timeout"])
        arguments = {
            "source": params["driver_source"],
            "library_path": params["library_path"],
            "limit": room,
            "total_timeout": params["timeout"],
        }
        try:
            answer = HostPort(self, self._task_vars, params["driver_root"]).collected(arguments, params["timeout"] + _GRACE)
            host_content.add(part, answer, room)
        except NpuError as exc:
            part.leave_out("the host's part", exc.message)
        except AnsibleError as exc:
            part.leave_out("the host's part", str(exc))
        return part
