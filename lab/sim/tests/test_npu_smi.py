# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""npu-smi prints what real ones printed: captures in npu-smi/, compared without indentation (people strip that)."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from tests.silicon import Silicon, tree

SAMPLES = Path(__file__).parent / "npu-smi"

# fields as in a reply of the silicon (go/internal/silicon/reply.go)
B910 = {
    "family": "910B",
    "name": "910B3",
    "chips": 1,
    "chip": 0,
    "hbm": 65536,
    "product": "IT21HMDC_Bin5",
    "board": "0x60",
    "device": "D802",
    "subvendor": "19E5",
    "subdevice": "3003",
    "serial": "1025C9048791",
    "cores": 20,
    "temp": 39,
    "mcu_temp": 36,
    "power": 1035,
    "ctrlcpu": 6,
    "used": 3277,
    "bus": "0000:C1:00.0",
}
DUO = {"family": "310P", "name": "310P3", "product": "Atlas 300I Duo", "card": 2944, "mcu_temp": 48, "power": 428}
EIGHT = [{**B910, "card": card} for card in range(8)]
TWO_ON_DUO = [
    {**DUO, "chip": 0, "temp": 45, "ddr": 44278, "used": 1000},
    {**DUO, "chip": 1, "temp": 47, "ddr": 43693, "used": 1400},
]


def sample(name: str) -> list[str]:
    return lines((SAMPLES / f"{name}.txt").read_text(encoding="utf-8"))


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


class NpuSmi(unittest.TestCase):
    version = "25.5.1"
    silicon: Silicon

    @classmethod
    def setUpClass(cls) -> None:
        devices = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.silicon = Silicon(tree(cls.version), devices)
        cls.addClassCleanup(cls.silicon.close)

    def prints(self, *arguments: str) -> list[str]:
        result = self.silicon.npu_smi(*arguments)
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        return lines(result.stdout)


class Tables(NpuSmi):
    def test_310p(self) -> None:
        chip = {"family": "310P", "name": "310P3", "product": "Atlas 300I Pro", "chip": 0, "ddr": 21525}
        self.silicon.has(
            {**chip, "card": 4, "bus": "0000:81:00.0", "temp": 37, "used": 1848},
            {**chip, "card": 5, "bus": "0000:85:00.0", "temp": 40, "used": 1849},
        )
        self.assertEqual(sample("info_310P3_300I_Pro_2card_25.5.1_no_proc_table"), self.prints("info"))

    def test_alarm(self) -> None:
        self.silicon.has({**EIGHT[0], "health": 2})
        self.assertIn("| 0     910B3               | Alarm         | 103.5       39  ", self.prints("info")[6])

    def test_all_lines_of_a_duo_are_106_wide(self) -> None:
        self.silicon.has(*TWO_ON_DUO)
        self.assertEqual({106}, {len(line) for line in self.prints("info")})

    def test_versions_are_the_package_s_and_the_loaded_one_s(self) -> None:
        self.silicon.has(*EIGHT, driver="25.5.0")
        self.assertIn("| npu-smi 25.5.1                   Version: 25.5.0 ", self.prints("info")[1])


class OldTable(NpuSmi):
    version = "23.0.1"

    def test_910b(self) -> None:
        self.silicon.has({**B910, "card": 4, "bus": "0000:01:00.0", "power": 936, "temp": 40, "used": 3161}, driver="23.0.1")
        self.assertEqual(sample("info_910B3_1card_23.0.1"), self.prints("info"))


class Lists(NpuSmi):
    def test_910b(self) -> None:
        self.silicon.has(*EIGHT)
        for name, arguments in {
            "info-l_910B_8card_25.5.1": ["-l"],
            "info-t-board_910B_25.5.1": ["-t", "board", "-i", "0"],
            "info-t-usages_910B_25.5.1": ["-t", "usages", "-i", "0"],
            "info-t-temp_910B_25.5.1": ["-t", "temp", "-i", "0"],
            "info-t-power_910B_25.5.1": ["-t", "power", "-i", "0"],
            "info-t-health-c0_910A_23.0.5": ["-t", "health", "-i", "0", "-c", "0"],
        }.items():
            with self.subTest(name):
                self.assertEqual(sample(name), self.prints("info", *arguments))

    def test_mapping_with_its_tabs(self) -> None:
        self.silicon.has(*EIGHT[:2])
        wanted = (SAMPLES / "info-m_910B3_first2cards_verbatim.txt").read_text(encoding="utf-8").splitlines()
        result = self.silicon.npu_smi("info", "-m")
        self.assertEqual([line.rstrip() for line in wanted], [line.rstrip() for line in result.stdout.splitlines()])

    def test_common_910b(self) -> None:
        self.silicon.has(EIGHT[0], {**EIGHT[1], "temp": 46, "mcu_temp": 40, "power": 1304})
        ours = self.prints("info", "-t", "common", "-i", "1")
        differ = [wanted for wanted, got in zip(sample("info-t-common_910B"), ours, strict=True) if wanted != got]
        self.assertEqual(["HBM Usage Rate(%)              : 91", "Aicore Usage Rate(%)           : 6"], differ)

    def test_duo(self) -> None:
        self.silicon.has(*TWO_ON_DUO)
        for name in (
            "info-t-common_310P_Duo_excerpt",
            "info-t-health_310P_Duo_25.5.1",
            "info-t-product_310P_Duo",
            "info-t-usages_310P_Duo_excerpt",
        ):
            with self.subTest(name):
                kind = name.split("_")[0].removeprefix("info-t-")
                self.assertEqual(sample(name), self.prints("info", "-t", kind, "-i", "2944"))

    def test_fault_code(self) -> None:
        self.silicon.has({**EIGHT[0], "health": 1, "code": "80E01801"})
        self.assertEqual(sample("info-t-health_warning_A2_from_test"), self.prints("info", "-t", "health", "-i", "0", "-c", "0"))


class Failures(NpuSmi):
    def fails(self, status: int, *arguments: str) -> str:
        result = self.silicon.npu_smi(*arguments)
        self.assertEqual((status, ""), (result.returncode, result.stderr))
        return result.stdout

    def test_inner_error(self) -> None:
        self.silicon.reply = "result -8005\nend\n"
        self.assertEqual(sample("fail_8005_newer_driver"), lines(self.fails(187, "info")))

    def test_no_answer(self) -> None:
        self.silicon.has(*EIGHT)
        self.silicon.reply = ""
        self.assertIn("-8005", self.fails(187, "info"))

    def test_no_manager(self) -> None:
        self.silicon.has(*EIGHT)
        (self.silicon.devices / "davinci_manager").unlink()
        self.assertIn("-8005", self.fails(187, "info"))

    def test_occupied(self) -> None:
        self.silicon.has(*EIGHT, lines="smi_fails -8020\n")
        self.assertEqual(sample("fail_8020_device_used"), lines(self.fails(172, "info")))

    def test_wrong_words(self) -> None:
        self.silicon.has(*EIGHT)
        self.assertIn("Command or option is not found.", self.fails(211, "nonsense"))
        self.assertIn("Usage: npu-smi", self.fails(215))
        self.assertIn("Error parameter of -t", self.fails(215, "info", "-t", "npu"))
        self.assertIn("Error parameter of -i", self.fails(215, "info", "-t", "board", "-i", "99"))

    def test_a_chip_without_device_is_not_shown_in_a_container(self) -> None:
        self.silicon.has(*EIGHT)
        (self.silicon.devices / "davinci3").unlink()
        table = self.prints("info", "-l")
        self.assertNotIn("NPU ID                         : 3", table)
        self.assertIn("Total Count                    : 7", table)

    def test_libraries_are_not_found_by_themselves(self) -> None:
        result = self.silicon.npu_smi("info", found=False)
        self.assertEqual(127, result.returncode)
        self.assertIn("cannot open shared object file", result.stderr)


if __name__ == "__main__":
    unittest.main()
