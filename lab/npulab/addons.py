# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an administrator of a real cluster would have put there: images in the registry, pull secrets, the controller's account."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from . import simulation
from .collection import library, run_playbook
from .files import write
from .registry import credentials, push_archive
from .settings import CHECKOUT, CONTROLLER, LAB_SOURCE, NAMESPACE, PULL_SECRET, Lab, LabError
from .tasks import Step

# The releases of lab/sim, one of each version line.
MINDCLUSTER_VERSIONS = ("v7.3.2", "v26.1.0")
MINDCLUSTER_REPOSITORIES = {"device-plugin": "mindcluster/ascend-k8sdeviceplugin", "exporter": "mindcluster/npu-exporter"}
# Those that are off by default, by the variable that begins with npu_.
OPTIONAL_REPOSITORIES = {
    "volcano_scheduler": "mindcluster/vc-scheduler",
    "volcano_controllers": "mindcluster/vc-controller-manager",
    "clusterd": "mindcluster/clusterd",
    "noded": "mindcluster/noded",
    "ascend_operator": "mindcluster/ascend-operator",
}
# Where pods want them: ours, those of clusterd and of Volcano, and that of tests.
PULLING_NAMESPACES = (NAMESPACE, "mindx-dl", "volcano-system", "default")
DRIVER_REPOSITORY = "mlops/ascend-driver"
DRIVER_VERSION = "25.5.0"
# Archive of the simulation: where it goes in the registry
IMAGES = {
    **{
        f"{name}-{version}": (repository, version)
        for name, repository in MINDCLUSTER_REPOSITORIES.items()
        for version in MINDCLUSTER_VERSIONS
    },
    **{
        f"{repository.rpartition('/')[2]}-{version}": (repository, version)
        for repository in OPTIONAL_REPOSITORIES.values()
        for version in MINDCLUSTER_VERSIONS
    },
    "pause": ("lab/pause", "lab"),
    "test": ("lab/test", "lab"),
}


def push_images(lab: Lab, step: Step) -> None:
    for name, (repository, tag) in IMAGES.items():
        archive = simulation.image_archive(lab, name)
        if archive.exists():
            step.say(f"pushing {repository}:{tag}")
            push_archive(credentials(lab), archive, repository, tag)


def make_namespace(lab: Lab, step: Step, name: str) -> None:
    """The namespace is install's from its first run on. To apply it here would rewrite the annotation by which install knows
    what it applied, and the next run would change it back."""
    kubectl = [lab.kubectl, "--kubeconfig", lab.kubeconfig]
    if not step.run(*kubectl, "get", "namespace", name, "--ignore-not-found", "-o", "name").stdout:
        step.run(*kubectl, "create", "namespace", name)


def make_pull_secrets(lab: Lab, step: Step) -> None:
    """The registry's credentials as an imagePullSecret where pods will want them."""
    login = credentials(lab)
    basic = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    config = json.dumps({"auths": {login.address: {"auth": basic}}})
    pull_secrets = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": PULL_SECRET, "namespace": where},
            "data": {".dockerconfigjson": base64.b64encode(config.encode()).decode()},
        }
        for where in PULLING_NAMESPACES
    ]
    manifest = {"apiVersion": "v1", "kind": "List", "items": pull_secrets}
    kubectl = [lab.kubectl, "--kubeconfig", lab.kubeconfig]
    for where in PULLING_NAMESPACES:
        make_namespace(lab, step, where)
    step.run(*kubectl, "apply", "--server-side", "--field-manager=lab", "-f", "-", input=json.dumps(manifest))


def grant_access(lab: Lab, step: Step) -> None:
    """The account that docs/access.md describes, and a kubeconfig with its token: what playbooks use here."""
    kubectl = [lab.kubectl, "--kubeconfig", lab.kubeconfig]
    for namespace in ("mindx-dl", "cluster-system", "volcano-system"):  # as the manifests say
        make_namespace(lab, step, namespace)
    for of in ("", "-mindcluster", "-clusterd", "-volcano"):
        step.run(*kubectl, "apply", "-f", CHECKOUT / "docs" / f"controller-access{of}.yml")
    secret = ["secret", f"{CONTROLLER}-token", "--namespace", NAMESPACE]
    step.run(*kubectl, "wait", "--for=jsonpath={.data.token}", "--timeout=60s", *secret)
    token = json.loads(step.run(*kubectl, "get", *secret, "-o", "json", quiet=True).stdout)["data"]["token"]
    config = json.loads(lab.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0] = {"name": CONTROLLER, "user": {"token": base64.b64decode(token).decode("ascii")}}
    config["contexts"][0]["context"]["user"] = CONTROLLER
    write(lab.controller_kubeconfig, json.dumps(config, indent=2) + "\n", mode=0o600)


def build_driver_images(lab: Lab, step: Step) -> None:
    """Make driver images of the simulated packages with the collection's own builder, for every OS in the lab."""
    _build_images(lab, step, driver_builds(lab, simulation.driver_packages(lab)), "driver-images")


def build_more_driver_images(
    lab: Lab, step: Step, version: str, fault: str, firmware: str | None = None, kernel: str | None = None
) -> list[str]:
    """Images of a further driver version, with `fault` a bad one, instead of what their tags name now; returns the tags.

    With `firmware`, they bring the firmware package of that version. They are for `kernel`, or for the machine's."""
    kernel = kernel or os.uname().release
    builds = driver_builds(lab, simulation.more_driver_packages(lab, step, version, fault, kernel), kernel)
    for build in builds if firmware else []:
        package = simulation.driver_packages(lab) / f"Ascend-hdk-{build['chip']}-npu-firmware_{firmware}.run"
        if not package.exists():
            raise LabError(f"there is no firmware {firmware} for {build['chip']}: see lab/sim/README.md")
        build["firmware"] = str(package)
    of_kernel = "" if kernel == os.uname().release else f"-{kernel}"
    _build_images(lab, step, builds, f"driver-images-{version}{of_kernel}")
    profile = library("_driver.profile")
    return [profile.image_profile(version, build["chip"], profile.kernel_and_os(kernel, {})[0], build["os"]) for build in builds]


def _build_images(lab: Lab, step: Step, builds: list[dict[str, str]], name: str) -> None:
    """Build and push, unless that was done last under this name."""
    login = credentials(lab)
    request = {
        "npu_driver_repository": f"{lab.registry}/{DRIVER_REPOSITORY}",
        "npu_registry_username": login.username,
        "npu_registry_password": login.password,
        "npu_registry_plain_http": True,
        "npu_driver_image_build": builds,
    }
    text = json.dumps(request, indent=2) + "\n"
    done = lab.state / f"{name}.json"
    if done.exists() and done.read_text(encoding="utf-8") == text:
        return
    step.say(f"building and pushing {len(builds)} images")
    variables = lab.state / f"{name}.json.new"
    write(variables, text, mode=0o600)
    run_playbook(lab, step, "build_driver_image", "-i", "localhost,", "-e", f"@{variables}")
    variables.rename(done)


def driver_builds(lab: Lab, packages: Path, kernel: str | None = None) -> list[dict[str, str]]:
    """What to build: each package of a chip in the directory for each OS that has the chip.

    `kernel`: the machine's, unless given.
    """
    profile = library("_driver.profile")
    release = kernel or os.uname().release
    builds = []
    for card, os_release in sorted({(node.card, node.os_release) for node in lab.nodes if node.card}):
        file = LAB_SOURCE / "files" / "os-release" / os_release
        fields = profile.parse_os_release(file.read_text(encoding="utf-8"))
        chip = simulation.CARDS[card].chip
        builds += [
            {"package": str(package), "chip": chip, "kernel": release, "os": profile.kernel_and_os(release, fields)[1]}
            for package in sorted(packages.glob(f"Ascend-hdk-{chip}-npu-driver_*.run"))
        ]
    return builds
