# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hccn_tool prints what upstream's programs can read: the same number of words and colons as the real one."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from tests.silicon import Silicon, tree
from tests.test_npu_smi import B910, DUO


class HccnTool(unittest.TestCase):
    silicon: Silicon

    @classmethod
    def setUpClass(cls) -> None:
        devices = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.silicon = Silicon(tree("25.5.1"), devices)
        cls.addClassCleanup(cls.silicon.close)

    def get(self, what: str, chip: int = 1) -> str:
        result = self.silicon.run("hccn_tool", "-i", str(chip), what, "-g")
        self.assertEqual(0, result.returncode, result.stdout)
        return result.stdout

    def test_a_port_that_is_up(self) -> None:
        self.silicon.has({**B910, "card": 0}, {**B910, "card": 1})
        self.assertEqual(["link", "status:", "UP"], self.get("-link").split())
        self.assertEqual(["Speed:", "200000", "Mb/s"], self.get("-speed").split())
        self.assertIn("[device 1]link up count : 1\n", self.get("-link_stat"))
        self.assertEqual(4, len(self.get("-bandwidth").splitlines()[0].split()))
        optical = dict(line.split(":") for line in self.get("-optical").splitlines()[1:])
        self.assertEqual({"present": "present", "Vcc": "3300.00 mV"}, {k: optical[k.ljust(21)].strip() for k in ("present", "Vcc")})
        self.assertIn("\nroce_rx_all_pkt_num:0\n", self.get("-stat"))

    def test_what_has_no_port(self) -> None:
        self.silicon.has({**DUO, "chip": 0, "ddr": 44278})
        self.assertEqual(1, self.silicon.run("hccn_tool", "-i", "0", "-link", "-g").returncode)
        self.silicon.reply = "result -8005\nend\n"
        self.assertEqual(1, self.silicon.run("hccn_tool", "-i", "0", "-link", "-g").returncode)


if __name__ == "__main__":
    unittest.main()
