# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network ports of the chips of a host (RoCE): what hccn_tool says of each, and what /etc/hccn.conf does."""

from __future__ import annotations

import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import device_nodes, hccn_config, hccn_tool, pci
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

# Families whose chips have a port that this hccn_tool knows. That of 950 has other commands.
FAMILIES = ("910A", "910B", "910C")
_ITEMS = ("link", "optical", "ip", "gateway", "net_health", "tls", "speed", "fec", "mtu")


def gather(tree, fs="", timeout=10, total=120, tool=None, items=_ITEMS):
    """{roce, reason, cabled, chips, config}: the ports of this host.

    tree: the driver tree; fs: path of the host's /; timeout, total: seconds for one call of hccn_tool and for all; tool: an
    HccnTool, for tests; items: what to ask each port for; the rest is None. ``roce``: whether the chips have ports; if not,
    ``reason`` says why. ``cabled``: whether any of them has a link or an optical module. Raises NpuError for a host with chips of
    several families.
    """
    family = pci.family_of(pci.chip_functions(fs + "/sys/bus/pci/devices"))
    if family is None:
        return _without("this host has no chips")
    if family.name not in FAMILIES:
        return _without("hccn_tool of %s chips is not supported, or does not exist: no port is checked" % family.name)
    tool = tool or hccn_tool.HccnTool(tree, timeout)
    if not tool.exists():
        return _without("the driver has no %s" % tool.path)
    config, config_problem = _config(fs)
    ports = _Ports(tool, time.monotonic() + total)
    chips = [ports.read(chip, items) for chip in device_nodes.numbers(fs)]
    if chips and all(chip["link"] is None and not chip["problems"] for chip in chips):
        return _without("hccn_tool says that this product has no such ports")
    for chip in chips:
        chip["configured"] = config.of(chip["chip"])
    problems = config.problems if config_problem is None else [config_problem]
    return {
        "roce": True,
        "reason": None,
        "cabled": any(map(_is_cabled, chips)),
        "chips": chips,
        "config": {"exists": config.exists, "problems": problems},
    }


def _without(reason):
    return {"roce": False, "reason": reason, "cabled": False, "chips": [], "config": {"exists": False, "problems": []}}


def _config(fs):
    """(the HccnConfig, why it cannot be read or None)."""
    try:
        return hccn_config.read(fs), None
    except NpuError as exc:
        return hccn_config.HccnConfig(True, {}, []), exc.message


def _is_cabled(chip):
    """Whether the port has, or may have, something at its other end. What could not be read may be anything."""
    module = chip["optical"]
    return chip["link"] == "UP" or bool(module and module["present"]) or "link" in chip["problems"] or "optical" in chip["problems"]


class _Ports:
    """Reads ports one after the other, until a call hangs or the time is over."""

    def __init__(self, tool, deadline):
        self._tool = tool
        self._deadline = deadline
        self._ended = None  # why no further call is made

    def read(self, number, items):
        chip = dict.fromkeys(("link", "speed", "address", "netmask", "gateway", "net_health", "tls", "fec", "mtu", "optical"))
        problems = {}
        chip.update(chip=number, problems=problems)
        for item in items:
            try:
                value = self._get(number, item)
            except NpuError as exc:
                problems[item] = exc.message
                continue
            if item == "ip":
                chip["address"], chip["netmask"] = value or (None, None)
            else:
                chip[item] = value
        return chip

    def _get(self, number, item):
        """The value of an item; None if the chip does not have it. Raises NpuError if it is unknown."""
        if self._ended is None and time.monotonic() >= self._deadline:
            self._ended = "hccn_tool took too long, so not all chips were asked for everything"
        if self._ended is not None:
            raise NpuError(self._ended)
        try:
            return self._tool.get(number, item)
        except hccn_tool.Absent:
            return {"present": False} if item == "optical" else None
        except hccn_tool.Unsupported:
            return None
        except hccn_tool.Hangs as exc:
            self._ended = exc.message
            raise
