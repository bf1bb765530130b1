# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_change, vnpu_record
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_record import Record

from support.collection import python_of_a_host
from support.host.vnpu_smi import VnpuSmi, two_310p

HALVES = [{"templates": {"vir04": 1, "vir04_3c": 1}}]
ONE = [{"chips": [1], "templates": {"vir04": 1}}]
A, B = (0, 100, "vir04"), (0, 101, "vir04_3c")
C, D = (1, 116, "vir04"), (1, 117, "vir04_3c")

_APPLY = """
import ast, sys
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_change import Layout
fs = sys.argv[1]
Layout(ast.literal_eval(sys.argv[2]), NpuSmi(fs + "/tree", lock=fs + "/run/npuops/npu-smi.lock"), fs=fs).apply()
"""


@pytest.fixture
def host(tmp_path):
    return two_310p(tmp_path)


@pytest.fixture
def smi(host):
    return VnpuSmi(host / "tree", host / "dev")


def layout(host, wanted, **options):
    program = NpuSmi(str(host / "tree"), lock=str(host / "run/npuops/npu-smi.lock"))
    return vnpu_change.Layout(wanted, program, fs=str(host), **options)


def test_create_and_again(host, smi):
    plan = layout(host, HALVES).apply()
    assert smi.vnpus == [A, B, C, D] == [tuple(vnpu) for vnpu in plan.create]
    assert vnpu_record.read(str(host)) == Record([Vnpu(*entry) for entry in (A, B, C, D)], [])
    smi.change(calls=[])
    assert layout(host, HALVES).apply() == (plan.target, [], [], [])
    assert smi.changes == []


def test_change_of_one_chip(host, smi):
    layout(host, HALVES).apply()
    smi.change(calls=[])
    layout(
        host, [{"chips": [0], "templates": {"vir04": 1, "vir02": 1}}, {"chips": [1], "templates": {"vir04": 1, "vir04_3c": 1}}]
    ).apply()
    assert smi.vnpus == [A, (0, 102, "vir02"), C, D]
    assert smi.changes == ["set -t destroy-vnpu -i 40 -c 0 -v 101", "set -t create-vnpu -i 40 -c 0 -f vir02 -v 102"]


def test_none_again(host, smi):
    layout(host, HALVES).apply()
    layout(host, []).apply()
    assert smi.vnpus == []
    assert not os.path.exists(str(host) + vnpu_record.PATH)


def test_a_host_without_any_is_not_asked(host, smi):
    assert layout(host, []).apply() == ([], [], [], [])
    assert smi.state["calls"] == []


def test_check_mode_changes_nothing(host, smi):
    assert len(layout(host, HALVES).plan().create) == 4
    assert smi.vnpus == [] and not os.path.exists(str(host) + vnpu_record.PATH)


def test_too_many_cores(host, smi):
    for wanted, told in (
        ({"vir04": 2, "vir01": 1}, "vir01, vir04, vir04 need 9 AICORE, and chip 0 has 8"),
        ({"vir04": 2}, "vir04, vir04 need 8 AICPU, and chip 0 has 7. Templates of this chip: vir01 \\(1\\)"),
        ({"vir04_4c_dvpp": 1}, "chip 0 has no template vir04_4c_dvpp; npu-smi lists vir01, vir02"),
    ):
        with pytest.raises(NpuError, match=told):
            layout(host, [{"templates": wanted}]).apply()
    assert smi.changes == [] and not os.path.exists(str(host) + vnpu_record.PATH)


def test_both_chips_of_a_duo_or_none(host, smi):
    smi.change(duo=True)
    for function in (host / "sys/bus/pci/devices").iterdir():
        (function / "subsystem_device").write_text("0x0110\n", encoding="ascii")
    with pytest.raises(NpuError, match="layout: the chips 0 and 1 are on one Atlas 300I Duo, .*; only 1 would be"):
        layout(host, ONE).apply()
    assert smi.changes == []
    layout(host, HALVES).apply()
    with pytest.raises(NpuError, match="only 1 would be"):
        layout(host, ONE).apply()
    layout(host, []).apply()
    assert smi.vnpus == []


def test_leftovers(host, smi):
    smi.has((0, 103, "vir02"))
    with pytest.raises(NpuError, match="hold parts of their chips: 103 \\(vir02, chip 0\\).* -t destroy-vnpu -i 40 -c 0 -v 103"):
        layout(host, HALVES).apply()
    assert smi.changes == []
    plan = layout(host, HALVES, destroy_leftovers=True).apply()
    assert [vnpu.id for vnpu in plan.leftovers] == [103]
    assert smi.vnpus == [A, B, C, D]


def test_leftovers_without_a_layout_are_told_and_stay(host, smi):
    smi.has((0, 103, "vir02"))
    assert layout(host, [], destroy_leftovers=True).apply().leftovers == [Vnpu(0, 103, "vir02")]
    assert smi.vnpus == [(0, 103, "vir02")]


def test_what_fits_is_adopted(host, smi):
    smi.has((1, 119, "vir04"))
    layout(host, ONE).apply()
    assert smi.changes == []
    assert vnpu_record.read(str(host)).target == [Vnpu(1, 119, "vir04")]


def test_nothing_is_written_without_a_change(host, smi):
    layout(host, HALVES).apply()
    (host / "var/lib/npuops/vnpu").chmod(0o400)
    layout(host, HALVES).apply()
    assert (host / "var/lib/npuops/vnpu").stat().st_mode & 0o777 == 0o400


def test_in_use(host, smi):
    layout(host, HALVES).apply()
    smi.change(used=[117], calls=[])
    assert len(layout(host, ONE).plan(check_unused=False).destroy) == 3
    with pytest.raises(NpuError, match="in use: a container that uses virtual NPU 117 .*Cordon and drain the node"):
        layout(host, ONE).apply()
    assert smi.changes == []


def test_mode_of_virtual_machines(host, smi):
    smi.change(mode="VM")
    with pytest.raises(NpuError, match="vnpu-mode : VM. Run npu-smi set -t vnpu-mode -d 0"):
        layout(host, ONE).apply()


@pytest.mark.parametrize("leftover", [False, True])
def test_a_creation_that_fails(host, smi, leftover):
    smi.change(broken=101, leftover=leftover)
    with pytest.raises(NpuError, match="101 \\(vir04_3c, chip 0\\) could not be created: .*create vnpu failed"):
        layout(host, HALVES).apply()
    assert smi.vnpus == [A]
    # The next boot must not fail of what cannot be created: the driver would count as failed, and no chip would be left.
    missing = tuple(Vnpu(*entry) for entry in (B, C, D))
    assert vnpu_record.read(str(host)) == Record([Vnpu(*A)], [], missing)
    smi.change(broken=None)
    layout(host, HALVES).apply()
    assert smi.vnpus == [A, B, C, D]
    assert vnpu_record.read(str(host)) == Record([Vnpu(*entry) for entry in (A, B, C, D)], [])


def test_what_could_not_be_created_is_given_up(host, smi):
    smi.change(broken=100)
    with pytest.raises(NpuError, match="could not be created"):
        layout(host, HALVES).apply()
    layout(host, []).apply()
    assert vnpu_record.read(str(host)) == Record([], []) and not (host / "var/lib/npuops/vnpu").exists()


def test_a_creation_that_hangs(host, smi):
    """What the cleaning up finds, which is that npu-smi still hangs, is not the reason that is told."""

    class Hanging(NpuSmi):
        hangs = False

        def run(self, *arguments):
            if self.hangs:
                raise NoVerdict("Another npu-smi on this host has been running for 40 s")
            if "create-vnpu" in arguments:
                self.hangs = True
                raise NpuError("it hangs in the driver")
            return super().run(*arguments)

    program = Hanging(str(host / "tree"), lock=str(host / "run/npuops/npu-smi.lock"))
    with pytest.raises(NpuError, match="100 \\(vir04, chip 0\\) could not be created: it hangs in the driver"):
        vnpu_change.Layout(HALVES, program, fs=str(host)).apply()


def test_chips_that_are_gone(host, smi):
    """The record of a host whose chips were taken out."""
    layout(host, ONE).apply()
    shutil.rmtree(host / "sys")
    for path in (host / "dev").iterdir():
        path.unlink()
    assert layout(host, []).plan().target == []
    layout(host, []).apply()
    assert not os.path.exists(str(host) + vnpu_record.PATH)


def test_killed_halfway(host, smi):
    layout(host, [{"templates": {"vir02": 2}}]).apply()
    smi.change(dies=118)
    killed = python_of_a_host(_APPLY, str(host), repr(HALVES))
    assert killed.returncode == -9
    record = vnpu_record.read(str(host))
    assert (len(record.target), len(record.leaving)) == (4, 4)
    smi.change(calls=[])
    layout(host, HALVES).apply()
    assert [entry[2] for entry in smi.vnpus] == ["vir04", "vir04_3c"] * 2
    assert vnpu_record.read(str(host)).leaving == []
    assert len(smi.changes) < 4


def test_without_a_driver_there_are_none(host, smi):
    layout(host, ONE).apply()
    for path in (host / "dev").iterdir():
        path.unlink()
    layout(host, []).apply()
    assert not os.path.exists(str(host) + vnpu_record.PATH)


def test_nodes_get_the_mode_of_their_chip(host, smi):
    (host / "dev/davinci1").chmod(0o660)
    layout(host, ONE).apply()
    assert (host / "dev/vdavinci116").stat().st_mode & 0o777 == 0o660
