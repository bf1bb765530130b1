# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook takes whose hosts are those of rollout_hosts.py: time, CPU, and the memory of its whole process tree."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "tests"))

from support import collection  # noqa: E402, F401  (makes the checkout importable)

# isort: split
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import bounded  # noqa: E402
from rollout_cluster import RUN, Cluster  # noqa: E402

from support.fleet.hosts import NEW  # noqa: E402
from support.host.registry_server import Registry  # noqa: E402

REPOSITORY, PROFILE = "mlops/ascend-driver", "910b-6.6.0-145.0.4.135-oe2403sp3"


def publish(registry: Registry) -> str:
    """The digest of a driver image for these hosts, which is in the registry now."""
    layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:" + "ab" * 32, "size": 2**20}
    return registry.put_manifest(REPOSITORY, f"{NEW}-{PROFILE}", {"schemaVersion": 2, "layers": [layer]})


def write_inventory(directory: pathlib.Path, cluster: Cluster, registry: Registry, names: list[str]) -> None:
    """Write the inventory that `run` takes."""
    variables = {
        "ansible_connection": "bench_host",
        "ansible_python_interpreter": "/usr/bin/python3",
        "npu_kubernetes_auth": {"host": cluster.address, "api_key": RUN, "ca_cert": str(cluster.ca)},
        "npu_driver_repository": f"{registry.address}/{REPOSITORY}",
        "npu_registry_plain_http": True,
        "npu_upgrade_components": False,
    }
    group = {"hosts": {name: {"npu_node_name": name} for name in names}, "vars": variables}
    (directory / "hosts.json").write_text(json.dumps({"npu_nodes": group}), encoding="utf-8")


def playbook(name: str, **variables: object) -> list[str]:
    return ["ansible-playbook", "npuops.ascend." + name, "-e", json.dumps(variables)]


class Tree:
    """Samples the memory of a process with its descendants, where a page that forks share counts once."""

    def __init__(self, process: int) -> None:
        self.peak = 0.0  # megabytes
        self._process, self._ended = process, threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(1):
            self.peak = max(self.peak, sum(map(_megabytes, [self._process, *bounded.descendants(self._process)])))


def _megabytes(process: int) -> float:
    try:
        lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def run(directory: pathlib.Path, name: str, command: list[str], forks: int) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and megabytes of a command of Ansible, whose inventory is in the ``directory``, and its output
    then, as ``name``."""
    environ = {
        **os.environ,
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_CONNECTION_PLUGINS": str(CHECKOUT / "bench" / "plugins" / "connection"),
        "ANSIBLE_FORKS": str(forks),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [*command, "-i", str(directory / "hosts.json")]
    with open(directory / (name + ".txt"), "wb") as output:
        begun = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environ, cwd=CHECKOUT
        )
        tree = Tree(process.pid)
        _pid, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        tree.end()
    return wall, usage.ru_utime + usage.ru_stime, tree.peak
