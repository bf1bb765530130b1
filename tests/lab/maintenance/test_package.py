# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrades by packages: what holds for images holds for them."""

from __future__ import annotations

import os
import pathlib

from support.host.file_server import FileServer
from support.lab.observer import STATE
from support.lab.packages import settings
from support.lab.rollout import OTHER, ROOT, TAKEOVER, last, make_driver, proof, upgrade, version_of, watch

NODE, CHIP = "npu-a", "910b"
ACCOUNT = {"npu_driver_package_username": "reader", "npu_driver_package_password": "pA55word-of-this-test"}


def test_a_bad_package_returns_and_a_good_one_stays(idle, tmp_path):
    """From an image to a package whose driver does not load: back by itself. Then a good one, from a web server with an account."""
    make_driver(idle, "25.5.3", "load-fails")
    old = version_of(idle, NODE)
    with watch(idle) as observer:
        upgrade(idle, f"--limit={NODE}", expect=1, **settings(idle, CHIP, "25.5.3"))
    assert proof(idle, observer, {NODE: 2}, old, halted=True) == []
    assert last(idle, NODE)["outcome"] == "rolled-back" and "drv_pcie_host" in last(idle, NODE)["failure"]
    good = settings(idle, CHIP, OTHER[old])
    path = pathlib.Path(good["npu_driver_package"])
    # From an earlier run on the same lab: then nothing would be downloaded.
    idle.ssh(NODE, f"rm -rf {ROOT}/releases/*-{good['npu_driver_package_sha256'][:12]}")
    with FileServer({"/" + path.name: path.read_bytes()}, login=":".join(ACCOUNT.values())) as server:
        good["npu_driver_package"] = server.url("/" + path.name)
        environment = {"XDG_CACHE_HOME": str(tmp_path)}
        text = upgrade(
            idle,
            f"--limit={NODE}",
            "-vvv",
            environment=environment,
            npu_upgrade_clear_halt=True,
            npu_upgrade_retry=True,
            **good,
            **ACCOUNT,
            **TAKEOVER,
        )
        asked = len(server.requests)
    assert version_of(idle, NODE) == OTHER[old] and STATE not in idle.node(NODE)["metadata"]["labels"]
    assert asked == 1 and ACCOUNT["npu_driver_package_password"] not in text
    release = os.path.basename(idle.ssh(NODE, f"readlink -f {ROOT}/driver/..").stdout.strip())
    assert release.endswith(good["npu_driver_package_sha256"][:12])
