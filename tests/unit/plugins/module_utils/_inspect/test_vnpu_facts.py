# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import stat

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_change, vnpu_record
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_record import Record

from support.host.fake_host import add_process
from support.host.vnpu_smi import VnpuSmi, two_310p

ONE = [{"chips": [1], "templates": {"vir04": 1}}]
NEW = {"chip": 1, "id": 116, "template": "vir04"}
NOTHING = {"changed": False, "target": [], "destroy": [], "create": [], "problem": None}


@pytest.fixture
def host(tmp_path):
    return two_310p(tmp_path)


@pytest.fixture
def smi(host):
    return VnpuSmi(host / "tree", host / "dev")


def program(host):
    return NpuSmi(str(host / "tree"), lock=str(host / "run/npuops/npu-smi.lock"))


def told(host, layout):
    return host_facts.vnpu_facts(layout, program(host), str(host))


def test_what_would_change(host, smi):
    assert told(host, ONE) == dict(NOTHING, changed=True, target=[NEW], create=[NEW])
    vnpu_change.Layout(ONE, program(host), fs=str(host)).apply()
    assert told(host, ONE) == dict(NOTHING, target=[NEW])
    assert told(host, []) == dict(NOTHING, changed=True, destroy=[NEW])
    smi.has()
    assert told(host, ONE) == dict(NOTHING, changed=True, target=[NEW], create=[NEW]), "recorded, and gone"


def test_why_not(host, smi):
    assert "vir04, vir04 need 8 AICPU" in told(host, {"vir04": 2})["problem"]
    assert "no layout" in told(host, "half")["problem"]
    smi.has((0, 103, "vir02"))
    assert "not in its layout" in told(host, ONE)["problem"]
    assert not smi.changes


def test_without_a_driver_nobody_knows(host, smi):
    for number in range(2):
        (host / "dev" / ("davinci%d" % number)).unlink()
    assert told(host, ONE) is None
    assert smi.state["calls"] == []


def test_after_an_uninstall_nobody_knows(host, smi, monkeypatch):
    """The modules are loaded still, and npu-smi is gone: install brings it."""

    def program(_self):
        raise NpuError("This host has no npu-smi")

    monkeypatch.setattr(NpuSmi, "program", program)
    assert told(host, ONE) is None


@pytest.mark.parametrize(
    ("chip", "group", "problem"),
    [
        (1, "0::/user.slice\n", True),
        # Pods are the cluster's business; and chip 0 does not change.
        (1, "0::/kubepods.slice/kubepods-burstable.slice/x\n", False),
        (0, "0::/user.slice\n", False),
    ],
)
def test_who_uses_a_chip_that_changes(host, smi, chip, group, problem):
    node = host / "dev" / ("davinci%d" % chip)
    node.unlink()
    os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(237, chip))
    add_process(str(host), 100, "python", "python", "train.py", cgroup=group, exe="/usr/bin/python")
    (host / "proc/100/fd").mkdir(exist_ok=True)
    (host / "proc/100/fd/3").symlink_to(node)
    found = told(host, ONE)["problem"]
    assert found == (
        "processes that belong to no pod use the chips whose virtual NPUs change: python train.py (PID 100, davinci1). Stop them"
        if problem
        else None
    )


def test_a_record_of_an_interrupted_change_is_one(host):
    """A run that removes everything has something to do, even if the host is to have no virtual NPU."""

    def told_of_the_record():
        facts = host_facts.gather(fs=str(host))
        return facts["vnpus"], facts["vnpu_record"]

    assert told_of_the_record() == ([], False)
    vnpu_record.write(Record([], [Vnpu(**NEW)]), str(host))
    assert told_of_the_record() == ([], True)
    (host / vnpu_record.PATH.strip("/")).write_text("damaged\n", encoding="utf-8")
    assert told_of_the_record() == ([], True)
