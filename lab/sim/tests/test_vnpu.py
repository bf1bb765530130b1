# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual NPUs: what npu-smi prints about them, and what it does with the real daemon."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.node import Node, can_make_devices
from tests.test_npu_smi import B910, NpuSmi, lines, sample

PARTS = "cores=20 memory=64 aicpu=7 vpc=9 venc=0 vdec=2 jpegd=24 jpege=4"
HALF = "name=vir10_3c_32g cores=10 memory=32 aicpu=3 vpc=4 venc=0 vdec=1 jpegd=12 jpege=2"
QUARTER = "name=vir05_1c_16g cores=5 memory=16 aicpu=1 vpc=2 venc=0 vdec=0 jpegd=6 jpege=1"


class Printed(NpuSmi):
    def has(self, *vnpus: str) -> None:
        told = [f"parts {PARTS}", f"template {HALF}", f"template {QUARTER}", "vnpu_recover 1", *(f"vnpu {vnpu}" for vnpu in vnpus)]
        self.silicon.has({**B910, "card": 5, "phy": 7}, lines="\n".join(told) + "\n")
        (self.silicon.devices / "davinci7").touch()

    def test_templates(self) -> None:
        self.has()
        self.assertEqual(sample("info-t-template-info_910B4-1_26.0.rc1"), self.prints("info", "-t", "template-info"))

    def test_virtual_npus(self) -> None:
        self.has(
            "id=212 phy=7 template=vir10_3c_32g group=0 used=0",
            "id=213 phy=7 template=vir10_3c_32g group=1 used=0",
            "id=100 phy=0 template=vir10_3c_32g group=0 used=0",
        )
        shown = self.prints("info", "-t", "info-vnpu", "-i", "5", "-c", "0")
        self.assertEqual(sample("info-t-info-vnpu_910B4-1_26.0.rc1"), shown)

    def test_used_by_a_container(self) -> None:
        self.has("id=212 phy=7 template=vir05_1c_16g group=0 used=1")
        shown = self.prints("info", "-t", "info-vnpu", "-i", "5", "-c", "0")
        self.assertIn("|  212      |  0             |  ffffffffffff  |  1       |  vir05_1c_16g        |", shown)

    def test_settings(self) -> None:
        self.has()
        self.assertEqual(["vnpu-mode                      : docker"], self.prints("info", "-t", "vnpu-mode"))
        self.assertEqual(["VNPU config recover mode       : Enable"], self.prints("info", "-t", "vnpu-cfg-recover"))

    def test_chip_by_its_physical_id(self) -> None:
        self.has()
        shown = self.prints("info", "-t", "phyid-remap", "-p", "7")
        self.assertIn("NPU ID                        :5", shown)
        self.assertIn("Chip ID                       :0", shown)
        self.assertEqual(211, self.silicon.npu_smi("info", "-t", "phyid-remap", "-p", "3").returncode)


@unittest.skipUnless(can_make_devices(), "needs to make device nodes")
class Changed(unittest.TestCase):
    def setUp(self) -> None:
        self.node = Node(Path(self.enterContext(tempfile.TemporaryDirectory())), 2)
        self.addCleanup(self.node.switch_off)
        self.node.switch_on()

    def npu_smi(self, *arguments: str) -> subprocess.CompletedProcess:
        return self.node.tool("npu-smi", *arguments)

    def change(self, status: int, kind: str, *arguments: str, card: int = 0) -> list[str]:
        result = self.npu_smi("set", "-t", kind, "-i", str(card), "-c", "0", *arguments)
        self.assertEqual((status, ""), (result.returncode, result.stderr), result.stdout)
        return lines(result.stdout)

    def shown(self, card: int = 0) -> str:
        return self.npu_smi("info", "-t", "info-vnpu", "-i", str(card), "-c", "0").stdout

    def test_create_and_destroy(self) -> None:
        told = self.change(0, "create-vnpu", "-f", "vir10_3c_32g", "-v", "103")
        self.assertEqual(["Status                         : OK", "Message                        : Create vnpu success"], told)
        self.assertIn("| 10/20 ", self.shown())
        self.node.wait_for(lambda: (self.node.root / "dev/vdavinci103").exists())
        self.change(0, "create-vnpu", "-f", "vir05_1c_16g", card=1)
        self.assertIn("|  116 ", self.shown(1))
        told = self.change(0, "destroy-vnpu", "-v", "103")
        self.assertEqual("Message                        : Destroy vnpu 103 success", told[1])
        self.node.wait_for(lambda: not (self.node.root / "dev/vdavinci103").exists())
        self.assertEqual(["Error parameter of -v."], self.change(215, "destroy-vnpu", "-v", "103"))

    def test_refused(self) -> None:
        for _ in range(2):
            self.change(0, "create-vnpu", "-f", "vir10_3c_32g")
        told = self.change(217, "create-vnpu", "-f", "vir05_1c_16g")
        self.assertEqual(["Insufficient number of cores available, unallocated cores number:0.000000."], told)
        self.assertEqual(["Must input parameter of -f."], self.change(215, "create-vnpu", "-f", "vir02"))
        self.node.fault("vnpu-held", "100")
        self.assertEqual(["destroy vnpu 100 failed."], self.change(211, "destroy-vnpu", "-v", "100"))

    def test_only_some_reboots_keep_them(self) -> None:
        self.change(0, "create-vnpu", "-f", "vir10_3c_32g")
        self.node.restart()
        self.assertIn("Total number of vnpu: 0 ", self.shown(), "there is no /usr/local/sbin/npu-smi")


if __name__ == "__main__":
    unittest.main()
