# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be wrong with simulated hardware, or with a simulated driver: the kinds and their arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass

CHIP = r"\d+(,\d+)*|all"
NUMBER = r"\d+"
IPV4 = r"\d{1,3}(\.\d{1,3}){3}"


@dataclass(frozen=True)
class Fault:
    """A kind of fault: its arguments as (name, pattern, default), what it does, whether a reboot heals it."""

    does: str
    arguments: tuple[tuple[str, str, str], ...] = ()
    healed_by_reboot: bool = False

    @property
    def usage(self) -> str:
        return " ".join(f"[{name}={default}]" for name, _, default in self.arguments)


FAULTS = {
    "wedge": Fault("every call of the driver library fails with -8005; a reboot heals it", healed_by_reboot=True),
    "chip-lost": Fault(
        "a chip is off the bus: its PCI function reads as ones (rev ff), npu-smi knows it no more", (("CHIP", CHIP, "0"),)
    ),
    "fewer-chips": Fault("npu-smi shows N chips fewer than PCI does", (("N", NUMBER, "1"),)),
    "not-ready": Fault("a chip answers -8012, not ready", (("CHIP", CHIP, "0"),)),
    "alarm": Fault(
        "a chip is unhealthy with a fault code; LEVEL is Warning, Alarm or Critical",
        (("CHIP", CHIP, "0"), ("CODE", r"[0-9A-F]{8}", "80E01801"), ("LEVEL", "Warning|Alarm|Critical", "Alarm")),
    ),
    "no-dev-node": Fault("/dev/davinciN of a chip is missing", (("CHIP", CHIP, "0"),)),
    "slow-devices": Fault("device nodes appear only SECONDS after the last module", (("SECONDS", NUMBER, "30"),)),
    "wrong-version": Fault("the loaded modules say they are VERSION, whatever is on disk", (("VERSION", r"[\w.]+", "24.1.rc2.2"),)),
    "load-fails": Fault("loading MODULE fails: No such device", (("MODULE", r"\w+", "drv_pcie_host"),)),
    "smi-hangs": Fault("npu-smi hangs and ignores every signal but KILL"),
    "smi-fails": Fault("npu-smi fails with CODE", (("CODE", r"-\d{4}", "-8020"),)),
    "smi-garbage": Fault("npu-smi prints garbage and exits with 0"),
    "slow-calls": Fault("each call of the driver library takes SECONDS", (("SECONDS", NUMBER, "4"),)),
    "flash-fails": Fault("writing firmware to the flash of a chip fails; what it had stays", (("CHIP", CHIP, "0"),)),
    "slow-flash": Fault("writing the flash of each chip takes SECONDS, or until this is cleared", (("SECONDS", NUMBER, "30"),)),
    "flash-ignored": Fault("a chip does not take the firmware in its flash when it is switched on", (("CHIP", CHIP, "0"),)),
    "vnpu-create-fails": Fault(
        "creating a virtual NPU on a chip fails; with LEFT leftover, it is there and holds its cores all the same",
        (("CHIP", CHIP, "0"), ("LEFT", "clean|leftover", "clean")),
    ),
    "vnpu-held": Fault("a container uses these virtual NPUs: they cannot be destroyed", (("IDS", r"\d+(,\d+)*", "100"),)),
    "link-down": Fault("the network port of a chip is down", (("CHIP", CHIP, "0"),)),
    "optical-weak": Fault("the optical module of a chip receives too little light; its link is up", (("CHIP", CHIP, "0"),)),
    "stale-address": Fault("the network port of a chip has an address of another network", (("CHIP", CHIP, "0"),)),
    "duplicate-address": Fault(
        "the network port of a chip has the address of another chip, by default of npu-b's first",
        (("CHIP", CHIP, "0"), ("ADDRESS", IPV4, "10.64.12.10")),
    ),
    "recovery-fails": Fault("hccn_tool -cfg recovery fails for a chip", (("CHIP", CHIP, "0"),)),
    "diagnosis-fails": Fault("an item of ascend-dmi fails", (("ITEM", r"[A-Za-z]+", "hbm"),)),
    "slow-diagnosis": Fault("ascend-dmi takes SECONDS longer", (("SECONDS", NUMBER, "30"),)),
    "slow-boot": Fault("the next boots take SECONDS longer", (("SECONDS", NUMBER, "60"),)),
    "hang": Fault("loading the driver freezes the node, until lab/power cycles it"),
    "no-return": Fault("the node does not come back from its next reboot, until it is cleared"),
}

# What a bad driver can be to blame for.
OF_DRIVERS = (
    "load-fails",
    "wrong-version",
    "fewer-chips",
    "chip-lost",
    "no-dev-node",
    "not-ready",
    "alarm",
    "wedge",
    "smi-hangs",
    "smi-fails",
    "slow-devices",
    "hang",
)


def words(kind: str, values: list[str]) -> list[str]:
    """The fault's arguments with defaults filled in; ValueError when one makes no sense."""
    expected = FAULTS[kind].arguments
    if len(values) > len(expected):
        raise ValueError(f"{kind} takes no more than: {FAULTS[kind].usage or 'no argument'}")
    result = [*values, *(default for _, _, default in expected[len(values) :])]
    for (name, pattern, _), value in zip(expected, result, strict=True):
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{kind}: {value!r} is no {name}")
    return result
