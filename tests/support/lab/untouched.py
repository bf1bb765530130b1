# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must not change on a node without a chip. `python -m support.lab.untouched NODE FILE` writes it down."""

from __future__ import annotations

import json
import os
import pathlib
import sys

from support.lab.lab import Lab
from support.paths import CHECKOUT

# What a running node changes by itself: pods, images, the clock's and systemd's own notes.
VOLATILE = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/lib/systemd")


def untouched_state(lab: Lab, node: str) -> dict:
    """Return the files of a host (type, mode, owner, size, time, link target of each) and what its Node object says."""
    prune = " -o ".join(f"-path {path}" for path in VOLATILE)
    listing = lab.ssh(
        node, f"find /etc /usr /opt /srv /var/lib -xdev \\( {prune} \\) -prune -o -printf '%p %y %m %U:%G %s %T@ %l\\n' | sort"
    ).stdout.splitlines()
    found = lab.node(node)
    return {
        "files": listing,
        "labels": found["metadata"]["labels"],
        "annotations": found["metadata"]["annotations"],
        "spec": found["spec"],
        "capacity": found["status"]["capacity"],
        "allocatable": found["status"]["allocatable"],
    }


if __name__ == "__main__":
    running = Lab(pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab"))
    pathlib.Path(sys.argv[2]).write_text(json.dumps(untouched_state(running, sys.argv[1])), encoding="utf-8")
