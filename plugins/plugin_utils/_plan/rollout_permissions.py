# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Kubernetes user must be allowed to do, to make a plan and to carry it out."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.permissions import Permission
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import LEASE


def check_readable(cluster: AnyCluster, namespace: str) -> None:
    """Raise NpuError, all at once, when what a plan reads may not be read."""
    needed: list[Permission] = [
        ("list", "nodes", "", None, None),
        ("list", "pods", "", None, None),
        ("list", "services", "", None, None),
        ("list", "poddisruptionbudgets", "policy", None, None),
        ("get", "leases", "coordination.k8s.io", namespace, LEASE),
    ]
    missing = kube_permissions.missing(cluster, needed)
    if missing:
        raise NpuError("No plan can be made: %s." % "; ".join(kube_permissions.told(missing)))


def to_carry_out(namespace: str) -> list[Permission]:
    """What the Kubernetes user must be allowed to beyond reading."""
    # That something is created cannot be limited to a name.
    group = "coordination.k8s.io"
    leases: list[Permission] = [("create", "leases", group, namespace, None), ("patch", "leases", group, namespace, LEASE)]
    events: list[Permission] = [(verb, "events", "", "default", None) for verb in ("get", "create", "patch")]
    return [("patch", "nodes", "", None, None), ("create", "pods/eviction", "", None, None)] + leases + events
