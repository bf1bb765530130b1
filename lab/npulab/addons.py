# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an administrator of a real cluster would have put there: images in the registry, pull secrets."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from . import simulation
from .registry import credentials, push_archive
from .settings import CHECKOUT, NAMESPACE, PULL_SECRET, Lab
from .tasks import Step

MINDCLUSTER_VERSION = "v7.3.0"
DRIVER_REPOSITORY = "mlops/ascend-driver"
DRIVER_VERSION = "25.5.0"
# Archive of the simulation: where it goes in the registry
IMAGES = {
    "device-plugin": ("mindcluster/ascend-k8sdeviceplugin", MINDCLUSTER_VERSION),
    "exporter": ("mindcluster/npu-exporter", MINDCLUSTER_VERSION),
    "pause": ("lab/pause", "lab"),
    "test": ("lab/test", "lab"),
}


def image_reference(lab: Lab, name: str) -> str:
    repository, tag = IMAGES[name]
    return f"{lab.registry}/{repository}:{tag}"


def push_images(lab: Lab, step: Step) -> None:
    for name, (repository, tag) in IMAGES.items():
        archive = simulation.image_archive(lab, name)
        if archive.exists():
            step.say(f"pushing {repository}:{tag}")
            push_archive(credentials(lab), archive, repository, tag)


def make_pull_secrets(lab: Lab, step: Step) -> None:
    """The registry's credentials as an imagePullSecret where pods will want them."""
    login = credentials(lab)
    basic = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    config = json.dumps({"auths": {login.address: {"auth": basic}}})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    pull_secrets = [{
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": PULL_SECRET, "namespace": where},
        "data": {".dockerconfigjson": base64.b64encode(config.encode()).decode()},
    } for where in (NAMESPACE, "default")]
    manifest = {"apiVersion": "v1", "kind": "List", "items": [namespace, *pull_secrets]}
    step.run(lab.kubectl, "--kubeconfig", lab.kubeconfig, "apply", "--server-side", "--field-manager=lab", "-f", "-",
             input=json.dumps(manifest))


def build_driver_images(lab: Lab, step: Step) -> None:
    """Build driver images from the simulated driver packages with the collection's own builder and push them."""
    playbook = CHECKOUT / "playbooks" / "build_driver_image.yml"
    ansible = CHECKOUT / ".venv" / "bin" / "ansible-playbook"
    if not playbook.exists() or not Path(ansible).exists() or not os.environ.get("NPU_LAB_DRIVER_IMAGES"):
        step.say("skipped")
        return
