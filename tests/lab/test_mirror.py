# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An air gap: two real registries in different network namespaces, with no route between them, and the lab's hosts at one side.

The registry of the other side is in a namespace that has nothing but its own loopback interface. Its name in the images, 127.0.0.1,
leads nowhere for the hosts.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import uuid

import pytest
import yaml

from support.crash.gate import Controller
from support.patience import PATIENCE

OUTSIDE = "127.0.0.1:5900"
ROOT = "/var/lib/npuops-mirror-test"
POD = "npuops-mirror-test"
# Before the first install, a host without Python tells nothing of its chips.
HOSTS = "--limit=npu-a,npu-b,cpu-a"


def registry_program(lab):
    """The registry that the lab runs, as another instance of it is wanted."""
    config = str(lab.state / "registry" / "config.yml")
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().decode(errors="replace").split("\0")
        if config in words:
            return words[0]
    raise AssertionError(f"no registry runs with {config}")


class Outside:
    """The side with the Internet: a namespace of its own, and a registry in it."""

    def __init__(self, lab, directory):
        self.lab = lab
        self.name = f"npuops-{uuid.uuid4().hex[:8]}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)
        config = directory / "config.yml"
        storage = {"filesystem": {"rootdirectory": str(directory / "data")}}
        config.write_text(json.dumps({"version": "0.1", "storage": storage, "http": {"addr": OUTSIDE}}))
        command = ["ip", "netns", "exec", self.name, registry_program(lab), "serve", str(config)]
        with (directory / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def mirror(self, check=True, **variables):
        """Run the playbook there, without an inventory; what it printed."""
        variables["npu_mirror_registries"] = [{"registry": OUTSIDE, "plain_http": True}]
        command = ["ip", "netns", "exec", self.name, "ansible-playbook", "-i", "localhost,", "npuops.ascend.mirror"]
        done = subprocess.run(
            [*command, "-e", json.dumps(variables)],
            env=self.lab.environment(), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        printed = done.stdout + done.stderr
        assert (done.returncode == 0) == check, printed
        return " ".join(printed.split())


@pytest.fixture
def outside(lab, tmp_path):
    side = Outside(lab, tmp_path)
    try:
        yield side
    finally:
        side.close()


@pytest.fixture
def site(lab):
    """The variables of a site whose images are named as outside, and come from the lab's registry."""
    registry = lab.variable("npu_driver_repository").partition("/")[0]
    names = ["npu_driver_repository", "npu_node_agent_image"]
    variables = {name: lab.variable(name).replace(registry, OUTSIDE) for name in names}
    for name in ("npu_device_plugin_image", "npu_exporter_image"):
        variables[name] = f"{OUTSIDE}/{lab.variable(name).partition('/')[2].partition(':')[0]}:v26.1.0"
    yield {**variables, "npu_registry_mirror": f"{registry}/site-{uuid.uuid4().hex[:8]}"}
    for node in ("npu-a", "npu-b"):
        lab.ssh(node, f"rm -rf {ROOT}")
    lab.kubectl("delete", "pod", POD, "--ignore-not-found", "--now")


def test_a_bundle_that_a_killed_run_left_and_one_that_is_damaged(lab, tmp_path):
    bundle = tmp_path / "bundle"
    command = ["ansible-playbook", "-i", str(lab.inventory), "npuops.ascend.mirror", HOSTS, "-e", f"npu_mirror_to={bundle}"]
    blobs = bundle / "blobs" / "sha256"
    run = Controller(command, tmp_path / "log", lab.environment())
    lab.wait_for(lambda: blobs.is_dir() and any(blobs.iterdir()), PATIENCE, "the first layer of the bundle")
    run.kill()
    made = lab.playbook("mirror", HOSTS, npu_mirror_to=str(bundle)).stdout
    # How far the killed run had come is a matter of milliseconds; tests/unit kill it at each request.
    assert "checksum of the bundle: " in made
    assert "changed=0" in lab.playbook("mirror", HOSTS, npu_mirror_to=str(bundle)).stdout
    layer = max(blobs.iterdir(), key=lambda path: path.stat().st_size)
    with layer.open("r+b") as file:
        file.truncate(layer.stat().st_size - 1)
    refused = lab.playbook("mirror", check=False, npu_mirror_from=str(bundle))
    assert refused.returncode != 0 and layer.name in refused.stdout
    assert "changed=1" in lab.playbook("mirror", HOSTS, npu_mirror_to=str(bundle)).stdout
    there = lab.variable("npu_driver_repository").partition("/")[0] + f"/after-all-{uuid.uuid4().hex[:8]}"
    assert "changed=1" in lab.playbook("mirror", npu_mirror_from=str(bundle), npu_mirror_to=there).stdout
    assert "changed=0" in lab.playbook("mirror", npu_mirror_from=str(bundle), npu_mirror_to=there).stdout


def test_through_an_air_gap(lab, outside, site, tmp_path):
    listing, seed, bundle = tmp_path / "images.yml", str(tmp_path / "seed"), str(tmp_path / "bundle")
    # What a builder and upstream have published outside: the images of the lab, under the names of that registry.
    lab.playbook("mirror", HOSTS, npu_mirror_to=seed)
    outside.mirror(npu_mirror_from=seed, npu_mirror_to=OUTSIDE)

    # The three commands of docs/air-gap.md.
    lab.playbook("mirror", HOSTS, npu_mirror_list_file=str(listing), **site)
    images = yaml.safe_load(listing.read_text())["npu_mirror_images"]
    assert len(images) >= 4 and all(image.startswith(OUTSIDE + "/") for image in images), images
    package = lab.driver_package("910b", str(lab.variable("npu_driver_version")))
    sha256 = hashlib.sha256(package.read_bytes()).hexdigest()
    packages = [{"package": str(package), "sha256": sha256}]
    made = outside.mirror(npu_mirror_images=images, npu_mirror_packages=packages, npu_mirror_to=bundle)
    checksum = made.rpartition("checksum of the bundle: ")[2][:64]
    loaded = lab.playbook("mirror", npu_mirror_from=bundle, npu_mirror_checksum=checksum, **site)
    assert "changed=1" in loaded.stdout
    oci = re.search(r"oci://\S+/ascend-driver-packages:[0-9A-Za-z._-]+", loaded.stdout).group()
    assert "changed=0" in lab.playbook("mirror", npu_mirror_from=bundle, **site).stdout

    # There is no other way: neither side reaches the registry of the other one.
    inside = site["npu_registry_mirror"].partition("/")[0]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 5900), timeout=5)
    refused = outside.mirror(check=False, npu_mirror_images=[f"{inside}/npuops/node-agent:1"], npu_mirror_to=str(tmp_path / "x"))
    assert f"Registry {inside} cannot be reached" in refused

    # Install would take everything from the mirror, and a host and a pod do.
    planned = lab.playbook("install", "--check", HOSTS, **site).stdout
    driver = next(image for image in images if "910b" in image).replace(OUTSIDE, site["npu_registry_mirror"])
    assert f"driver image {driver}" in " ".join(planned.split())
    access = {f"registry_{name}": lab.variable(f"npu_registry_{name}") for name in ("username", "password", "plain_http")}
    access["registry_mirror"] = site["npu_registry_mirror"]
    for source in (
        {"image": driver.replace(site["npu_registry_mirror"], OUTSIDE)},
        {"source": "package", "package": oci, "package_sha256": sha256},
    ):
        staged = lab.module("npu-b", "npu_driver_stage", root=ROOT, **source, **access)
        assert staged["changed"] and staged["release"], staged
    agent = site["npu_node_agent_image"].replace(OUTSIDE, site["npu_registry_mirror"])
    container = {"name": "agent", "image": agent, "imagePullPolicy": "Always", "command": ["python3", "-c", "print('pulled')"]}
    pod = {"nodeName": "npu-b", "restartPolicy": "Never", "containers": [container], "imagePullSecrets": [{"name": "lab-registry"}]}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": pod}))
    lab.wait_for(lambda: lab.pod(POD)["status"]["phase"] == "Succeeded", 120, f"the pod with {agent}")
