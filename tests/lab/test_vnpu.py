# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chips that are divided into virtual NPUs by npu_vnpu: what the node offers and a pod gets, while which nothing changes; and back to
whole chips. Everything else is molecule's scenario vnpu."""

from __future__ import annotations

import pytest

from support.lab.vnpus import DIVIDED, FOURS, HALVES, LIMIT, NODE, QUARTERS, THREES, WHOLE, offered, serves, words
from support.lab.workloads import DUO, Team

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module", name="team")
def fixture_team(lab):
    with Team(lab, "vnpu-test") as team:
        yield team
    lab.playbook("install", LIMIT, npu_vnpu=[])
    assert (offered(lab), serves(lab)) == (WHOLE, True)


def test_divided_chips(lab, team):
    result = lab.playbook("install", LIMIT, npu_vnpu=HALVES)
    assert "its virtual NPUs change: 2 vir04, 2 vir04_3c on chip 0, 1 instead of whole chips" in words(result.stdout)
    assert (offered(lab), serves(lab)) == (DIVIDED, True)
    assert f"2 {DUO}, 2 {FOURS}, 2 {THREES}" in result.stdout and "npu_vnpu asks for" not in result.stdout


def test_a_pod_gets_its_virtual_npu_and_keeps_it(lab, team):
    team.deploy("half", node=NODE, chips={FOURS: 1})
    (pod,) = team.pods("half")
    inside = lab.kubectl(
        "exec", "-n", team.name, pod["metadata"]["name"], "--", "sh", "-c", "cd /dev; stat -c '%n %t:%T' davinci[0-9]*"
    )
    name, number = inside.split()
    assert name in ("davinci100", "davinci116")
    assert lab.ssh(NODE, f"stat -c %t:%T /dev/v{name}").stdout.strip() == number
    refused = lab.playbook("install", LIMIT, check=False, npu_vnpu=QUARTERS)
    assert refused.returncode != 0 and f"pods use its NPUs: {team.name}/{pod['metadata']['name']}" in words(refused.stdout)
    assert (offered(lab), serves(lab)) == (DIVIDED, True)
    lab.kubectl("delete", "deployment", "half", "-n", team.name)
    lab.kubectl("wait", "--for=delete", "pods", "--all", "-n", team.name, "--timeout=120s")
