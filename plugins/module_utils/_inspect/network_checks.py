# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the network ports of a host work and are as /etc/hccn.conf says, as far as the host itself can tell.

The rule is that a host which serves gives no false alarm. What is unknown is no failure, and neither is a port that nothing uses.
"""

from __future__ import annotations

import collections

from ansible_collections.npuops.ascend.plugins.module_utils._chips.hccn_config import PATH

Finding = collections.namedtuple("Finding", "name expected wrong advice")
Finding.__doc__ = (
    """One check: what is ``expected``, ``wrong``: a phrase for each chip that is not so, ``advice``: what to do then."""
)

# What the device plugin takes for a fault of the network, too. Init is a port without a detection address; the rest is unclear.
_BAD_HEALTH = ("Socket fail", "Receive timeout", "Unreachable", "Time exceeded", "Fault", "Thread error")
# MindCluster's tools call less than 18 dB bad, its documentation less than 12 dB.
_LEAST_SNR = 12.0
_MOST_PHRASES = 8

_READ_ADVICE = "Run hccn_tool -i CHIP -link -g on the host, and check dmesg"
_CONFIG_ADVICE = (
    "Programs in containers take the addresses from %s, and the chip uses its own, so they must be equal. If the file is right, "
    "hccn_tool -i CHIP -cfg recovery applies it; if the chip is, hccn_tool -i CHIP -ip -s address ADDRESS netmask NETMASK writes "
    "it. Both interrupt jobs on the chip" % PATH
)
_ADDRESS_ADVICE = "Jobs that use several hosts cannot use these chips. Set an address with hccn_tool -i CHIP -ip -s"
_LINK_ADVICE = (
    "Check cable, optical module and port of the switch. hccn_tool -i CHIP -link_stat -g shows since when the link is down"
)
_HEALTH_ADVICE = (
    "The chip probes its detection address (hccn_tool -i CHIP -netdetect -g) and gets no answer, and the device plugin withdraws "
    "it. Check that the address exists, and the port and VLAN of the switch"
)
_OPTICAL_ADVICE = "Clean or replace the fiber, then the optical module: the link loses packets or is about to fail"


def findings(ports, family):
    """All checks of ``ports`` (of hccn_ports.gather) as a list of Finding; empty if the host has no ports, or does not use them."""
    if not ports["roce"] or not ports["cabled"]:
        return []
    chips = ports["chips"]
    return [
        Finding("network_ports", "hccn_tool answers for each chip", _unread(chips), _READ_ADVICE),
        Finding(
            "network_config", "each chip as in %s" % PATH, ports["config"]["problems"] + _different(chips, family), _CONFIG_ADVICE
        ),
        Finding("network_address", "an address for each chip", _without_address(chips), _ADDRESS_ADVICE),
        Finding("network_link", "each port in use is up", _down(chips), _LINK_ADVICE),
        Finding("network_health", "no fault of the network", _faults(chips), _HEALTH_ADVICE),
        Finding("network_optical", "powers and signal-to-noise ratios within limits", _weak(chips), _OPTICAL_ADVICE),
    ]


def phrases(finding):
    """What is wrong, in one line."""
    left = len(finding.wrong) - _MOST_PHRASES
    return "; ".join(finding.wrong[:_MOST_PHRASES]) + ("; and %d more" % left if left > 0 else "")


def notes(ports):
    """What a person should know of the ports besides the checks, as sentences."""
    if ports["roce"] and not ports["cabled"]:
        return ["No network port of the chips has a link or an optical module, so they were not checked"]
    unknown = {}
    for chip in ports["chips"]:
        for item, problem in chip["problems"].items():
            if item != "link":
                unknown.setdefault(problem, []).append("%d" % chip["chip"])
    return ["Chip %s: %s" % (", ".join(numbers), problem) for problem, numbers in list(unknown.items())[:_MOST_PHRASES]]


def _unread(chips):
    return ["chip %d: %s" % (chip["chip"], chip["problems"]["link"]) for chip in chips if "link" in chip["problems"]]


def _in_use(chip):
    """Whether the port has an address, or is to have one."""
    configured = chip["configured"] or {}
    return bool(chip["address"] or configured.get("address") or configured.get("dhcp"))


def _different(chips, family):
    wrong = []
    for chip in chips:
        configured = chip["configured"]
        if not configured or configured["dhcp"]:
            continue
        for field, item in (("address", "ip"), ("netmask", "ip"), ("gateway", "gateway"), ("mtu", "mtu"), ("tls", "tls")):
            wanted, seen = configured[field], chip[field]
            if wanted is None or wanted == seen or item in chip["problems"]:
                continue
            # The chips of a 910A board share one gateway, which is in the file for one of them.
            if field == "gateway" and family == "910A":
                continue
            # Unsupported, not absent: only addresses and gateways can be absent.
            if seen is None and field in ("mtu", "tls"):
                continue
            wrong.append("chip %d: %s %s, the file has %s" % (chip["chip"], field, _shown(seen), _shown(wanted)))
    return wrong


def _shown(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def _without_address(chips):
    """Ports with a link and no address, where most others of the host have one."""
    known = [chip for chip in chips if "ip" not in chip["problems"]]
    without = [chip for chip in known if not chip["address"]]
    if len(known) - len(without) <= max(len(without), 2):
        return []
    return ["chip %d has none" % chip["chip"] for chip in without if chip["link"] == "UP" and not _in_use(chip)]


def _down(chips):
    return ["chip %d is down%s" % (chip["chip"], _module(chip)) for chip in chips if chip["link"] == "DOWN" and _in_use(chip)]


def _module(chip):
    return ", no optical module" if chip["optical"] and not chip["optical"]["present"] else ""


def _faults(chips):
    return [
        "chip %d: %s" % (chip["chip"], chip["net_health"])
        for chip in chips
        # Without a link, it can be nothing else.
        if chip["net_health"] in _BAD_HEALTH and chip["link"] == "UP" and _in_use(chip)
    ]


def _weak(chips):
    wrong = []
    for chip in chips:
        module = chip["optical"]
        if module and module["present"] and _in_use(chip):
            wrong += ["chip %d: %s" % (chip["chip"], phrase) for phrase in _power_phrases(module) + _snr_phrases(module)]
    return wrong


def _power_phrases(module):
    found = []
    for field, told in (("tx_power", "sent"), ("rx_power", "received")):
        least, most = module[field + "_low"], module[field + "_high"]
        # Some modules have no limits, or write nonsense for them.
        if least is None or most is None or most <= least:
            continue
        bad = {lane: power for lane, power in enumerate(module[field]) if power is not None and not least <= power <= most}
        if bad:
            found.append("%s power of %s mW, limits %.4f to %.4f mW" % (told, _lanes(bad, "%.4f"), least, most))
    return found


def _snr_phrases(module):
    found = []
    for side in ("host", "media"):
        # Modules that do not measure it say 0.
        ratios = {lane: ratio for lane, ratio in enumerate(module[side + "_snr"]) if ratio}
        bad = {lane: ratio for lane, ratio in ratios.items() if ratio < _LEAST_SNR}
        if bad:
            found.append("%s SNR of %s dB, less than %.0f dB" % (side, _lanes(bad, "%.1f"), _LEAST_SNR))
    return found


def _lanes(values, form):
    """lane 1: 0.01; lanes 0, 1: 0.01, 0.02"""
    lanes = ", ".join(map(str, values))
    return "%s %s: %s" % ("lane" if len(values) == 1 else "lanes", lanes, ", ".join(form % value for value in values.values()))
