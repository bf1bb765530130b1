# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts as preflight sees them, and its verdicts: ``judge()``."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import checks as preflight_checks

from support.kube.stub import node

DIGEST = "sha256:" + "ab" * 32
REPOSITORY = "registry.example/mlops/ascend-driver"
FAMILY = {"d802": 8, "d500": 4, "d806": 8, "d100": 4, "d105": 1}


def facts(device="d802", boot_id="boot-a", **changes):
    result = {
        "boot_id": boot_id,
        "kernel": "6.6.0-145.0.4.135.oe2403sp3.aarch64",
        "kernel_key": "6.6.0-145.0.4.135",
        "os_key": "oe2403sp3",
        "machine": "aarch64",
        "chip_count": FAMILY[device],
        "family": FAMILIES[device]._asdict(),
        "driver": {"loaded": False, "tree": None},
        "problems": [],
    }
    return dict(result, **changes)


def host(name="a", fact=None, variables=(), **config):
    config.setdefault("driver_repository", REPOSITORY)
    fact = facts(boot_id="boot-" + name) if fact is None else fact
    return {"name": name, "facts": fact, "error": None, "unreachable": False, "config": config, "variables": variables}


def cluster_nodes(*names, **kwargs):
    return {name: node(name, boot_id="boot-" + name, **kwargs) for name in names}


def judge(hosts, nodes=None, resolve=lambda reference, config, machine: DIGEST, **kwargs):
    nodes = cluster_nodes(*[entry["name"] for entry in hosts]) if nodes is None else nodes
    return preflight_checks.judge(hosts, nodes, resolve, **dict({"version_line": "26.1"}, **kwargs))


def only(hosts, **kwargs):
    """The verdict on a single host."""
    (verdict,) = judge([hosts], **kwargs)
    return verdict


def plugin_daemonset(path, namespace="npu-operator", sockets="/var/lib/kubelet/device-plugins"):
    volumes = [
        {"name": "hiai-driver", "hostPath": {"path": path}},
        {"name": "device-plugin", "hostPath": {"path": sockets}},
    ]
    spec = {"nodeSelector": {"accelerator": "huawei-Ascend910"}, "volumes": volumes}
    return {
        "metadata": {"name": "ascend-device-plugin-daemonset", "namespace": namespace},
        "spec": {"template": {"spec": spec}},
    }
