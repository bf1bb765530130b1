# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a node before install, which uninstall must restore. `python -m support.lab.leftovers NODE...` writes it down."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
from collections.abc import Iterable

from support.lab.lab import Lab
from support.paths import CHECKOUT

NODES = ("npu-a", "npu-b", "npu-c", "cpu-a")
PLACES = "/etc /usr /opt /srv /user /var/lib /lib /run/npuops"
# What a running node changes by itself, and what install says it leaves: users, and who belongs to which group.
VOLATILE = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/lib/systemd")
LEFT = re.compile(
    r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|/etc/\.(pwd\.lock|updated)$|/var/\.updated$"
    r"|/etc/ld\.so\.cache$|/run/npuops(/driver-loading)?$|/var/lib/(dbus|private)\b|/etc/npusim\b|/etc/machine-id$"
    r"|/opt/Ascend$|/opt/Ascend/toolbox\b"  # the lab's ToolBox
)

# What MindCluster's device plugin writes on a Node, by itself and for good.
PLUGINS = re.compile(
    r"node\.kubernetes\.io/npu\.chip\.name|servertype|mind-cluster/|infer-card-type|huawei\.com/driver\.version|baseDeviceInfos|superPodID"
    r"|serverIndex|serverType|volumes\.kubernetes\.io/|node\.alpha\.kubernetes\.io/"
)


def record(lab: Lab, node: str) -> pathlib.Path:
    """Where the state before install is kept: it ends with the lab."""
    return lab.state / "before-install" / f"{node}.json"


def files(lab: Lab, node: str) -> dict[str, str]:
    """Path -> type, mode, owner, link target and, for files, size."""
    prune = " -o ".join(f"-path {path}" for path in VOLATILE)
    listing = lab.ssh(
        node,
        f"find {PLACES} -xdev \\( {prune} \\) -prune -o -type f -printf '%p\\t%y %m %U:%G %s\\n'"
        " -o -printf '%p\\t%y %m %U:%G %l\\n' 2>/dev/null",
        check=False,
    ).stdout.splitlines()
    found = dict(line.split("\t", 1) for line in listing)
    return {path: text for path, text in found.items() if not LEFT.search(path)}


def state(lab: Lab, node: str) -> dict:
    """Files of the host, labels and annotations of its Node."""
    metadata = lab.node(node)["metadata"]
    return {"files": files(lab, node), "labels": metadata["labels"], "annotations": metadata.get("annotations", {})}


def remember(lab: Lab, nodes: Iterable[str] = NODES) -> None:
    """Write down the state of nodes on which nothing was installed yet."""
    for node in nodes:
        if lab.ssh(node, "test -e /var/lib/npuops", check=False).returncode != 0:
            record(lab, node).parent.mkdir(exist_ok=True)
            record(lab, node).write_text(json.dumps(state(lab, node)), encoding="utf-8")


def assert_gone(lab: Lab, node: str) -> None:
    """By name, and by comparison with what was recorded before the first install, where it was."""
    now = state(lab, node)
    ours = [path for path in now["files"] if re.search(r"npuops|Ascend|ascend|npu-driver|huawei|davinci", path)]
    assert ours == [], ours
    labels = {key for key in {**now["labels"], **now["annotations"]} if not PLUGINS.match(key)}
    assert not [key for key in labels if re.search(r"npu|ascend|accelerator|workerselector|host-arch", key)], labels
    conditions = [one["type"] for one in lab.node(node)["status"]["conditions"]]
    assert "Ready" in conditions and not [kind for kind in conditions if kind.startswith("npuops")], conditions
    path = record(lab, node)
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        assert len(before["files"]) > 1000, "the record is empty: nothing would be proved"
        assert now["files"] == before["files"]
        assert labels == {key for key in {**before["labels"], **before["annotations"]} if not PLUGINS.match(key)}


if __name__ == "__main__":
    remember(Lab(pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab")), sys.argv[1:])
