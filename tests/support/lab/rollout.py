# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrades on the lab, as tests start them: in a process that can be killed, with the gate around it, with an observer."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator

import yaml

from support.crash.api_proxy import ApiProxy
from support.crash.gate import Controller, Gate, GateSocket
from support.lab.lab import Lab
from support.lab.observer import (
    APPROVAL,
    COMPONENTS,
    CONDITIONS,
    LAST,
    LEASE,
    REBOOT_REQUIRED,
    RECORD,
    REQUESTED,
    STATE,
    Observer,
    left_behind,
)
from support.paths import CHECKOUT
from support.patience import PATIENCE, RUN_PATIENCE

NPU_NODES = ("npu-a", "npu-b", "npu-c")
NAMESPACE = "npu-operator"
FENCE = "/var/lib/npuops/maintenance"
ROOT = "/var/lib/Ascend"
# Two good releases; an upgrade goes from one to the other, in either direction.
OTHER = {"25.5.0": "25.5.1", "25.5.1": "25.5.0"}
# A record is taken over after 90 s without a heartbeat. After a kill no run is left, so the tests need not wait as long.
TAKEOVER = {"npu_upgrade_heartbeat_limit": 1}


class Run:
    """A run of a playbook that can be killed and cut off. `hosts`: node -> its address, for `ssh.lost`."""

    def __init__(self, controller: Controller, gate: Gate, ssh: GateSocket) -> None:
        self.controller, self.gate, self.ssh = controller, gate, ssh

    @property
    def text(self) -> str:
        return self.controller.text

    def wait(self, timeout: float = RUN_PATIENCE) -> int:
        """Its exit status."""
        return self.controller.wait(timeout)


@contextlib.contextmanager
def run(
    lab: Lab,
    *arguments: str,
    playbook: str = "upgrade",
    gate: Gate | None = None,
    inventory: pathlib.Path | None = None,
    environment: dict[str, str] | None = None,
    **variables: object,
) -> Iterator[Run]:
    """Start a playbook; whatever is left of it at the end is killed.

    :param gate: counts its mutating calls, and may kill it or cut it off
    :param inventory: instead of the lab's own
    :param environment: variables to add to its environment
    :param variables: extra variables; unless they say otherwise no approval is asked for
    """
    gate = gate or Gate()
    with contextlib.ExitStack() as stack:
        # Short: sockets live here, and their paths may have a hundred characters.
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="npu-")))
        proxy = stack.enter_context(ApiProxy(lab.controller_kubeconfig, directory, gate))
        ssh = stack.enter_context(GateSocket(gate, directory))
        values = {"npu_upgrade_auto": True, "npu_kubernetes_auth": {"kubeconfig": str(proxy.kubeconfig)}, **variables}
        command = [
            "ansible-playbook",
            "-i",
            str(inventory or lab.inventory),
            f"npuops.ascend.{playbook}",
            "-e",
            json.dumps(values),
            *arguments,
        ]
        environ = {
            **os.environ,
            **ssh.environment,
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "PATH": f"{CHECKOUT}/.venv/bin:{os.environ['PATH']}",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(directory / "cp"),
            **(environment or {}),
        }
        environ.pop("PYTHONUNBUFFERED", None)  # what is seen while it runs is seen without
        controller = Controller(command, directory / "log", environ, CHECKOUT)
        gate.kill = controller.kill
        try:
            yield Run(controller, gate, ssh)
        except BaseException:
            print(controller.text[-6000:])  # pytest shows it with the failure
            raise
        finally:
            controller.kill()


def upgrade(lab: Lab, *arguments: str, expect: int | None = 0, **variables: object) -> str:
    """Run upgrade (or another playbook) to its end; its output."""
    with run(lab, *arguments, **variables) as one:
        status = one.wait()
        assert expect is None or (status == 0) == (expect == 0), f"exit status {status}\n{one.text[-6000:]}"
        return one.text


class LabObserver(Observer):
    """It also knows how often the hosts had booted when it started: `boots`."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.kubeconfig, NAMESPACE)
        self.boots = host_boots(lab)


def watch(lab: Lab) -> LabObserver:
    return LabObserver(lab)


def make_driver(lab: Lab, version: str, kind: str | None = None, firmware: str | None = None, kernel: str | None = None) -> None:
    """Put a driver into the registry, a good one, or one that is no good in the way that lab/fault calls `kind`; with firmware.

    :param kernel: the kernel that it is for, instead of the machine's
    """
    options = ["--firmware", firmware] if firmware else []
    options += ["--kernel", kernel] if kernel else []
    lab._run([str(CHECKOUT / "lab" / "driver-image"), *options, version, *([kind] if kind else [])])


# --- what hosts say ---


def version_of(lab: Lab, node: str) -> str:
    """The version of the driver the host's link `driver` names."""
    text = lab.ssh(node, f"cat {ROOT}/driver/version.info").stdout
    return next(line.partition("=")[2].strip() for line in text.splitlines() if line.lower().startswith("version="))


def host_boots(lab: Lab) -> dict[str, int]:
    """How often each NPU host has booted, as its own wtmp has it. One that does not answer is left out."""
    result = {}
    for node in NPU_NODES:
        listed = lab.ssh(node, "last -w reboot", check=False)
        if listed.returncode == 0:
            result[node] = sum(line.startswith("reboot ") for line in listed.stdout.splitlines())
    return result


def left_on_host(lab: Lab, node: str) -> list[str]:
    """What a finished maintenance must not leave on the host, as sentences."""
    found = lab.ssh(node, f"ls -d {ROOT}/next /run/npuops/maintenance 2>/dev/null; true").stdout.split()
    links = lab.ssh(node, f"readlink {ROOT}/driver {ROOT}/good").stdout.split()
    result = [f"{node} still has {path}" for path in found]
    if len(links) != 2 or links[0] != links[1]:
        result.append(f"{node}: driver and good are {' and '.join(links)}")
    if not lab.ssh(node, "test -e /run/npuops/driver-ready", check=False).returncode == 0:
        result.append(f"{node}: the driver is not ready")
    return result


def proof(
    lab: Lab,
    observer: LabObserver,
    reboots: dict[str, int],
    version: str | None = None,
    max_parallel: int = 1,
    halted: bool = False,
    unasked: tuple[str, ...] = (),
    only: str | None = None,
) -> list[str]:
    """Everything that must be true after a rollout that has come to its end, as sentences about what is not.

    :param reboots: node -> how often it has to have rebooted
    :param version: what those nodes end on; None: what they had
    :param halted: whether the rollout has to be halted now
    :param only: look at this node alone, others are being worked on
    """
    observer.catch_up()
    result = observer.problems(max_parallel, reboots, unasked, only)
    nodes = {name: node for name, node in observer.now("node").items() if only in (None, name)}
    behind = left_behind(nodes.values(), observer.now("lease").get(LEASE))
    if only:
        behind = [line for line in behind if "the Lease names" not in line or f" {only} " in line]
    if halted:
        told = [line for line in behind if "says halted" in line]
        result += [] if told else ["the rollout is not halted"]
        # The failed node says so, and those that the run did not reach stay due.
        expected = (f"{STATE}=upgrade-failed", f"{STATE}=upgrade-required")
        behind = [line for line in behind if line not in told and not line.endswith(expected)]
    result += behind
    before = {sight.name: sight for sight in observer.timeline if sight.first and sight.kind == "node"}
    for name, node in nodes.items():
        if name in before and node.cordoned != before[name].cordoned:
            result.append(f"{name} was {'cordoned' if before[name].cordoned else 'schedulable'} and is not any more")
    boots = host_boots(lab)
    for name, times in reboots.items():
        result += left_on_host(lab, name)
        if boots.get(name, 0) - observer.boots.get(name, 0) != times:
            result.append(f"{name} has booted {boots.get(name, 0) - observer.boots.get(name, 0)} times by its own wtmp")
        if version and version_of(lab, name) != version:
            result.append(f"{name} is on {version_of(lab, name)}, not on {version}")
        if version and nodes[name].labels.get("npuops.ascend/driver-version") != version:
            result.append(f"{name}: the label says {nodes[name].labels.get('npuops.ascend/driver-version')}, not {version}")
    return result


def reset(lab: Lab) -> None:
    """Bring every NPU node back to where a test may begin, whatever the last one left: healthy, idle, without a maintenance."""
    for node in NPU_NODES:
        lab.fault(node, "clear")
    labels = [f"{key}-" for key in (STATE, REBOOT_REQUIRED, REQUESTED, "npuops.ascend/skip", "npuops.ascend/keep-cordoned")]
    for node in NPU_NODES:
        lab.wait_for(lambda node=node: lab.ssh(node, "true", check=False).returncode == 0, 120, f"{node} answers on SSH", 0.5)
        boot = lab.ssh(node, "cat /proc/sys/kernel/random/boot_id").stdout.strip()
        lab.wait_for(lambda node=node, boot=boot: ready(lab, node, boot), 120, f"{node} is ready in boot {boot}", 0.5)
        # The Node forgets its maintenances below; a host that remembered them would not take an approval that was given before a run.
        lab.ssh(node, f"rm -f {ROOT}/next /run/npuops/maintenance {FENCE}")
        if lab.ssh(node, f"test {ROOT}/driver -ef {ROOT}/good", check=False).returncode != 0:
            reboot(lab, node)  # an unconfirmed trial ends
        lab.kubectl("label", "node", node, *labels, f"{COMPONENTS}=enabled", "--overwrite")
        lab.kubectl("annotate", "node", node, f"{RECORD}-", f"{APPROVAL}-", f"{LAST}-")
        lab.kubectl("uncordon", node)
        conditions = [{"type": kind, "$patch": "delete"} for kind in CONDITIONS]
        patch = json.dumps({"status": {"conditions": conditions}})
        lab.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", f"--patch={patch}")
    lab.kubectl("delete", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found")


def reboot(lab: Lab, node: str) -> None:
    """Reboot a host as its administrator would, and wait until the cluster knows and it answers."""
    before = lab.ssh(node, "cat /proc/sys/kernel/random/boot_id").stdout.strip()
    lab.ssh(node, "systemctl reboot", check=False)
    lab.wait_for(
        lambda: (found := lab.node(node)["status"]["nodeInfo"]["bootID"]) != before and ready(lab, node, found),
        180,
        f"{node} is back",
        0.5,
    )
    lab.wait_for(lambda: lab.ssh(node, "true", check=False).returncode == 0, 60, f"{node} answers on SSH")


def ready(lab: Lab, node: str, boot: str) -> bool:
    status = lab.node(node)["status"]
    return status["nodeInfo"]["bootID"] == boot and any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status["conditions"]
    )


def target(lab, *nodes: str) -> str:
    """A version that none of the nodes has; they are brought to the same one first if they differ."""
    versions = {version_of(lab, node) for node in nodes}
    if len(versions) > 1:
        upgrade(lab, "--limit=" + ",".join(nodes), npu_driver_version="25.5.0", npu_upgrade_max_parallel=0)
        return OTHER["25.5.0"]
    return OTHER[versions.pop()]


def slots(lab) -> dict:
    lease = lab.kubectl("get", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found", "-o", "json")
    return (
        json.loads(json.loads(lease)["metadata"]["annotations"]["npuops.ascend/slots"])
        if lease
        else {"holders": {}, "halted": None}
    )


def at_step(observer, node: str, *steps: str):
    """Wait until the record of a node says one of these steps."""
    return observer.wait(
        lambda sight: (
            sight.kind == "node" and sight.name == node and not sight.gone and bool(sight.record) and sight.record["step"] in steps
        ),
        PATIENCE,
        f"{node} at {' or '.join(steps)}",
    )


def last(lab, node: str) -> dict:
    return json.loads(lab.node(node)["metadata"]["annotations"].get(LAST, "{}"))


def address(lab, node: str) -> str:
    return yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))["npu_nodes"]["hosts"][node]["ansible_host"]


def untouched(observer, *nodes: str) -> list[str]:
    """The nodes that were cordoned, got a record or another boot, although they must not."""
    first = {sight.name: sight for sight in observer.timeline if sight.first and sight.kind == "node"}
    return sorted(
        {
            sight.name
            for sight in observer.timeline
            if sight.kind == "node"
            and sight.name in nodes
            and (sight.record or sight.cordoned or sight.boot_id != first[sight.name].boot_id)
        }
    )
