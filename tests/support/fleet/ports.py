# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network ports of simulated fleets: sites with their layouts of addresses, as hosts answer for them."""

from __future__ import annotations

import dataclasses

from ansible_collections.npuops.ascend.plugins.plugin_utils._network.fleet_ports import Port

MASK = "255.255.255.0"
# How addresses are given: (number of the host, chip) -> (address, netmask, gateway).
LAYOUTS = {
    "one network": lambda host, chip: ("10.0.%d.%d" % divmod(host * 8 + chip + 10, 256), "255.255.0.0", None),
    "rails": lambda host, chip: ("10.%d.0.%d" % (chip, host + 10), MASK, "10.%d.0.1" % chip),
    "four rails": lambda host, chip: ("10.%d.0.%d" % (chip % 4, host * 2 + chip // 4 + 10), MASK, None),
    "racks": lambda host, chip: ("10.%d.%d.%d" % (host // 8, chip, host % 8 + 10), MASK, "10.%d.%d.1" % (host // 8, chip)),
    "racks without rails": lambda host, chip: (
        "10.0.%d.%d" % (host // 8, host % 8 * 8 + chip + 10),
        MASK,
        "10.0.%d.1" % (host // 8),
    ),
    "each port alone": lambda host, chip: ("10.%d.%d.2" % (host, chip), "255.255.255.252", "10.%d.%d.1" % (host, chip)),
    # 26 hosts fill a network, and the last of them has its last chips in the next one.
    "filled networks": lambda host, chip: ("10.0.%d.%d" % divmod(host * 8 + chip, 250), MASK, "10.0.0.254"),
}


def fleet(layout, hosts=32, chips=8):
    """The ports of a fleet in order, by (number of the host, chip)."""
    ports = {}
    for host in range(hosts):
        for chip in range(chips):
            address, netmask, gateway = LAYOUTS[layout](host, chip)
            ports[host, chip] = Port(
                "npu-%02d" % host, chip, "910B", "UP", 200000, address, netmask, gateway, False, 4096, configured=address
            )
    return ports


def changed(ports, at, **changes):
    """The ports, of which one differs."""
    return list({**ports, at: dataclasses.replace(ports[at], **changes)}.values())


def as_hosts(ports, mode="warn", checks=(), answers=None):
    """What the filter npu_hosts makes of hosts with these ports. ``answers``: {host: results of its pings}."""
    hosts = {}
    for port in ports:
        chip = {name: getattr(port, name) for name in ("chip", "link", "speed", "address", "netmask", "gateway", "tls", "mtu")}
        chip["configured"] = {"address": port.configured, "dhcp": False} if port.configured else None
        host = hosts.setdefault(port.host, {
            "name": port.host, "facts": {"family": {"name": port.family}, "driver": {"tree": "/var/lib/Ascend/driver"}},
            "validation": {"valid": True, "network": {
                "mode": mode, "roce": True, "reason": None, "cabled": True, "chips": [], "checks": list(checks)}},
            "unreachable": False, "error": None,
        })  # fmt: skip
        host["validation"]["network"]["chips"].append(chip)
    for name, results in (answers or {}).items():
        hosts[name]["pings"] = results
    return list(hosts.values())
