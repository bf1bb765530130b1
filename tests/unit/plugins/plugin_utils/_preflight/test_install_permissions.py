# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import install_permissions


def test_permissions():
    plain = install_permissions.to_install("ours", True, False)
    assert ("create", "daemonsets", "apps", "ours", None) in plain
    assert not [entry for entry in plain if entry[1] in ("roles", "networkpolicies")]
    policy = ("patch", "validatingadmissionpolicies", "admissionregistration.k8s.io", None, "npuops-device-plugin-nodes")
    assert policy not in plain and policy in install_permissions.to_install("ours", True, False, False, True)
    agent = install_permissions.to_install("ours", False, False, True, True)
    assert ("create", "networkpolicies", "networking.k8s.io", "ours", None) in agent
    assert ("create", "roles", "rbac.authorization.k8s.io", "default", None) in agent
    assert ("create", "clusterroles", "rbac.authorization.k8s.io", None, None) in agent
    assert ("patch", "clusterroles", "rbac.authorization.k8s.io", None, "npuops-node-agent") in agent
    policies = "validatingadmissionpolicybindings", "admissionregistration.k8s.io"
    assert ("patch", *policies, None, "npuops-node-agent-events") in agent
    # The API does not have them: no permission to make them is needed.
    assert not [e for e in install_permissions.to_install("ours", True, True, True, False) if "validating" in e[1]]


def test_who_may_not_create_namespaces_needs_one_that_is_there():
    create = ("create", "namespaces", "", None, None)
    assert create not in install_permissions.to_install("ours", True, True)
    assert create in install_permissions.to_install("ours", True, True, namespace_exists=False)
    assert ("patch", "namespaces", "", None, "ours") in install_permissions.to_install("ours", True, True)
