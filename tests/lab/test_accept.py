# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of the lab are accepted: all at level 1; one that is drained, as the output says, with a simulated ascend-dmi; two with one that
an image has."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil

import jsonschema
import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._image import oci, registry

from support.paths import CHECKOUT

pytestmark = pytest.mark.usefixtures("installed")

NODE = "npu-a"
TOOLBOX = "/opt/Ascend/toolbox"
SCHEMA = json.loads((CHECKOUT / "docs/accept.schema.json").read_text(encoding="utf-8"))


def accept(lab, directory, *arguments, **variables):
    """(what the run printed, its exit status, {node: document})."""
    done = lab.playbook("accept", *arguments, check=False, npu_accept_dir=str(directory), npu_accept_toolbox=TOOLBOX, **variables)
    found = {}
    for path in sorted(directory.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(document, SCHEMA)
        found[document["node"]] = document
    return done.stdout + done.stderr, done.returncode, found


def test_a_fleet_in_order_passes(lab, tmp_path):
    told, status, documents = accept(lab, tmp_path, "--limit=npu-a,npu-b,npu-c")
    assert status == 0, told
    assert {name: document["verdict"] for name, document in documents.items()} == dict.fromkeys(("npu-a", "npu-b", "npu-c"), "PASS")


@pytest.fixture
def drained(lab):
    yield
    lab.fault(NODE, "clear")
    lab.kubectl("uncordon", NODE)


def test_a_drained_node_is_accepted_as_the_output_says(lab, drained, tmp_path):
    told, status, documents = accept(lab, tmp_path / "1", f"--limit={NODE}", npu_accept_level=2)
    assert status == 2 and documents[NODE]["verdict"] == "UNKNOWN", told
    for command in re.findall(rf"kubectl drain {NODE} --ignore-daemonsets", told)[:1]:
        lab.kubectl(*shlex.split(command)[1:])
    # The run dies while ascend-dmi runs, and the next one has its result.
    lab.fault(NODE, "slow-diagnosis", "20")
    began = lab.module(NODE, "npu_accept", level=2, toolbox=TOOLBOX, wait=0)
    assert began["state"] == "running", began
    told, status, documents = accept(lab, tmp_path / "2", f"--limit={NODE}", npu_accept_level=2)
    assert status == 0 and documents[NODE]["verdict"] == "PASS", told
    assert documents[NODE]["began"] == began["began"]
    names = {found["name"] for found in documents[NODE]["findings"]}
    assert names >= {"chips", "chip_health", "ascend-dmi driver", "ascend-dmi hbm", "ascend-dmi network"}
    lab.fault(NODE, "clear")
    # What fails is named, and the host remembers it.
    lab.fault(NODE, "diagnosis-fails", "aicore")
    told, status, documents = accept(lab, tmp_path / "3", f"--limit={NODE}", npu_accept_level=3)
    assert status == 2 and documents[NODE]["verdict"] == "FAIL", told
    assert "FAIL ascend-dmi aicore: FAIL; aicore diagnosis failed on device 0." in told
    kept = json.loads(lab.ssh(NODE, "cat /var/lib/npuops/acceptance-history").stdout)["results"]
    assert [(entry["level"], entry["verdict"]) for entry in kept[:3]] == [(3, "FAIL"), (2, "PASS"), (2, "UNKNOWN")]


class ToolboxImages:
    """Images with the lab's ToolBox in the lab's registry, on the test image."""

    def __init__(self, lab, directory):
        login = json.loads((lab.state / "registry.json").read_text(encoding="utf-8"))
        self._client = registry.RegistryClient(login["address"], login["username"], login["password"], plain_http=True)
        self._directory = directory
        self._address = login["address"]
        self.access = {
            "registry_username": login["username"], "registry_password": login["password"], "registry_plain_http": True,
        }  # fmt: skip

    def push(self, tag, first="true"):
        """The reference of one whose ascend-dmi runs the command ``first`` at its beginning."""
        top = self._directory / tag
        shutil.copytree(CHECKOUT / "lab/files/node" / TOOLBOX[1:], top)
        program = top / "latest/Ascend-DMI/bin/ascend-dmi"
        program.write_text(program.read_text(encoding="utf-8").replace("#!/bin/sh\n", f"#!/bin/sh\n{first}\n", 1), encoding="utf-8")
        layer = oci.write_layer(str(top), TOOLBOX, str(self._directory / f"{tag}.tar.gz"))
        _found, manifest = self._client.image("lab/test", "lab")
        config = json.loads(self._client.blob("lab/test", manifest["config"]["digest"]))
        config["rootfs"]["diff_ids"].append(layer.diff_id)
        content = json.dumps(config).encode()
        self._client.push_blob("lab/test", oci.sha256(content), len(content), io.BytesIO(content))
        with open(layer.path, "rb") as stream:
            self._client.push_blob("lab/test", layer.digest, layer.size, stream)
        manifest["config"].update(digest=oci.sha256(content), size=len(content))
        manifest["layers"].append({"mediaType": layer.media_type, "digest": layer.digest, "size": layer.size})
        digest = self._client.push_manifest("lab/test", tag, json.dumps(manifest).encode())
        return f"{self._address}/lab/test:{tag}", f"{self._address}/lab/test@{digest}"


@pytest.fixture(params=["npu-a", "npu-b"])
def drained_node(lab, request):
    """With containerd 2 and 1.7."""
    lab.kubectl("drain", request.param, "--ignore-daemonsets", "--delete-emptydir-data")
    yield request.param
    lab.kubectl("uncordon", request.param)


def left_of_images(lab, node):
    """What there is of a ToolBox image on the host."""
    kinds = "for kind in images containers tasks leases; do ctr -n npuops-acceptance $kind ls -q; done"
    return lab.ssh(node, f"{kinds}; ls -d /run/npuops/acceptance /var/lib/npuops/acceptance-image 2>/dev/null || true").stdout


def test_a_node_is_accepted_with_a_toolbox_image(lab, drained_node, tmp_path):
    node, images = drained_node, ToolboxImages(lab, tmp_path)
    image, pinned = images.push("toolbox")
    limit, settings = f"--limit={node}", {"npu_accept_level": 2, "npu_accept_toolbox_image": image}
    told, status, documents = accept(lab, tmp_path / "1", limit, **settings)
    assert status == 0 and documents[node]["verdict"] == "PASS", told
    seen = {found["name"]: found["seen"] for found in documents[node]["findings"]}
    assert seen["toolbox image"] == pinned and seen["ascend-dmi driver"] == "HEALTH", told
    assert left_of_images(lab, node) == ""
    # All processes of the unit are killed, and no call of accept comes: the container does not go on.
    slow = {"toolbox_image": images.push("slow", "sleep 4321")[0], **images.access}

    def runs():
        return lab.ssh(node, "pgrep -f '^sleep 4321'", check=False).returncode == 0

    answers = iter(lambda: lab.module(node, "npu_accept", level=2, toolbox=TOOLBOX, wait=1, **slow)["state"], "running")
    assert {"pulling"} >= set(answers)
    lab.wait_for(runs, 60, "ascend-dmi runs in its container")
    lab.ssh(node, "systemctl kill --signal=KILL npuops-acceptance.service")
    lab.wait_for(lambda: not runs(), 90, "the container has ended")
    told, status, documents = accept(lab, tmp_path / "2", limit, **settings)
    assert status == 2 and documents[node]["verdict"] == "UNKNOWN", told
    assert left_of_images(lab, node) == ""


# Rank 0 waits for the question of rank 1, and answers it.
TALK = """
if [ "$NODE_RANK" = 0 ]; then
    exec nc -l -p "$MASTER_PORT" -e sh -c 'read question; [ "$question" = "question of $((NNODES - 1))" ] && echo answer'
fi
for attempt in $(seq 60); do
    answer=$(exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT" && echo "question of $NODE_RANK" >&3 && cat <&3)
    [ "$answer" = answer ] && exit 0
    sleep 1
done 2>/dev/null
echo "no answer of $MASTER_ADDR"
exit 1
"""


@pytest.fixture
def two_drained(lab):
    names = ("npu-a", "npu-b")
    lab.kubectl("drain", *names, "--ignore-daemonsets", "--delete-emptydir-data")
    yield names
    lab.kubectl("uncordon", *names)


def test_two_nodes_reach_each_other(lab, two_drained, tmp_path):
    image = "{}/lab/test:lab".format(lab.variable("npu_driver_repository").split("/")[0])
    container = {"name": "main", "image": image, "resources": {"limits": {"huawei.com/Ascend910": 1}}}
    spec = {"containers": [dict(container, command=["/bin/bash", "-c", TALK])], "imagePullSecrets": [{"name": "lab-registry"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talk", "namespace": "default"}, "spec": spec}
    manifest = tmp_path / "talk.json"
    limit = "--limit=" + ",".join(two_drained)

    def run(directory, **variables):
        manifest.write_text(json.dumps(pod), encoding="utf-8")
        answer = accept(lab, tmp_path / directory, limit, npu_accept_level=2, npu_accept_collective_pod=str(manifest), **variables)
        assert not lab.pods("default", labelSelector="npuops.ascend/smoke-pod"), answer[0]
        return answer

    def found(documents):
        return {
            name: [(one["verdict"], one["seen"]) for one in document["findings"] if one["name"] == "collective"]
            for name, document in documents.items()
        }

    told, status, documents = run("1")
    assert status == 0 and "npu-a and npu-b: run the collective" in told, told
    assert found(documents) == {"npu-a": [("PASS", "passed with npu-b")], "npu-b": [("PASS", "passed with npu-a")]}, told
    # Rank 1 ends at once, and rank 0 is not waited for.
    spec["containers"][0]["command"][2] = '[ "$NODE_RANK" = 0 ] && exec sleep 3600; echo EI0006; exit 7'
    told, status, documents = run("2", npu_upgrade_smoke_timeout=3600)
    assert status == 2, told
    for ((verdict, seen),) in found(documents).values():
        assert verdict == "FAIL" and "rank 1 on npu-b" in seen and "main ended with 7, its last line: EI0006" in seen, told
        assert "npu-a and npu-b" in seen, told
    last = json.loads(lab.node("npu-b")["metadata"]["annotations"]["npuops.ascend/acceptance"])
    assert (last["verdict"], last["level"]) == ("FAIL", 2)


POD = "waits-for-the-gate"


@pytest.fixture
def as_new(lab):
    """The node as install sees one for the first time."""
    ours = [label for label in lab.node(NODE)["metadata"]["labels"] if label.startswith("npuops.ascend/")]
    lab.kubectl("label", "node", NODE, *[label + "-" for label in ours])
    yield
    lab.kubectl("delete", "pod", POD, "--ignore-not-found", "--wait=false")
    lab.kubectl("taint", "node", NODE, "npuops.ascend/not-accepted-", check=False)
    lab.playbook("install", f"--limit={NODE}")


def why_pending(lab):
    """What the scheduler says of the pod."""
    conditions = lab.pod(POD).get("status", {}).get("conditions", [])
    return "".join(condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled")


def test_a_new_node_waits_until_it_is_accepted(lab, as_new, tmp_path):
    done = lab.playbook("install", f"--limit={NODE}", npu_install_gate=2)
    assert "pods wait until npuops.ascend.accept has accepted it at level 2" in done.stdout, done.stdout
    image = "{}/lab/test:lab".format(lab.variable("npu_driver_repository").split("/")[0])
    container = {"name": "main", "image": image, "command": ["/bin/true"], "resources": {"limits": {"huawei.com/Ascend910": 1}}}
    spec = {"restartPolicy": "Never", "nodeSelector": {"kubernetes.io/hostname": NODE}, "containers": [container]}
    spec["imagePullSecrets"] = [{"name": "lab-registry"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": "default"}, "spec": spec}
    lab.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    lab.wait_for(lambda: "untolerated taint" in why_pending(lab), 60, "the taint keeps the pod off")
    told, status, _documents = accept(lab, tmp_path / "1", f"--limit={NODE}")
    assert status == 0 and "Pods wait until the node is accepted at level 2 or higher" in told, told
    assert "pods wait until npuops.ascend.accept has accepted it at level 2" in lab.playbook("status").stdout
    # Without a drain: nothing can have come onto the node. The user's own pod runs there all the same.
    smoke = tmp_path / "smoke.json"
    smoke.write_text(json.dumps({**pod, "metadata": {"name": "smoke", "namespace": "default"}}), encoding="utf-8")
    told, status, documents = accept(lab, tmp_path / "2", f"--limit={NODE}", npu_accept_level=2, npu_upgrade_smoke_pod=str(smoke))
    chips = documents[NODE]["chips"]
    pods = [found["seen"] for found in documents[NODE]["findings"] if found["name"] == "smoke pods"]
    assert pods == [f"{chips} of {chips} succeeded"] and not lab.pods("default", labelSelector="npuops.ascend/smoke-pod"), told
    assert status == 0 and "The taint npuops.ascend/not-accepted was removed" in told, told
    lab.wait_for(lambda: lab.pod(POD)["status"]["phase"] == "Succeeded", 120, "the pod runs")
    last = json.loads(lab.node(NODE)["metadata"]["annotations"]["npuops.ascend/acceptance"])
    assert (last["verdict"], last["level"]) == ("PASS", 2)
