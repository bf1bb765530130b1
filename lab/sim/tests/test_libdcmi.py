# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libdcmi has what upstream's programs look up, and answers as the silicon says."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
import unittest
from ctypes import byref, c_char, c_int, c_uint, c_ulonglong
from pathlib import Path
from typing import Any
from unittest import mock

from simbuild.tools import run

from tests.silicon import Silicon, tree
from tests.test_npu_smi import B910, DUO

SYMBOLS = Path(__file__).parent / "symbols"
INNER, NO_DEVICE, NOT_READY, NOT_SUPPORTED = -8005, -8008, -8012, -8255


class Chip(ctypes.Structure):
    _fields_ = [("type", c_char * 32), ("name", c_char * 32), ("version", c_char * 32), ("cores", c_uint), ("full", c_char * 32)]


class Hbm(ctypes.Structure):
    _fields_ = [("size", c_ulonglong), ("freq", c_uint), ("used", c_ulonglong), ("temp", c_int), ("bandwidth", c_uint)]


class Pcie(ctypes.Structure):
    _fields_ = [(name, c_uint) for name in ("vendor", "subvendor", "device", "subdevice", "domain", "bus", "slot", "function")]
    _fields_ += [("reserved", c_char * 32)]


class Event(ctypes.Structure):
    _fields_ = [("type", c_int), ("before", c_int), ("id", c_uint), ("chip", ctypes.c_ushort)]
    _fields_ += [(name, ctypes.c_ubyte) for name in ("node_type", "node", "sub_type", "sub", "severity", "assertion")]


class Filter(ctypes.Structure):
    _fields_ = [("flags", c_ulonglong), ("id", c_uint), ("severity", c_char), ("node", c_char), ("reserved", c_char * 32)]


class LibDcmi(unittest.TestCase):
    silicon: Silicon
    dcmi: ctypes.CDLL
    path: Path
    kept: Any

    @classmethod
    def setUpClass(cls) -> None:
        devices = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.silicon = Silicon(tree("25.5.1"), devices)
        cls.addClassCleanup(cls.silicon.close)
        cls.enterClassContext(mock.patch.dict(os.environ, cls.silicon.environment()))
        libraries = tree("25.5.1") / "lib64"
        for name in ("common/libc_sec.so", "common/libmmpa.so", "driver/libascend_hal.so", "driver/libdrvdsmi_host.so"):
            ctypes.CDLL(str(libraries / name), mode=ctypes.RTLD_GLOBAL)
        cls.path = libraries / "driver" / "libdcmi.so"
        cls.dcmi = ctypes.CDLL(str(cls.path))

    def has(self, *chips: dict[str, object]) -> None:
        self.silicon.has(*chips)
        self.dcmi.dcmi_init()  # what was asked a moment ago no longer counts

    def get(self, function: str, *arguments: object, of: type = c_uint) -> Any:
        """What a function says in its last argument."""
        answer = of()
        self.assertEqual(0, self.dcmi[function](*arguments, byref(answer)), function)
        return answer.value if hasattr(answer, "value") else answer

    def test_symbols(self) -> None:
        exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", self.path).splitlines()}
        for version_line in ("7.3", "26.1"):
            with self.subTest(version_line):
                wanted = (SYMBOLS / f"libdcmi-{version_line}.txt").read_text(encoding="ascii").split()
                self.assertEqual([], [name for name in wanted if name not in exported])

    def test_numbers(self) -> None:
        self.has({**DUO, "chip": 0}, {**DUO, "chip": 1}, {**DUO, "card": 2976, "chip": 0})
        cards = (c_int * 8)()
        count = c_int()
        self.assertEqual(0, self.dcmi.dcmi_get_card_list(byref(count), cards, 8))
        self.assertEqual([2944, 2976], cards[: count.value])
        self.assertEqual(2, self.get("dcmi_get_device_num_in_card", 2944))
        card, device = c_int(), c_int()
        self.assertEqual(0, self.dcmi.dcmi_get_card_id_device_id_from_logicid(byref(card), byref(device), 2))
        self.assertEqual((2976, 0), (card.value, device.value))
        self.assertEqual(1, self.get("dcmi_get_device_phyid_from_logicid", 1))
        self.assertEqual(NO_DEVICE, self.dcmi.dcmi_get_device_num_in_card(7, byref(count)))

    def test_what_a_910b_says(self) -> None:
        self.has({**B910, "card": 0})
        chip = self.get("dcmi_get_device_chip_info_v2", 0, 0, of=Chip)
        self.assertEqual((b"Ascend", b"910B3", b"V1", 20), (chip.type, chip.name, chip.version, chip.cores))
        hbm = self.get("dcmi_get_device_hbm_info", 0, 0, of=Hbm)
        self.assertEqual((65536, 3277, 39), (hbm.size, hbm.used, hbm.temp))
        pcie = self.get("dcmi_get_device_pcie_info_v2", 0, 0, of=Pcie)
        self.assertEqual(
            (0x19E5, 0xD802, 0, 0xC1, 0, 0), (pcie.vendor, pcie.device, pcie.domain, pcie.bus, pcie.slot, pcie.function)
        )
        self.assertEqual(39, self.get("dcmi_get_device_temperature", 0, 0))
        self.assertEqual(1035, self.get("dcmi_get_device_power_info", 0, 0))
        self.assertEqual(NOT_SUPPORTED, self.dcmi.dcmi_set_device_reset(0, 0, 1))
        self.assertEqual(NOT_SUPPORTED, self.dcmi.dcmiv2_init())

    def test_what_a_310p_does_not_say(self) -> None:
        self.has({**DUO, "chip": 0, "ddr": 44278, "used": 1000})
        self.assertEqual(NOT_SUPPORTED, self.dcmi.dcmi_get_device_hbm_info(2944, 0, byref(Hbm())))
        self.assertEqual(NOT_SUPPORTED, self.dcmi.dcmi_get_device_power_info(2944, 0, byref(c_int())))
        self.assertEqual(428, self.get("dcmi_mcu_get_power_info", 2944))

    def test_a_wedged_driver_fails_every_call(self) -> None:
        self.has({**B910, "card": 0})
        self.silicon.reply = "result -8005\nend\n"
        time.sleep(0.3)
        self.assertEqual(INNER, self.dcmi.dcmi_get_device_temperature(0, 0, byref(c_int())))
        self.assertEqual(INNER, self.dcmi.dcmi_get_card_list(byref(c_int()), (c_int * 8)(), 8))
        self.assertEqual(INNER, self.dcmi.dcmi_init())

    def test_a_chip_that_is_not_ready(self) -> None:
        self.has({**B910, "card": 0, "result": NOT_READY})
        self.assertEqual(NOT_READY, self.dcmi.dcmi_get_device_health(0, 0, byref(c_uint())))
        logic = c_int(-1)
        self.assertEqual((0, 0), (self.dcmi.dcmi_get_device_logic_id(byref(logic), 0, 0), logic.value))

    def test_faults_are_told(self) -> None:
        told: list[tuple[int, int, int]] = []

        @ctypes.CFUNCTYPE(None, ctypes.POINTER(Event))
        def called(event: Any) -> None:
            told.append((event.contents.id, event.contents.chip, event.contents.assertion))

        def wait(length: int) -> None:
            for _ in range(50):
                if len(told) < length:
                    time.sleep(0.1)

        self.has({**B910, "card": 0}, {**B910, "card": 1})
        subscribe = self.dcmi.dcmi_subscribe_fault_event
        subscribe.argtypes = (c_int, c_int, Filter, type(called))
        self.assertEqual(0, subscribe(-1, -1, Filter(), called))
        self.silicon.has({**B910, "card": 0}, {**B910, "card": 1, "health": 3, "code": "80E01801"})
        wait(1)
        self.silicon.has({**B910, "card": 0}, {**B910, "card": 1})
        wait(2)
        self.assertEqual([(0x80E01801, 1, 1), (0x80E01801, 1, 0)], told)
        type(self).kept = called  # the library's thread may still call it

    def test_errorcodes(self) -> None:
        self.has({**B910, "card": 0, "code": "80E01801"})
        count, codes = c_int(), (c_uint * 128)()
        self.assertEqual(0, self.dcmi.dcmi_get_device_errorcode_v2(0, 0, byref(count), codes, 128))
        self.assertEqual([0x80E01801], codes[: count.value])


if __name__ == "__main__":
    unittest.main()
