# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a runtime has started, by what containerd keeps of its containers."""

from __future__ import annotations

import json
from types import SimpleNamespace

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import containers

PROGRAM = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"


def bundle(top, name, program, environment, config=None):
    place = top / "io.containerd.runtime.v2.task" / "k8s.io" / name
    place.mkdir(parents=True)
    (place / "options.json").write_text(json.dumps({"binary_name": program}))
    (place / "config.json").write_text(config or json.dumps({"process": {"env": environment}}))


def test_users(tmp_path):
    assert containers.of(PROGRAM, SimpleNamespace(pid=1, state=str(tmp_path))) == ([], [])
    bundle(tmp_path, "a-chips", PROGRAM, ["PATH=/", "ASCEND_VISIBLE_DEVICES=0,1"])
    bundle(tmp_path, "b-void", PROGRAM, ["ASCEND_VISIBLE_DEVICES=0", "ASCEND_VISIBLE_DEVICES=void"])
    bundle(tmp_path, "c-none", PROGRAM, ["PATH=/"])
    bundle(tmp_path, "d-runc", "", ["ASCEND_VISIBLE_DEVICES=0"])
    bundle(tmp_path, "e-unknown", PROGRAM, [], "[")
    found = containers.of(PROGRAM, SimpleNamespace(pid=1, state=str(tmp_path)))
    assert found.all == ["a-chips", "b-void", "c-none", "e-unknown"] and found.with_chips == ["a-chips", "e-unknown"]
