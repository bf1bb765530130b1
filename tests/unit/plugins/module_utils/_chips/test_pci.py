# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.collection import python_of_a_host


def functions(host):
    return pci.chip_functions(host.fs + "/sys/bus/pci/devices")


def notes(host):
    return pci.notes(host.fs + "/sys/bus/pci/devices")


@pytest.mark.parametrize(
    "device, name, key, resource, accelerator",
    [
        ("0xd801", "910A", "910a", "huawei.com/Ascend910", "huawei-Ascend910"),
        ("0xd802", "910B", "910b", "huawei.com/Ascend910", "huawei-Ascend910"),
        ("0xd803", "910C", "910c", "huawei.com/Ascend910", "huawei-Ascend910"),
        ("0xd500", "310P", "310p", "huawei.com/Ascend310P", "huawei-Ascend310P"),
        ("0xd100", "310", "310", "huawei.com/Ascend310", "huawei-Ascend310"),
        ("0xd105", "310B", "310b", "huawei.com/Ascend310", "huawei-Ascend310"),
        ("0xd806", "950", "950", "huawei.com/npu", "huawei-npu"),
    ],
)
def test_family_by_device_id(host, device, name, key, resource, accelerator):
    host.function("0000:01:00.0", device=device, subsystem="0x0200")
    assert pci.family_of(functions(host)) == (name, key, resource, accelerator)
    assert pci.chip_count(functions(host)) == 1


def test_only_physical_ascend_accelerators_count(host):
    host.function("0000:01:00.0")
    host.function("0000:01:00.1", vf=True)
    host.function("0000:02:00.0", device="0xa222", device_class="0x020000")
    host.function("0000:03:00.0", vendor="0x10de", device="0xd802")
    assert [function.address for function in functions(host)] == ["0000:01:00.0"]


def test_duo_is_two_chips_on_one_function(host):
    host.function("0000:01:00.0", device="0xd500", subsystem="0x0110")
    host.function("0000:02:00.0", device="0xd500", subsystem="0x0100")
    assert [pci.chips_of(function) for function in functions(host)] == [2, 1]
    assert pci.chip_count(functions(host)) == 3


def test_subsystem_of_a_duo_on_another_chip_is_one_chip(host):
    host.function("0000:01:00.0", device="0xd802", subsystem="0x0110")
    assert pci.chip_count(functions(host)) == 1


def test_two_families_are_refused_with_addresses(host):
    host.function("0000:01:00.0", device="0xd802")
    host.function("0000:81:00.0", device="0xd500", subsystem="0x0110")
    with pytest.raises(NpuError) as caught:
        pci.family_of(functions(host))
    for text in ("910B", "0000:01:00.0", "310P", "0000:81:00.0"):
        assert text in caught.value.message


def test_engines_of_the_cpu_are_no_chips(host):
    host.kunpeng()
    host.function("0000:75:00.1", device="0xa251")  # a virtual machine has no physfn
    assert (functions(host), notes(host)) == ([], [])
    host.chips(8)
    assert pci.chip_count(functions(host)) == 8
    assert pci.family_of(functions(host)).name == "910B"
    assert notes(host) == []


def test_an_unknown_device_id_is_named_and_does_not_count(host):
    host.chips(8)
    host.function("0000:01:00.0", device="0xd9ff")
    host.function("0000:02:00.0", device="0xd9ff")
    host.function("0000:02:00.1", device="0xd9ff", vf=True)
    assert pci.chip_count(functions(host)) == 8
    assert pci.family_of(functions(host)).name == "910B"
    assert notes(host) == [
        "the unknown accelerator 19e5:d9ff (0000:01:00.0, 0000:02:00.0) may be a newer chip that this version does not support:"
        " update the collection"
    ]


@pytest.mark.parametrize("device", ["", "0xd8"])
def test_a_chip_whose_device_id_cannot_be_read_does_not_vanish(host, device):
    host.function("0000:01:00.0", device=device)
    assert pci.chip_count(functions(host)) == 1 and notes(host) == []
    with pytest.raises(NpuError, match=r"device ID of 0000:01:00\.0 cannot be read"):
        pci.family_of(functions(host))


def test_no_chips(host):
    assert pci.family_of(functions(host)) is None
    assert pci.chip_functions(host.fs + "/not/there") == []


def test_a_machine_that_cannot_look_is_none_without_chips(tmp_path):
    """Nothing was read, and so nothing is known: a chip that was not counted would not be missed."""
    function = tmp_path / "0000:01:00.0"
    function.mkdir()
    (function / "vendor").write_text("0x19e5\n")
    code = (
        "import resource, sys\n"
        "from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "try: print(pci.chip_functions(sys.argv[1]))\n"
        "except OSError as exc: print(exc.strerror)"
    )
    result = python_of_a_host(code, str(tmp_path))
    assert result.stdout == "Too many open files\n", result.stderr
    assert pci.chip_functions(str(tmp_path / "nowhere")) == []
