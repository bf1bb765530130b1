# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a workload gets through the node agent, and what happens when anything of it dies. Both lines of containerd."""

from __future__ import annotations

import io
import json
import re
import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._image import oci
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry as image_registry

from support.lab.healing import QUICK
from support.paths import CHECKOUT
from support.patience import PATIENCE

# Node -> what its pods ask for, chips.
NODES = {"npu-a": ("huawei.com/Ascend910", 8), "npu-b": ("huawei.com/Ascend910", 8), "npu-c": ("huawei.com/Ascend310P", 4)}
NAMESPACE, TEAM = "npu-operator", "workload-test"
AGENT = "app.kubernetes.io/name=npu-node-agent"
USER = f"system:serviceaccount:{NAMESPACE}:npu-node-agent"
CANN_PATH = "/usr/local/Ascend/ascend-toolkit/latest/lib64"
# Pods of the level `restricted` may say no less than this.
RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


@pytest.fixture(scope="module", autouse=True)
def team(lab, quick_agents):
    """A namespace with the Pod Security level restricted."""
    secret = lab.get("secret", "lab-registry", "-n", "default")
    secret["metadata"] = {"name": "lab-registry", "namespace": TEAM}
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM, "labels": labels}}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, secret]}))
    for node in NODES:
        wait_offered(lab, node, 0)
    yield
    lab.kubectl("delete", "namespace", TEAM, "--wait=true")


@pytest.fixture(autouse=True)
def all_chips(lab):
    """Every test begins and ends with an empty namespace and with all chips allocatable."""
    yield
    lab.kubectl("delete", "pods", "--all", "-n", TEAM, "--wait=true", "--grace-period=1")
    for node in NODES:
        wait_allocatable(lab, node)


def registry(lab) -> str:
    return str(lab.variable("npu_driver_repository")).split("/", maxsplit=1)[0]


def wait_allocatable(lab, node: str, count: int | None = None) -> None:
    resource, chips = NODES[node]
    wanted = str(chips if count is None else count)
    lab.wait_for(
        lambda: lab.node(node)["status"]["allocatable"].get(resource, "0") == wanted,
        PATIENCE,
        f"{node}: allocatable {resource} = {wanted}",
    )


def withdrawn(lab, node: str) -> str:
    """The devices that are unhealthy for the device plugin."""
    told = lab.get("-n", "kube-system", "configmap", f"mindx-dl-deviceinfo-{node}")["data"]["DeviceInfoCfg"]
    return json.loads(told)["DeviceInfo"]["DeviceList"][f"{NODES[node][0]}-Unhealthy"]


def create_pod(lab, name: str, node: str, script: str, chips: int = 1, image: str | None = None) -> None:
    """A pod says the resource and what every pod in such a namespace has to; nothing of drivers, devices or runtimes."""
    lab.kubectl(
        "create",
        "-f",
        "-",
        stdin=json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": TEAM},
                "spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "imagePullSecrets": [{"name": "lab-registry"}],
                    "securityContext": {"runAsNonRoot": True, "runAsUser": 1234, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [
                        {
                            "name": "main",
                            "image": image or f"{registry(lab)}/lab/test:lab",
                            "command": ["/bin/sh", "-c", script],
                            "securityContext": RESTRICTED,
                            "resources": {"limits": {NODES[node][0]: str(chips)}},
                        }
                    ],
                },
            }
        ),
    )


def pod_status(lab, name: str) -> dict:
    return lab.pod(name, TEAM)["status"]


def output(lab, name: str) -> str:
    phase = lab.wait_for(
        lambda: (found := pod_status(lab, name)["phase"]) in ("Succeeded", "Failed") and found, PATIENCE, f"pod {name} ends"
    )
    assert phase == "Succeeded" or "reason" not in pod_status(lab, name), pod_status(lab, name)  # refused: no log
    text = lab.last_log(name, TEAM)
    assert phase == "Succeeded", text
    return text


def wait_running(lab, name: str) -> str:
    """The container's ID."""
    lab.wait_for(lambda: pod_status(lab, name)["phase"] == "Running", PATIENCE, f"pod {name} runs")
    return pod_status(lab, name)["containerStatuses"][0]["containerID"]


def devices(text: str) -> set[str]:
    return set(re.findall(r"^davinci(\d+)$", text, re.MULTILINE))


def addresses(text: str) -> list[str]:
    """The PCI addresses of the chips npu-smi lists."""
    return re.findall(r"\| (0000:[0-9A-F]{2}:00\.0) ", text)


def agent_pod(lab, node: str) -> dict:
    """The agent's pod on a node that is not about to go."""

    def ready():
        pods = lab.pods(NAMESPACE, labelSelector=AGENT, fieldSelector=f"spec.nodeName={node}")
        return [
            pod
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            and any(
                condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", ())
            )
        ]

    return lab.wait_for(ready, PATIENCE, f"{node}: a ready agent")[0]


def metrics(lab, node: str) -> str:
    address = agent_pod(lab, node)["status"]["podIP"]
    return lab.ssh("cpu-a", f"curl -sSf http://{address}:9461/metrics").stdout


LOOK = "npu-smi info && ls /dev && echo LD=$LD_LIBRARY_PATH"


@pytest.mark.core
@pytest.mark.parametrize("chips", [1, 2])
@pytest.mark.parametrize("node", NODES)
def test_a_request_is_enough(lab, node, chips):
    """A real ELF program, linked against the driver's libraries, lists exactly the pod's chips."""
    create_pod(lab, "look", node, LOOK, chips)
    text = output(lab, "look")
    assert len(devices(text)) == chips, text
    assert len(addresses(text)) == chips, text
    assert "davinci_manager" in text
    assert "LD=\n" in text
    assert "runtimeClassName" not in lab.pod("look", TEAM)["spec"]


@pytest.mark.core
def test_the_page_for_people_who_run_pods(lab, tmp_path):
    """docs/use.md as a user copies it, but for the image: the lab has no other registry than its own."""
    page = (CHECKOUT / "docs" / "use.md").read_text(encoding="utf-8")
    pod = re.search(r"```yaml\n(# hello-npu.yaml\n.*?)```", page, re.DOTALL)[1]
    pod = pod.replace("docker.io/library/ubuntu:22.04", f"{registry(lab)}/lab/test:lab")
    pod = pod.replace("  restartPolicy: Never\n", "  restartPolicy: Never\n  imagePullSecrets: [{name: lab-registry}]\n")
    (tmp_path / "hello-npu.yaml").write_text(pod, encoding="utf-8")
    env = {"PATH": f"{lab.state}/bin:/usr/bin:/bin", "KUBECONFIG": str(lab.kubeconfig)}
    printed = []
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        script = "set -euo pipefail\n" + re.sub(r"^\$ ", "", block, flags=re.MULTILINE)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        printed.append(done.stdout)
    offered, ran, counted = printed
    assert re.search(r"^npu-a +8 +<none> +<none>", offered, re.MULTILINE) and "npu-c" in offered, offered
    assert len(addresses(ran)) == 1, ran
    # Capacity and allocatable, then what is requested.
    on_a = re.search(r"^Name: +npu-a$((?:\n(?!Name:).*)*)", counted, re.MULTILINE)[1]
    assert [" ".join(line.split()) for line in on_a.split("\n")[1:]] == [
        "huawei.com/Ascend910: 8",
        "huawei.com/Ascend910: 8",
        "huawei.com/Ascend910 0 0",
    ], counted


@pytest.mark.core
@pytest.mark.parametrize("node", NODES)
def test_two_pods_never_share_a_chip(lab, node):
    _resource, chips = NODES[node]
    names = [f"share-{number}" for number in range(chips // 2)]
    for name in names:
        create_pod(lab, name, node, f"{LOOK}; exec sleep 600", chips=2)
    for name in names:
        wait_running(lab, name)
    found = []
    for name in names:
        lab.wait_for(lambda name=name: "LD=" in lab.kubectl("logs", name, "-n", TEAM), PATIENCE, f"{name} has looked")
        found += sorted(devices(lab.kubectl("logs", name, "-n", TEAM)))
    assert sorted(found, key=int) == [str(number) for number in range(chips)]


@pytest.fixture(scope="module")
def cann_image(lab) -> str:
    """The test image with the environment of a CANN image: its LD_LIBRARY_PATH is its own."""
    login = json.loads((lab.state / "registry.json").read_text(encoding="utf-8"))
    client = image_registry.RegistryClient(login["address"], login["username"], login["password"], plain_http=True)
    _there, manifest = client.image("lab/test", "lab")
    config = json.loads(client.blob("lab/test", manifest["config"]["digest"]))
    config["config"]["Env"].append(f"LD_LIBRARY_PATH={CANN_PATH}")
    content = json.dumps(config).encode()
    client.push_blob("lab/test", oci.sha256(content), len(content), io.BytesIO(content))
    manifest["config"].update(digest=oci.sha256(content), size=len(content))
    client.push_manifest("lab/test", "cann", json.dumps(manifest).encode())
    return f"{login['address']}/lab/test:cann"


@pytest.mark.parametrize("node", ["npu-a", "npu-b"])
def test_an_image_keeps_its_library_path(lab, node, cann_image):
    create_pod(lab, "cann", node, LOOK, image=cann_image)
    text = output(lab, "cann")
    assert f"LD={CANN_PATH}\n" in text
    assert len(addresses(text)) == 1, text


def restart_kubelet(lab, node):
    lab.ssh(node, "systemctl restart kubelet")


def delete_plugin(lab, node):
    lab.kubectl("delete", "pods", "-n", NAMESPACE, "-l", "name=ascend-device-plugin-ds", f"--field-selector=spec.nodeName={node}")


def delete_agent(lab, node):
    lab.kubectl("delete", "pods", "-n", NAMESPACE, "-l", AGENT, f"--field-selector=spec.nodeName={node}")


def kill_plugin(lab, node):
    lab.ssh(node, "pkill -KILL -x device-plugin")


def registrations(lab, node) -> int:
    """How often the node's agent has registered at the kubelet since it started."""
    counts = re.findall(r"^npuops_node_agent_kubelet_registrations_total\{.*\} (\d+)", metrics(lab, node), re.MULTILINE)
    return sum(map(int, counts))


def wait_offered(lab, node, before: int) -> None:
    """Until the agent has registered again, the kubelet refuses pods, although the Node's status still counts the chips."""
    lab.wait_for(lambda: registrations(lab, node) > before, PATIENCE, f"{node}: the kubelet has the devices again")
    wait_allocatable(lab, node)


@pytest.mark.parametrize("node", ["npu-a", "npu-b"])
@pytest.mark.parametrize("death", [restart_kubelet, delete_plugin, delete_agent, kill_plugin])
def test_who_dies_disturbs_no_workload(lab, node, death):
    """The pod goes on, in the same container; the next one gets another chip."""
    create_pod(lab, "works", node, "ls /dev; exec sleep 600", chips=2)
    container = wait_running(lab, "works")
    before = 0 if death is delete_agent else registrations(lab, node)
    death(lab, node)
    wait_offered(lab, node, before)
    create_pod(lab, "next", node, LOOK, chips=NODES[node][1] - 2)
    text = output(lab, "next")
    assert len(devices(text)) == NODES[node][1] - 2
    assert not devices(text) & devices(lab.kubectl("logs", "works", "-n", TEAM))
    status = pod_status(lab, "works")
    assert (status["phase"], status["containerStatuses"][0]["containerID"]) == ("Running", container)


def reboot_required_events(lab, node: str = "npu-a") -> list[dict]:
    events = lab.api.get("/api/v1/namespaces/default/events?fieldSelector=reason%3DRebootRequired")["items"]
    # Those that ask for the approval of an upgrade are others, and stay for an hour.
    return [event for event in events if event["involvedObject"]["name"] == node and "reason=recovery" in event["message"]]


def told(lab, node: str = "npu-a") -> tuple[bool, bool, bool]:
    """Annotation, label, Event."""
    metadata = lab.node(node)["metadata"]
    return (
        "npuops.ascend/wedged" in metadata.get("annotations", {}),
        metadata["labels"].get("npu.openfuyao.com/reboot-required") == "true",
        bool(reboot_required_events(lab, node)),
    )


DRIVER, CHIPS, NETWORK = ("npuops.ascend/" + name for name in ("DriverReady", "ChipsHealthy", "NetworkReady"))


def condition(lab, node: str = "npu-a", kind: str = DRIVER) -> dict:
    """One of the conditions that the agent writes."""
    return next((one for one in lab.node(node)["status"]["conditions"] if one["type"] == kind), {})


def wait_condition(lab, status: str, reason: str, node: str = "npu-a", kind: str = DRIVER) -> None:
    def holds():
        found = condition(lab, node, kind)
        return (found.get("status"), found.get("reason")) == (status, reason)

    lab.wait_for(holds, PATIENCE, f"{node}: {reason}")


@pytest.mark.core
def test_a_wedge_and_its_end(lab):
    create_pod(lab, "works", "npu-a", "exec sleep 600")
    container = wait_running(lab, "works")
    assert told(lab) == (False, False, False)
    wait_condition(lab, "True", "DriverResponds")
    lab.fault("npu-a", "wedge")
    try:
        lab.wait_for(lambda: told(lab) == (True, True, True), PATIENCE, "the cluster knows of the wedge")
        wait_condition(lab, "False", "DriverWedged")
        wait_condition(lab, "Unknown", "DriverWedged", kind=CHIPS)
        wait_allocatable(lab, "npu-a", 0)
        marker = json.loads(lab.ssh("npu-a", "cat /run/npuops/driver-suspended; test ! -e /run/npuops/driver-ready").stdout)
        annotation = json.loads(lab.node("npu-a")["metadata"]["annotations"]["npuops.ascend/wedged"])
        assert "-8005" in marker["output"] and marker["since"] == annotation["since"]
        assert "reason=recovery" in reboot_required_events(lab)[0]["message"]
        text = metrics(lab, "npu-a")
        assert 'npuops_node_agent_driver_state{state="suspended"} 1' in text, text
        assert pod_status(lab, "works")["containerStatuses"][0]["containerID"] == container
        # An agent that starts meanwhile goes on with the same wedge and refreshes the same Event.
        delete_agent(lab, "npu-a")
        lab.wait_for(lambda: reboot_required_events(lab)[0]["count"] > 1, PATIENCE, "the Event is refreshed")
        assert told(lab) == (True, True, True) and len(reboot_required_events(lab)) == 1
        assert json.loads(lab.node("npu-a")["metadata"]["annotations"]["npuops.ascend/wedged"])["since"] == annotation["since"]
        result = lab.playbook("status")
        assert re.search(r"^ *npu-a .* wedged", result.stdout, re.MULTILINE), result.stdout
    finally:
        lab.fault("npu-a", "clear")
    lab.wait_for(lambda: told(lab) == (False, False, False), PATIENCE, "the cluster knows that it is over")
    wait_condition(lab, "True", "DriverResponds")
    wait_condition(lab, "True", "ChipsHealthy", kind=CHIPS)
    wait_allocatable(lab, "npu-a")
    lab.wait_for(lambda: 'npuops_node_agent_driver_state{state="ready"} 1' in metrics(lab, "npu-a"), PATIENCE, "metrics: ready")
    assert pod_status(lab, "works")["phase"] == "Running"


@pytest.mark.core
def test_a_chip_with_a_fault_is_named_with_its_code(lab):
    """The others serve: for schedulers the node is ready, but for administrators it is unhealthy."""
    sick = "Alarm with 80E18402 (SeparateNPU: 64 HBM rows are isolated after uncorrectable errors: no more can be)"
    wait_condition(lab, "True", "ChipsHealthy", kind=CHIPS)
    wait_condition(lab, "True", "NoPortFaults", kind=NETWORK)
    lab.fault("npu-a", "alarm", "3", "80E18402", "Alarm")
    try:
        wait_condition(lab, "False", "ChipsUnhealthy", kind=CHIPS)
        assert condition(lab, kind=CHIPS)["message"].startswith("7 of 8 chips serve; NPU 3 chip 0 (0000:c4:00.0): " + sick)
        wait_condition(lab, "True", "ChipsUnhealthy")
        wait_allocatable(lab, "npu-a", 7)
        text = metrics(lab, "npu-a")
        assert re.search(
            r'chip_fault_info\{bus_id="0000:c4:00.0",chip="0",code="80E18402",level="SeparateNPU",.*npu="3"\} 1', text
        ), text
        assert text.count("npuops_node_agent_chip_fault_info{") == 1 and "npuops_node_agent_chips_expected 8" in text
        status = " ".join(lab.playbook("status").stdout.split())
        assert "7 of 8 chips are allocatable; NPU 3 chip 0 (0000:c4:00.0): " + sick in status, status
        assert told(lab) == (False, False, False), "it is no wedge"
    finally:
        lab.fault("npu-a", "clear")
    wait_condition(lab, "True", "ChipsHealthy", kind=CHIPS)
    wait_condition(lab, "True", "DriverResponds")


def test_a_port_that_is_down_is_told_and_takes_no_chip_away(lab):
    lab.fault("npu-a", "alarm", "3", "81078603", "Warning")
    try:
        wait_condition(lab, "False", "PortFaults", kind=NETWORK)
        assert "NPU 3 chip 0 (0000:c4:00.0) with 81078603" in condition(lab, kind=NETWORK)["message"]
        wait_condition(lab, "True", "ChipsHealthy", kind=CHIPS)
        # When the plugin has withdrawn a chip with another fault, it has seen the port's, too.
        lab.fault("npu-a", "not-ready", "5")
        lab.wait_for(lambda: "Ascend910-5" in withdrawn(lab, "npu-a"), PATIENCE, "the device plugin withdraws the other chip")
        assert withdrawn(lab, "npu-a") == "Ascend910-5"
    finally:
        lab.fault("npu-a", "clear")
    wait_condition(lab, "True", "NoPortFaults", kind=NETWORK)
    wait_condition(lab, "True", "DriverResponds")


def test_a_maintenance_is_no_wedge(lab):
    """The same failures count as soon as it is over."""
    lab.ssh("npu-a", "echo '{\"generation\": 1}' > /run/npuops/maintenance")
    try:
        lab.fault("npu-a", "wedge")
        lab.wait_for(lambda: 'driver_state{state="maintenance"} 1' in metrics(lab, "npu-a"), PATIENCE, "metrics: maintenance")
        wait_condition(lab, "False", "DriverInMaintenance")
        wait_condition(lab, "Unknown", "DriverInMaintenance", kind=CHIPS)
        # What it takes until a wedge is told, another node shows that is not in maintenance.
        lab.fault("npu-b", "wedge")
        lab.wait_for(lambda: told(lab, "npu-b") == (True, True, True), PATIENCE, "the cluster knows of the wedge of npu-b")
        assert told(lab) == (False, False, False)
        lab.ssh("npu-a", "rm /run/npuops/maintenance")
        lab.wait_for(lambda: told(lab) == (True, True, True), PATIENCE, "the cluster knows of the wedge")
    finally:
        lab.fault("npu-a", "clear")
        lab.fault("npu-b", "clear")
        lab.ssh("npu-a", "rm -f /run/npuops/maintenance")
    for node in ("npu-a", "npu-b"):
        lab.wait_for(lambda node=node: told(lab, node) == (False, False, False), PATIENCE, f"the cluster knows that {node} is well")


def as_agent(lab, token: str, *arguments: str) -> str:
    """kubectl with a token and nothing else; its output and its errors."""
    config = json.loads(lab.kubectl("config", "view", "--raw", "-o", "json"))
    config["users"] = [{"name": "agent", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "agent"
    file = lab.state / "agent-kubeconfig"
    file.write_text(json.dumps(config), encoding="utf-8")
    try:
        result = lab._run([str(lab.state / "bin" / "kubectl"), f"--kubeconfig={file}", *arguments], check=False)
        return result.stdout + result.stderr
    finally:
        file.unlink()


def test_an_agent_may_change_its_own_node_only(lab):
    name = agent_pod(lab, "npu-a")["metadata"]["name"]
    bound = lab.kubectl(
        "create", "token", "npu-node-agent", "-n", NAMESPACE, "--bound-object-kind=Pod", f"--bound-object-name={name}"
    ).strip()
    loose = lab.kubectl("create", "token", "npu-node-agent", "-n", NAMESPACE).strip()
    label, annotation = "npu.openfuyao.com/reboot-required", "npuops.ascend/wedged"
    assert "labeled" in as_agent(lab, bound, "label", "node", "npu-a", f"{label}=true")
    assert "labeled" in as_agent(lab, bound, "label", "node", "npu-a", f"{label}-")
    assert "annotated" in as_agent(lab, bound, "annotate", "node", "npu-a", f"{annotation}=x")
    assert "annotated" in as_agent(lab, bound, "annotate", "node", "npu-a", f"{annotation}-")
    for token in (bound, loose):
        assert "may only change its own node" in as_agent(lab, token, "label", "node", "npu-b", f"{label}=true")
    assert "may only change its own node" in as_agent(lab, loose, "label", "node", "npu-a", f"{label}=true")
    assert "the label" in as_agent(lab, bound, "label", "node", "npu-a", "mine=true")
    assert "the label" in as_agent(lab, bound, "label", "node", "npu-a", "npuops.ascend/components-")
    assert "the annotation" in as_agent(lab, bound, "annotate", "node", "npu-a", "npu.openfuyao.com/approve-reboot=true")
    assert "may only change labels and annotations of its node" in as_agent(
        lab, bound, "patch", "node", "npu-a", "-p", '{"spec":{"unschedulable":true}}'
    )
    assert "forbidden" in as_agent(lab, bound, "get", "nodes")
    assert "forbidden" in as_agent(lab, bound, "get", "secrets", "-n", NAMESPACE)


def test_rights_are_those_that_are_used(lab):
    """What is granted, by the roles that are bound; what is used, by the API server's audit log, after the tests above."""
    granted = set()
    for kind, namespace in (("clusterrole", None), ("role", "default")):
        where = ["-n", namespace] if namespace else []
        for rule in lab.get(kind, "npuops-node-agent", *where)["rules"]:
            granted |= {(verb, resource) for verb in rule["verbs"] for resource in rule["resources"]}
    used, refused = set(), []
    for line in (lab.state / "log" / "audit.log").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] != USER or not entry.get("userAgent", "").startswith("npuops-node-agent"):
            continue
        reference = entry["objectRef"]
        used.add((entry["verb"], "/".join(filter(None, (reference["resource"], reference.get("subresource"))))))
        if entry["responseStatus"]["code"] in (401, 403):
            refused.append(line)
    assert refused == []
    assert used == granted


def test_without_the_agent_the_plugin_talks_to_the_kubelet(lab):
    """And back again; a running pod does not notice."""
    create_pod(lab, "works", "npu-b", "exec sleep 900")
    container = wait_running(lab, "works")
    try:
        lab.playbook("install", npu_node_agent_enabled=False)
        assert lab.pods(NAMESPACE, labelSelector=AGENT) == []
        for node in NODES:
            assert {DRIVER, CHIPS}.isdisjoint(one["type"] for one in lab.node(node)["status"]["conditions"]), node
        for node in NODES:
            wait_allocatable(lab, node)
        sockets = lab.ssh("npu-b", "ls /var/lib/kubelet/device-plugins").stdout.split()
        assert "Ascend910.sock" in sockets and not [name for name in sockets if name.startswith("npuops")]
        create_pod(lab, "direct", "npu-b", "ls /dev; ls /usr/local/Ascend")
        lab.wait_for(lambda: pod_status(lab, "direct")["phase"] in ("Succeeded", "Failed"), PATIENCE, "the pod ends")
        text = lab.last_log("direct", TEAM)
        assert len(devices(text)) == 1 and "No such file" in text
        kinds = ("clusterrole", "clusterrolebinding", "validatingadmissionpolicy", "validatingadmissionpolicybinding")
        assert not [
            line for kind in kinds for line in lab.kubectl("get", kind, "-o", "name").split() if "npuops-node-agent" in line
        ]
    finally:
        lab.playbook("install", **QUICK)
    create_pod(lab, "bridged", "npu-b", LOOK)
    assert len(addresses(output(lab, "bridged"))) == 1
    assert pod_status(lab, "works")["containerStatuses"][0]["containerID"] == container
