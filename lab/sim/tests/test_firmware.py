# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware packages write the flash of chips, which run it after the next boot; upgrade-tool says what they run."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests import node as tests_node
from tests.node import INSTALL, Node, firmware_packages

OLD, NEW, EIGHT = "7.8.0.6.201", "7.8.0.7.220", "8.2.0.1.220"
DONE = (
    "Firmware package installed successfully! Reboot now or after driver installation for the installation/upgrade to take effect"
)


class Package(unittest.TestCase):
    """The command line of a .run, which needs no chips."""

    def runs(self, *arguments: str) -> str:
        result = subprocess.run(
            ["bash", firmware_packages()[NEW], *arguments], capture_output=True, text=True, check=False, timeout=30
        )
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        return result.stdout

    def test_it_checks_itself_and_says_its_version(self) -> None:
        self.assertIn("All good.", self.runs("--check"))
        self.assertEqual(NEW, self.runs("--nox11", "--version").splitlines()[-1])

    def test_it_can_be_extracted(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            target = Path(work, "tree")
            self.runs("--noexec", f"--extract={target}")
            self.assertEqual(
                f"Version={NEW}\nfirmware_version=1.0\npackage_version=25.5.2\n"
                "compatible_version_drv=[24.1,24.1.],[25.0,25.0.],[25.2,25.2.],[25.3,25.3.],[25.5,25.5.],[26.0,26.0.],[26.1,26.1.]\n",
                (target / "firmware/version.info").read_text(encoding="ascii"),
            )
            self.assertEqual({"image", "script", "version.info"}, {path.name for path in (target / "firmware").iterdir()})
            self.assertEqual(
                {"help.info", "install.sh", "uninstall.sh"}, {path.name for path in (target / "firmware/script").iterdir()}
            )


@unittest.skipUnless(tests_node.GO and os.geteuid() == 0 and tests_node.can_make_devices(), "needs Go, and root's device nodes")
class Firmware(unittest.TestCase):
    """Three 910B in a directory, which survive the power cuts of a test."""

    def setUp(self) -> None:
        self.node = Node(Path(self.enterContext(tempfile.TemporaryDirectory())), 3)
        self.addCleanup(self.node.switch_off)
        self.node.switch_on()

    def column(self, name: str) -> list:
        return [chip[name] for chip in self.node.flash()]

    def shown(self, card: int = 0) -> str:
        board = self.node.tool("npu-smi", "info", "-t", "board", "-i", str(card)).stdout
        return next((line.split(" : ")[1] for line in board.splitlines() if "Firmware Version" in line), board)

    def installs(self, version: str, *flags: str) -> str:
        status, output = self.node.install(version, *flags)
        self.assertEqual(0, status, output)
        self.assertEqual(DONE, output.splitlines()[-1].partition("[INFO]")[2])
        return output

    def fails(self, version: str, *flags: str) -> str:
        status, output = self.node.install(version, *flags)
        self.assertEqual(1, status, output)
        self.assertNotIn(DONE, output)
        return output

    def info(self) -> list[str]:
        return sorted((self.node.root / "etc/ascend_install.info").read_text(encoding="ascii").splitlines())

    def test_new_chips(self) -> None:
        self.assertEqual(
            [{"chip": i, "running": OLD, "flash": OLD, "writes": 0, "unfinished": ""} for i in range(3)], self.node.flash()
        )
        self.assertEqual(OLD, self.shown())

    def test_it_takes_effect_at_the_next_boot_only(self) -> None:
        self.installs(NEW)
        self.assertEqual(([OLD] * 3, [NEW] * 3, [1] * 3), (self.column("running"), self.column("flash"), self.column("writes")))
        self.assertEqual(OLD, self.shown())
        self.node.restart()
        self.assertEqual(([NEW] * 3, [1] * 3), (self.column("running"), self.column("writes")))
        self.assertEqual([NEW] * 3, [self.shown(card) for card in range(3)])

    def test_a_restart_of_the_daemon_is_no_boot(self) -> None:
        self.installs(NEW)
        self.node.switch_off()
        self.node.switch_on(keep=True)
        self.assertEqual(OLD, self.shown())

    def test_what_the_package_leaves(self) -> None:
        info = self.node.root / "etc/ascend_install.info"
        info.write_text("UserName=root\nUserGroup=root\nDriver_Install_Path_Param=/usr/local/Ascend\n", encoding="ascii")
        self.installs(NEW)
        kept = ["Driver_Install_Path_Param=/usr/local/Ascend", "UserGroup=root", "UserName=root"]
        self.assertEqual(
            sorted([*kept, "Firmware_Install_Type=full", "Firmware_Install_Path_Param=/usr/local/Ascend"]), self.info()
        )
        version = self.node.root / "usr/local/Ascend/firmware/version.info"
        self.assertEqual(0o444, stat.S_IMODE(version.stat().st_mode))
        self.assertIn(f"Version={NEW}\n", version.read_text(encoding="ascii"))
        log = (self.node.root / "var/log/ascend_seclog/ascend_install.log").read_text(encoding="utf-8")
        self.assertIn(DONE, log)
        self.installs(EIGHT, "--upgrade")
        self.assertIn(f"Version={EIGHT}\n", version.read_text(encoding="ascii"))
        self.assertEqual(5, len(self.info()))
        status, output = self.node.install(EIGHT, "--uninstall")
        self.assertEqual((0, kept), (status, self.info()), output)
        self.assertFalse(version.parent.exists())

    def test_what_it_refuses(self) -> None:
        self.assertIn("Firmware is not installed on this device, upgrade failed", self.fails(NEW, "--upgrade"))
        self.assertIn("Unrecognized parameters: --run", self.fails(NEW, "--run"))
        self.assertIn("Only support one type", self.fails(NEW, "--force"))
        self.assertIn("no-such-user not exists!", self.fails(NEW, "--full", "--install-username=no-such-user"))
        self.assertEqual([0, 0, 0], self.column("writes"))

    def test_no_driver(self) -> None:
        self.node.restart("")
        self.assertIn("upgrade-tool does not exist. Install the driver first.", self.fails(NEW))
        self.node.restart()
        self.node.fault("wedge")
        self.assertIn("Get device count failed, ret(-8005)", self.fails(NEW))
        self.assertEqual([0, 0, 0], self.column("writes"))

    def test_a_chip_whose_flash_cannot_be_written(self) -> None:
        self.node.fault("flash-fails", "1")
        self.assertIn("Upgrade failed for deviceId(1): the flash cannot be written.", self.fails(NEW))
        self.assertEqual(([NEW, OLD, OLD], [1, 0, 0]), (self.column("flash"), self.column("writes")))
        self.assertFalse((self.node.root / "usr/local/Ascend/firmware/version.info").exists())
        self.assertFalse((self.node.root / "etc/ascend_install.info").exists())
        self.node.restart()
        self.assertEqual([NEW, OLD, OLD], [self.shown(card) for card in range(3)])

    def test_a_power_cut_while_it_writes(self) -> None:
        self.node.fault("slow-flash", "600")
        process = self.node.start(firmware_packages()[NEW], *INSTALL, "--full")
        self.node.wait_for(lambda: self.column("writes") == [1, 0, 0])
        self.assertEqual([NEW, "", ""], self.column("unfinished"))
        self.node.switch_off()
        self.assertEqual(1, process.wait(timeout=tests_node.PATIENCE))
        self.node.repair("slow-flash")
        self.node.switch_on()
        self.assertEqual(([OLD] * 3, [OLD] * 3), (self.column("running"), self.column("flash")))
        self.assertEqual([NEW, "", ""], self.column("unfinished"))
        self.installs(NEW)
        self.assertEqual((["", "", ""], [2, 1, 1]), (self.column("unfinished"), self.column("writes")))

    def test_the_writer_is_killed(self) -> None:
        self.node.fault("slow-flash", "600")
        process = self.node.start(firmware_packages()[NEW], *INSTALL, "--full")
        self.node.wait_for(lambda: self.column("writes") == [1, 0, 0])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.node.repair("slow-flash")
        self.node.wait_for(lambda: self.column("unfinished") == [""] * 3)
        self.assertEqual(([NEW, OLD, OLD], [1, 0, 0]), (self.column("flash"), self.column("writes")))

    def test_a_chip_that_does_not_take_it(self) -> None:
        self.installs(NEW)
        self.node.fault("flash-ignored", "2")
        self.node.restart()
        self.assertEqual([NEW, NEW, OLD], [self.shown(card) for card in range(3)])
        self.assertEqual([NEW] * 3, self.column("flash"))
        self.node.repair("flash-ignored")
        self.node.restart()
        self.assertEqual(NEW, self.shown(2))

    def test_new_chips_again(self) -> None:
        self.installs(EIGHT)
        self.node.restart()
        self.node.flash("factory")
        self.test_new_chips()
        self.node.flash("factory", NEW)
        self.assertEqual(([NEW] * 3, [0] * 3), (self.column("running"), self.column("writes")))

    def test_a_driver_that_does_not_know_the_firmware(self) -> None:
        self.node.restart("25.2.0")
        self.assertEqual(OLD, self.shown())
        self.installs(EIGHT)
        self.assertEqual(OLD, self.shown())
        self.node.restart("25.2.0")
        self.assertIn("ret is -8005", self.shown())
        self.assertIn("Get device count failed, ret(-8005)", self.fails(OLD, "--upgrade"))
        self.node.restart("25.5.0")
        self.assertEqual(EIGHT, self.shown())

    def test_upgrade_tool(self) -> None:
        tool = self.node.tool("upgrade-tool", "--device_index", "-1", "--component", "-1", "--version")
        self.assertEqual(0, tool.returncode, tool.stderr)
        components = ((0, "nve"), (3, "uefi"), (8, "imu"), (9, "imp"))
        lines = [
            f"Get component version({OLD}) succeed for deviceId({chip}), componentType({number}).\n"
            f'\t{{"device_id":{chip}, "component":{name}, "version":{OLD}}}\n'
            for chip in range(3)
            for number, name in components
        ]
        self.assertEqual("{\n" + "".join(lines) + "}\n", tool.stdout)
        self.assertEqual(
            '{\nGet system version(22.0.3) succeed, deviceId(1)\n\t{"device_id":1, "version":22.0.3}\n}\n',
            self.node.tool("upgrade-tool", "--device_index", "1", "--system_version").stdout,
        )
        self.assertEqual(1, self.node.tool("upgrade-tool", "--device_index", "7", "--system_version").returncode)
        self.assertEqual(1, self.node.tool("upgrade-tool").returncode)


if __name__ == "__main__":
    unittest.main()
