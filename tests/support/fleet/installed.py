# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules of install answer on hosts where all is in steady state, for support.scripted."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.stack import PARTS

UNCHANGED = {"changed": False, "changes": [], "rollouts": []}
SETTLED = {"changed": False, "devices": ["0"], "runtime_mode": "cdi", "installed_runtime": None, "would_change": False,
           "control_plane": False, "settled": True}  # fmt: skip
READY = {"status": "ready", "family": "Ascend 910B", "family_key": "910b", "chips": 8, "resource": "huawei.com/Ascend910",
         "accelerator": "huawei-Ascend910", "driver_path": "/var/lib/Ascend/driver", "distribution": "containerd",
         "upstream": "r/i:t", "digest": "sha256:1", "keep_release": "kept", "other_kernels": [], "vnpu_layout": None, "vnpu_pause": False,
         "gate": 0,
         "driver_version": "25.5.0", "expected_version": "25.5.0", "components": "enabled", "offers": {}, "boot_id": "b",
         "host_arch": "huawei-arm", "driver_source": "image", "reasons": [], "notes": []}  # fmt: skip
ANSWERS = {
    "npu_facts": {"*": [{"npu": {}}]},
    "npu_driver_stage": {"*": [{"changed": True, "release": "staged"}]},
    "npu_driver": {"*": [{"changed": False, "ready": {"release": "kept"}}]},
    "npu_vnpu": {"*": [{"changed": True, "vnpus": []}]},
    "npu_cdi_spec": {"*": [SETTLED]},
    "containerd_cdi": {"*": [{"changed": True}]},
    "npu_validate": {"*": [{"changed": False, "valid": True, "checks": []}]},
    "npu_node": {"*": [{"changed": False}]},
    "npu_wait": {"*": [{"changed": False, "nodes": {}}]},
    "npu_objects": {"*": [UNCHANGED]},
}
# The roles of the components need their images.
IMAGES = ("npu_node_agent_image", "npu_device_plugin_image", "npu_exporter_image")
VERSIONS = [item for name in IMAGES for item in ("-e", name + "=r/i:v26.1.0")]


def preflight(ready, **blocked):
    """The result of npu_preflight; ``blocked``: what is wrong with hosts that are left out, by name."""
    stopped = {name: dict(READY, node_name=name, status="blocked", reasons=[why]) for name, why in blocked.items()}
    return {
        "hosts": {name: dict(READY, node_name=name) for name in ready} | stopped,
        "ready": list(ready), "blocked": list(blocked), "problems": ["%s: %s" % item for item in blocked.items()],
        "no_chip": [], "pause": [], "plan": [], "service_monitors": False, "admission_policies": True, "kubelet_pods": True,
        "stack": {part: {"act": False, "crds": [], "leftovers": []} for part in PARTS},
        "look": {"driver": {name: {"chip": "910b", "release": "kept"} for name in ready},
                 "validation": {name: {"version": "25.5.0"} for name in ready}},
        "components": {"namespace": "npu-operator", "device_plugin": True, "exporter": True, "node_agent": True, "noded": False},
    }  # fmt: skip
