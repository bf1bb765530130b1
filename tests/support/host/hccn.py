# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver tree whose hccn_tool prints what the test has laid out."""

from __future__ import annotations

import os
import pathlib

PROGRAM = """#!/bin/sh
here=$(dirname "$0")/../hccn
echo "$*" >>"$here/calls"
case ":$LD_LIBRARY_PATH:" in
*:*/lib64/driver:*/lib64/common:*) ;;
*) echo "hccn_tool: error while loading shared libraries: libdcmi.so" >&2; exit 127 ;;
esac
case $3 in -ping) answer=$here/$2/ping-$6 ;; *) answer=$here/$2/${3#-} ;; esac
[ ! -e "$answer.hangs" ] || exec sleep 600
if [ -e "$answer.busy" ]; then rm "$answer.busy"; echo "hccn_tool is busy, please try again."; exit 1; fi
[ -e "$answer" ] || { echo "Cmd execute failed!" >&2; exit 1; }
cat "$answer"
[ ! -e "$answer.fails" ] || exit 1
"""

OPTICAL = """optical info:
present              : %(present)s
temperature          : 45 C
high power enable reg: enabled
vendor name          : Example
vendor part number   : EX-400-SR8
xsfp identifier      : QSFP-DD
xsfp wave length     : 850 nm
Vcc                  : 3270.10 mV
Tx Power0            : 1.2010 mW
Rx Power0            : %(rx_power)s
Tx Power1            : 1.1904 mW
Rx Power1            : 0.9920 mW
Tx Power2            : NA
Rx Power2            : NA
Vcc High Thres       : 3465.00 mV
Temp High Thres      : 70 C
TxPower High Thres   : 3.5481 mW
TxPower Low Thres    : 0.2818 mW
RxPower High Thres   : 3.5481 mW
RxPower Low Thres    : 0.1445 mW
Tx Bias0             : 7.9360 mA
Tx Los Flag          : 0x0
Rx Los Flag          : 0x0
Host SNR Lane0       : not supported
Host SNR Lane1       : not supported
Media SNR Lane0      : %(snr)s
Media SNR Lane1      : 22.6289 dB
Physical Code        : NA
"""
TLS = (
    "dev_id:%d, tls switch[%d](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset), "
    "tls alarm time threshold[60]days\n"
)


def optical(present="present", rx_power="0.9187 mW", snr="23.1211 dB"):
    """What hccn_tool prints of an optical module."""
    return OPTICAL % {"present": present, "rx_power": rx_power, "snr": snr}


class Hccn:
    """hccn_tool of the driver tree ``tree``, with answers for the chips 0 to ``chips`` - 1; all is well with their ports."""

    def __init__(self, tree, chips=2, subnet="10.20.0"):
        self.tree = pathlib.Path(str(tree))
        self.directory = self.tree / "hccn"
        program = self.tree / "tools" / "hccn_tool"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.directory.mkdir()
        self.chips = chips
        for chip in range(chips):
            self.address(chip, "%s.%d" % (subnet, 10 + chip))
            self.answer(chip, "link", "link status: UP\n")
            self.answer(chip, "speed", "Speed: 200000 Mb/s\n")
            self.answer(chip, "gateway", "default gateway:%s.1, Iface:eth%d\n" % (subnet, chip))
            self.answer(chip, "net_health", "net health status: Success\n")
            self.answer(chip, "tls", TLS % (chip, 0))
            self.answer(chip, "fec", "fec mode: rs FEC mode\n")
            self.answer(chip, "mtu", "mtu:4096\n")
            self.answer(chip, "optical", optical())

    def answer(self, chip, item, text, fails=False):
        """What it prints; whether it fails then."""
        answer = self.directory / str(chip) / item
        answer.parent.mkdir(exist_ok=True)
        answer.write_text(text)
        if fails:
            self.mark(chip, item, "fails")

    def address(self, chip, address, netmask="255.255.255.0"):
        self.answer(chip, "ip", "ipaddr:%s\nnetmask:%s\n" % (address, netmask))

    def ping(self, chip, address, received=3):
        """What a ping of an address through the chip's port prints."""
        lost = (3 - received) * 100 / 3
        text = "device %d PING %s\n%s" % (chip, address, "recv seq=0,time=0.114000ms\n" if received else "recv time out seq=0\n")
        self.answer(chip, "ping-" + address, text + "3 packets transmitted, %d received, %.2f%% packet loss\n" % (received, lost))

    def mark(self, chip, item, what):
        """``fails``, ``hangs``, or ``busy``: refused once."""
        (self.directory / str(chip) / ("%s.%s" % (item, what))).touch()

    def config(self, fs, **lines):
        """Write /etc/hccn.conf of that host as the ports are; ``lines``: other values, such as address_0."""
        known = {}
        for chip in range(self.chips):
            address, netmask = (line.partition(":")[2] for line in self._answered(chip, "ip").splitlines())
            known.update({"address_%d" % chip: address, "netmask_%d" % chip: netmask})
            known["gateway_%d" % chip] = self._answered(chip, "gateway").partition(":")[2].partition(",")[0]
        known.update(lines)
        text = "".join("%s=%s\n" % (name, value) for name, value in known.items() if value is not None)
        path = pathlib.Path(str(fs)) / "etc" / "hccn.conf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _answered(self, chip, item):
        return (self.directory / str(chip) / item).read_text()

    @property
    def calls(self):
        """The arguments of all calls, in order."""
        path = self.directory / "calls"
        return path.read_text().splitlines() if path.exists() else []


def chips_of_host(fs, count=2, device="d802"):
    """That many chips on the PCI bus and in /dev of the host below ``fs``."""
    for number in range(count):
        directory = os.path.join(str(fs), "sys/bus/pci/devices/0000:%02x:00.0" % number)
        os.makedirs(directory)
        for name, value in (("vendor", "19e5"), ("class", "120000"), ("device", device), ("subsystem_device", "3003")):
            pathlib.Path(directory, name).write_text("0x%s\n" % value)
        os.makedirs(os.path.join(str(fs), "dev"), exist_ok=True)
        pathlib.Path(str(fs), "dev", "davinci%d" % number).touch()
