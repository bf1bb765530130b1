# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes: podman containers with systemd, sshd, containerd and kubelet, filled before they boot."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from . import binaries, network, rootfs, simulation
from .files import digest, write
from .pki import user_kubeconfig
from .podman import containers, podman, volumes
from .settings import GO_RUNTIME, LAB_SOURCE, PAUSE_IMAGE, Lab, Node
from .tasks import Step

FILES = LAB_SOURCE / "files"
VOLUMES = ("containerd", "kubelet")  # overlayfs cannot lie on overlayfs, and the kubelet wants mounts of its own
BOOT_TIMEOUT = 90
READY_TIMEOUT = 120
REMOVE_TIMEOUT = 60


def start_node(lab: Lab, node: Node, step: Step) -> None:
    """Make the node unless it exists complete, boot it unless it runs, wait until SSH and containerd answer."""
    name = lab.container(node)
    made = _directory(lab, node) / "made"  # written last: without it the node is a leftover of a killed `up`
    state = containers(lab).get(name)
    if state is None or not made.exists():
        made.unlink(missing_ok=True)
        remove_node(lab, node, step)
        _make(lab, node, step)
        write(made, "")
        state = "created"
    if node.immutable:
        _mount_usr(lab, node, step)
    if state != "running":
        step.say("booting")
        podman(step, "start", name)
    step.wait_for("sshd", lambda: ssh_answers(lab, node), BOOT_TIMEOUT)
    step.wait_for("containerd", lambda: _inside(lab, node, step, "ctr", "version").returncode == 0, BOOT_TIMEOUT, 0.5)
    _load_pause_image(lab, node, step)


def wait_ready(lab: Lab, step: Step) -> None:
    """Wait until the API calls every node Ready, and means the boot that the node is in (Ready alone may be stale)."""
    boots = {node.name: _inside(lab, node, step, "cat", "/proc/sys/kernel/random/boot_id").stdout.strip() for node in lab.nodes}

    def all_ready() -> bool:
        seen = api_nodes(lab)
        return all(name in seen and seen[name].ready and seen[name].boot_id == boot for name, boot in boots.items())

    step.wait_for("Ready nodes", all_ready, READY_TIMEOUT, 0.5)


@dataclass(frozen=True)
class ApiNode:
    """What the API says of a node."""

    ready: bool
    boot_id: str
    runtime: str
    kubelet: str


def api_nodes(lab: Lab) -> dict[str, ApiNode]:
    """The API's nodes by name; none when the API does not answer."""
    if not lab.kubectl.exists():
        return {}
    result = subprocess.run(
        [lab.kubectl, "--kubeconfig", lab.kubeconfig, "--request-timeout=5s", "get", "nodes", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        return {}
    return {
        item["metadata"]["name"]: ApiNode(
            ready=any(
                condition["type"] == "Ready" and condition["status"] == "True" for condition in item["status"].get("conditions", ())
            ),
            boot_id=item["status"].get("nodeInfo", {}).get("bootID", ""),
            runtime=item["status"].get("nodeInfo", {}).get("containerRuntimeVersion", ""),
            kubelet=item["status"].get("nodeInfo", {}).get("kubeletVersion", ""),
        )
        for item in json.loads(result.stdout)["items"]
    }


def ssh_answers(lab: Lab, node: Node) -> bool:
    try:
        with socket.create_connection((lab.node_address(node), 22), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def remove_node(lab: Lab, node: Node, step: Step) -> None:
    """Remove the node's container, volumes and mount, whatever there is of them."""
    if lab.container(node) in containers(lab):
        # On a busy machine its processes do not end in the time that podman gives them.
        remove = ("rm", "--force", "--ignore", "--time", "2", lab.container(node))
        step.wait_for("its end", lambda: podman(step, *remove, check=False).returncode == 0, REMOVE_TIMEOUT, 1)
    for volume in volumes(lab):
        if volume in (_volume(lab, node, name) for name in VOLUMES):
            podman(step, "volume", "rm", "--force", volume)
    if _usr(lab, node).is_mount():
        step.run("umount", _usr(lab, node))


def _make(lab: Lab, node: Node, step: Step) -> None:
    step.say("making the container")
    mounts = [f"{_volume(lab, node, name)}:/var/lib/{name}" for name in VOLUMES]
    if node.immutable:
        _usr(lab, node).mkdir(parents=True, exist_ok=True)
        mounts.append(f"{_usr(lab, node)}:/usr:ro")
    else:
        mounts += [f"{program}:/usr/bin/{program.name}:ro" for program in _programs(lab, node)]
    podman(
        step,
        "create",
        "--name",
        lab.container(node),
        "--hostname",
        node.name,
        "--restart=always",
        # cgroups and systemd: see README.md, "Traps"
        "--privileged",
        "--cgroupns",
        "private",
        "--systemd=false",
        "-e",
        "container=podman",
        "--stop-signal",
        "SIGRTMIN+3",
        "--ulimit",
        "nofile=20000:20000",
        "--ulimit",
        "nproc=4096:4096",
        "--tmpfs",
        "/run",
        "--tmpfs",
        "/run/lock",
        "--tmpfs",
        "/tmp:exec",
        "--network",
        f"ns:{network.namespace(lab, node)}",
        "--no-hosts",
        "--dns",
        "none",
        *(word for mount in mounts for word in ("--volume", mount)),
        rootfs.image(),
        "/lib/systemd/systemd",
    )
    root = Path(podman(step, "mount", lab.container(node)).stdout.strip())
    try:
        _fill(lab, node, root, step)
        if node.immutable:
            _make_usr(lab, node, root, step)
    finally:
        podman(step, "unmount", lab.container(node))


def _programs(lab: Lab, node: Node) -> list[Path]:
    """Programs that a distribution's packages would have put into /usr/bin."""
    kubernetes = binaries.programs(lab, binaries.kubernetes(lab))
    return [
        *(kubernetes / name for name in ("kubelet", "kube-proxy")),
        *sorted(binaries.programs(lab, binaries.containerd(lab.node_containerd(node))).iterdir()),
    ]


def _fill(lab: Lab, node: Node, root: Path, step: Step) -> None:
    """Everything in which this node's root differs from the image."""
    rootfs.copy_over(FILES / "node", root, step)
    rootfs.copy_over(simulation.root_files(lab), root, step)
    if not node.package_manager:
        rootfs.drop_package_manager(root)
    if not node.python:
        rootfs.drop_python(root)
    write(root / "usr/lib/os-release", (FILES / "os-release" / node.os_release).read_text(encoding="utf-8"))
    go_runtime = " ".join(f"{name}={value}" for name, value in GO_RUNTIME.items())
    write(root / "etc/systemd/system.conf.d/60-go.conf", f"[Manager]\nDefaultEnvironment={go_runtime}\n")
    write(root / "etc/npusim/hardware.json", json.dumps(simulation.hardware(node), indent=2) + "\n")
    write(root / "etc/machine-id", f"{uuid.uuid5(uuid.NAMESPACE_DNS, lab.container(node)).hex}\n", mode=0o444)
    names = "".join(f"{lab.node_address(other)} {other.name}\n" for other in lab.nodes)
    write(root / "etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{names}")
    _fill_ssh(lab, node, root)
    _fill_containerd(lab, node, root)
    _fill_kubernetes(lab, node, root)


def _fill_ssh(lab: Lab, node: Node, root: Path) -> None:
    key = lab.pki / f"ssh-host-{node.name}"
    write(root / "etc/ssh/ssh_host_ed25519_key", key.read_text(encoding="ascii"), mode=0o600)
    write(root / "etc/ssh/ssh_host_ed25519_key.pub", key.with_suffix(".pub").read_text(encoding="ascii"))
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    write(root / "root/.ssh/authorized_keys", (lab.pki / "ssh.pub").read_text(encoding="ascii"), mode=0o600)


def _fill_containerd(lab: Lab, node: Node, root: Path) -> None:
    major = lab.node_containerd(node).number.split(".", maxsplit=1)[0]
    template = (FILES / "containerd" / f"{major}.toml").read_text(encoding="utf-8")
    write(root / "etc/containerd/config.toml", template.replace("@PAUSE_IMAGE@", PAUSE_IMAGE))
    url = f"http://{lab.registry}"
    write(
        root / f"etc/containerd/certs.d/{lab.registry}/hosts.toml",
        f'server = "{url}"\n\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n',
    )
    pod_network = {
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": lab.pod_range(node)}]], "routes": [{"dst": "0.0.0.0/0"}]},
            }
        ],
    }
    write(root / "etc/cni/net.d/10-lab.conflist", json.dumps(pod_network, indent=2) + "\n")


def _fill_kubernetes(lab: Lab, node: Node, root: Path) -> None:
    directory = root / "etc/kubernetes"
    for user, name in ((f"kubelet-{node.name}", "kubelet.conf"), ("kube-proxy", "kube-proxy.conf")):
        write(directory / name, user_kubeconfig(lab, user).read_text(encoding="utf-8"), mode=0o600)
    write(directory / "pki/ca.crt", (lab.pki / "ca.crt").read_text(encoding="ascii"))
    for suffix, mode in (("crt", 0o644), ("key", 0o600)):
        text = (lab.pki / f"kubelet-{node.name}-server.{suffix}").read_text(encoding="ascii")
        write(directory / f"pki/kubelet.{suffix}", text, mode)
    write(directory / "kubelet.yaml", (FILES / "kubelet.yaml").read_text(encoding="utf-8").replace("@DNS@", lab.address))
    write(
        directory / "kubelet.env",
        # The resource usage of containers is not read.
        f"KUBELET_ARGS=--node-ip={lab.node_address(node)} --hostname-override={node.name} --housekeeping-interval=60s\n",
    )
    write(
        directory / "kube-proxy.yaml",
        (FILES / "kube-proxy.yaml").read_text(encoding="utf-8").replace("@POD_RANGE@", f"{lab.prefix}.0.0/16"),
    )


def _make_usr(lab: Lab, node: Node, root: Path, step: Step) -> None:
    """The squashfs of an immutable node: /usr of its filled root plus the programs, made once per combination."""
    parts = [rootfs.recipe(), digest(simulation.root_files(lab)), node.os_release, f"{node.python=}"]
    key = digest(*parts, *(str(program) for program in _programs(lab, node)))

    def fill(usr: Path) -> None:
        step.run("cp", "-a", f"{root / 'usr'}/.", f"{usr}/")
        for program in _programs(lab, node):
            shutil.copy2(program, usr / "bin" / program.name)

    image = rootfs.make_squashfs(lab, key, fill, step)
    write(_directory(lab, node) / "usr-image", str(image))


def _mount_usr(lab: Lab, node: Node, step: Step) -> None:
    if not _usr(lab, node).is_mount():
        image = (_directory(lab, node) / "usr-image").read_text(encoding="utf-8")
        step.run("mount", "-t", "squashfs", "-o", "loop,ro", image, _usr(lab, node))


def _load_pause_image(lab: Lab, node: Node, step: Step) -> None:
    """The image of every pod's sandbox; preloaded, because it is pulled without a pod's pull secrets."""
    ctr = ("ctr", "--namespace", "k8s.io", "images")
    if PAUSE_IMAGE in _inside(lab, node, step, *ctr, "list", "-q").stdout.split():
        return
    archive = simulation.image_archive(lab, "pause")
    podman(step, "cp", archive, f"{lab.container(node)}:/var/tmp/pause.tar")
    _inside(lab, node, step, *ctr, "import", "/var/tmp/pause.tar", check=True)


def _inside(lab: Lab, node: Node, step: Step, *command: str, check: bool = False) -> subprocess.CompletedProcess:
    return podman(step, "exec", lab.container(node), *command, check=check)


def _directory(lab: Lab, node: Node) -> Path:
    return lab.state / "nodes" / node.name


def _usr(lab: Lab, node: Node) -> Path:
    """Where the machine mounts the squashfs of an immutable node."""
    return _directory(lab, node) / "usr"


def _volume(lab: Lab, node: Node, name: str) -> str:
    return f"{lab.container(node)}-{name}"
