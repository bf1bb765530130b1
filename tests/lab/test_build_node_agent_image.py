# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/build_node_agent_image.yml as a user runs it, with what the lab has built its own image of."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def build(lab, tmp_path):
    """Run the playbook with changed variables; returns (exit status, all that was printed)."""
    variables = json.loads((lab.state / "agent-image.json").read_text(encoding="utf-8"))

    def run(*arguments, check=True, settings=None, **changes):
        changed = {
            **variables,
            **changes,
            "npu_node_agent_image_build": {**variables["npu_node_agent_image_build"], **(settings or {})},
        }
        file = tmp_path / "build.json"
        file.write_text(json.dumps(changed))
        command = ["ansible-playbook", "-i", "localhost,", "npuops.ascend.build_node_agent_image", "-e", f"@{file}", *arguments]
        done = lab.ansible(command, check=False)
        printed = done.stdout + done.stderr
        assert variables["npu_registry_password"] not in printed
        return done.returncode, printed

    return run


def test_the_lab_runs_the_image_that_it_builds(lab, build):
    """The image is reproducible: another build is the image in the registry, which the lab's nodes run."""
    status, printed = build("--check", "-vvv")
    assert status == 0 and "changed=0" in printed, printed
    digest = printed.rpartition(f"msg: {lab.variable('npu_node_agent_image')}@")[2].split()[0]
    assert digest.startswith("sha256:")


def test_check_mode_pushes_nothing(lab, build):
    other = f"{lab.variable('npu_node_agent_image')}-checked"
    for _attempt in range(2):
        status, printed = build("--check", npu_node_agent_image=other)
        assert status == 0 and "changed=1" in printed, printed


@pytest.mark.parametrize(
    "settings, changes, text",
    [
        ({"architectures": ["arm64"]}, {}, "is for linux/amd64, not for linux/arm64. Set base to an index with both"),
        ({"wheels": "/nowhere"}, {}, "The directory with wheels, /nowhere, cannot be read"),
        ({"bases": "x"}, {}, "bases"),
        ({}, {"npu_registry_password": "wr0ng-one"}, "Check npu_registry_username and npu_registry_password"),
        ({}, {"npu_node_agent_image": "r.example/Agent:1"}, "is not a valid image reference"),
    ],
)
def test_bad_input(build, settings, changes, text):
    status, printed = build("-vvv", settings=settings, **changes)
    assert status != 0 and text in " ".join(printed.split()), printed[-3000:]
    assert "wr0ng-one" not in printed
