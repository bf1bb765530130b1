# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hccn_tool prints what upstream's programs and ours can read, as the real one does; ../README.md names the sources."""

from __future__ import annotations

import json
import os
import socketserver
import tempfile
import threading
import unittest
import unittest.mock
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
        self.port()
        self.assertEqual(["link", "status:", "UP"], self.get("-link").split())
        self.assertEqual(["Speed:", "200000", "Mb/s"], self.get("-speed").split())
        self.assertIn("[device 1]link up count : 1\n", self.get("-link_stat"))
        self.assertEqual(4, len(self.get("-bandwidth").splitlines()[0].split()))
        optical = dict(line.split(":") for line in self.get("-optical").splitlines()[1:])
        self.assertEqual({"present": "present", "Vcc": "3300.00 mV"}, {k: optical[k.ljust(21)].strip() for k in ("present", "Vcc")})
        self.assertIn("\nroce_rx_all_pkt_num:0\n", self.get("-stat"))

    def port(self, **values: object) -> None:
        """Two chips; the second one has a port with these values."""
        first = {**B910, "card": 0, "port": 1, "weak": 0, "ip": "10.64.11.10"}
        self.silicon.has(first, {**first, "card": 1, "ip": "10.64.11.11", **values})

    def test_what_a_port_shows(self) -> None:
        self.port()
        self.assertEqual("ipaddr:10.64.11.11\nnetmask:255.255.0.0\n", self.get("-ip"))
        self.assertEqual("default gateway:10.64.0.1, Iface:eth1\n", self.get("-gateway"))
        self.assertEqual("net health status: Success\n", self.get("-net_health"))
        self.assertRegex(self.get("-tls"), r"^dev_id:1, tls switch\[0\]\(0:disable, 1:enable\), tls preconfigured\[1\]")
        self.assertEqual("fec mode: rs FEC mode\n", self.get("-fec"))
        self.assertEqual("mtu:4096\n", self.get("-mtu"))
        self.assertIn("\nRxPower Low Thres    : 0.1445 mW\n", self.get("-optical"))
        self.assertIn("\nMedia SNR Lane3      : 22.6289 dB\n", self.get("-optical"))

    def test_a_port_that_is_down(self) -> None:
        self.port(port=0)
        self.assertEqual("link status: DOWN\n", self.get("-link"))
        self.assertEqual("Speed: Unknown!\n", self.get("-speed"))
        self.assertEqual("net health status: Fault\n", self.get("-net_health"))
        self.assertEqual("link status: UP\n", self.get("-link", chip=0))

    def test_weak_light(self) -> None:
        self.port(weak=1)
        self.assertIn("\nRx Power0            : 0.0120 mW\n", self.get("-optical"))
        self.assertEqual("link status: UP\n", self.get("-link"))

    def test_a_port_without_an_address(self) -> None:
        self.port(ip="")
        for item, told in (("-ip", "no ip was preset"), ("-gateway", "no gateway was preset")):
            result = self.silicon.run("hccn_tool", "-i", "1", item, "-g")
            self.assertEqual((1, ""), (result.returncode, result.stdout))
            self.assertIn(told, result.stderr)
        self.assertEqual("net health status: Init\n", self.get("-net_health"))

    def test_recovery(self) -> None:
        self.port()
        root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (root / "etc").mkdir()
        asked: list[bytes] = []

        class Control(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                asked.append(self.rfile.readline())
                self.wfile.write(b'{"Error":""}\n')

        server = self.enterContext(socketserver.ThreadingUnixStreamServer(str(root / "control"), Control))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        environment = {"NPUSIM_ROOT": str(root), "NPUSIM_CONTROL": str(root / "control")}
        with unittest.mock.patch.dict(os.environ, environment):
            self.assertEqual(1, self.silicon.run("hccn_tool", "-i", "1", "-cfg", "recovery").returncode)
            (root / "etc/hccn.conf").write_text("address_0=10.64.11.1\naddress_1=10.64.11.7\nnetmask_1=255.255.0.0\n", "utf-8")
            self.assertEqual(0, self.silicon.run("hccn_tool", "-i", "1", "-cfg", "recovery").returncode)
        self.assertEqual([{"Operation": "set-address", "Chip": 1, "Address": "10.64.11.7"}], list(map(json.loads, asked)))

    def ping(self, address: str, chip: int = 0) -> tuple[int, str]:
        result = self.silicon.run("hccn_tool", "-i", str(chip), "-ping", "-g", "address", address)
        return result.returncode, result.stdout.splitlines()[-1]

    def test_pings(self) -> None:
        reached, lost = (
            "3 packets transmitted, 3 received, 0.00% packet loss",
            "3 packets transmitted, 0 received, 100.00% packet loss",
        )
        self.port()
        self.assertEqual((0, reached), self.ping("10.64.11.11"))
        self.assertEqual((1, lost), self.ping("10.64.11.99"))
        self.assertEqual((1, lost), self.ping("10.99.11.11"))
        self.port(port=0)
        self.assertEqual((1, lost), self.ping("10.64.11.11"))
        self.assertEqual((1, lost), self.ping("10.64.11.10", chip=1))

    def test_a_ping_to_another_node(self) -> None:
        """This silicon plays the other node, too: it is asked for all of its ports."""
        self.port(ip="10.64.12.10")
        with tempfile.TemporaryDirectory() as directory:
            hosts = Path(directory, "hosts")
            hosts.write_text(self.silicon.environment()["NPUSIM_ADDRESS"].replace(":", " ") + "\n", encoding="ascii")
            (self.silicon.devices / "davinci1").unlink()  # so that this node has only the first chip
            with unittest.mock.patch.dict(os.environ, {"NPUSIM_HOSTS": str(hosts)}):
                self.assertEqual(0, self.ping("10.64.12.10")[0])
                self.assertEqual(1, self.ping("10.64.12.11")[0])

    def test_what_has_no_port(self) -> None:
        self.silicon.has({**DUO, "chip": 0, "ddr": 44278})
        self.assertEqual(1, self.silicon.run("hccn_tool", "-i", "0", "-link", "-g").returncode)
        self.silicon.reply = "result -8005\nend\n"
        self.assertEqual(1, self.silicon.run("hccn_tool", "-i", "0", "-link", "-g").returncode)


if __name__ == "__main__":
    unittest.main()
