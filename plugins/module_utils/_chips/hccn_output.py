# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hccn_tool prints, as data.

The formats are those of the tool's source in hicann/driver, and of captures in MindCluster's and vllm-ascend's guides. A line with
the right name and a value of another form is refused: a wrong guess would be a false alarm, or hide a real one.
"""

from __future__ import annotations

import ipaddress
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line, printable

# What the tool has for the result of its own probes of the detection address (netdetect).
NET_HEALTH = (
    "Success",
    "Socket fail",
    "Receive timeout",
    "Unreachable",
    "Time exceeded",
    "Fault",
    "Init",
    "Thread error",
    "Detect ip set",
    "Unknown",
)

_DECIMAL = r"([0-9]{1,8}(?:\.[0-9]{1,8})?)"
_ADDRESS = r"([0-9]{1,3}(?:\.[0-9]{1,3}){3})"
_LINK = re.compile(r"link status: (UP|DOWN)")
_SPEED = re.compile(r"Speed: (?:([0-9]{1,8}) Mb/s|Unknown!)")
_PORT = re.compile(r"ipaddr:%s\nnetmask:%s(?:\n|\Z)" % (_ADDRESS, _ADDRESS))
_GATEWAY = re.compile(r"default gateway:%s(?:, ?Iface:\w{1,16})?" % _ADDRESS)
_HEALTH = re.compile(r"net health status: (%s)(?:ed)?" % "|".join(NET_HEALTH))
_TLS = re.compile(r"(?:dev_id:|device )[0-9]{1,4}, tls switch\[([01])\]")
_FEC = re.compile(r"fec mode: (\w{1,16}) FEC mode")
_MTU = re.compile(r"mtu ?: ?([0-9]{1,5})")
_FIELD = re.compile(r"([A-Za-z][A-Za-z ]{0,30}?)([0-9]?) *: (.{1,80})")
_NO_VALUE = ("NA", "not supported", "get failed")

# Names of fields of an optical module: of one for each lane, and of one for the module.
_LANES = {
    "Tx Power": ("tx_power", "mW"),
    "Rx Power": ("rx_power", "mW"),
    "Host SNR Lane": ("host_snr", "dB"),
    "Media SNR Lane": ("media_snr", "dB"),
}
_LIMITS = {
    "TxPower High Thres": ("tx_power_high", "mW"),
    "TxPower Low Thres": ("tx_power_low", "mW"),
    "RxPower High Thres": ("rx_power_high", "mW"),
    "RxPower Low Thres": ("rx_power_low", "mW"),
}


def link(text):
    """UP or DOWN."""
    return _only("link", _LINK, text).group(1)


def speed(text):
    """In Mb/s; None if the tool does not know it."""
    found = _only("speed", _SPEED, text).group(1)
    return int(found) if found else None


def ip(text):
    """(address, netmask) of the chip's port. A tool that prints several ports repeats the same one."""
    found = _PORT.match(text.strip().replace("\r\n", "\n"))
    if not found or not is_address(found.group(1)) or not is_netmask(found.group(2)):
        raise _unreadable("ip", text)
    return found.groups()


def gateway(text):
    """The address of the default gateway."""
    found = _only("gateway", _GATEWAY, text).group(1)
    if not is_address(found):
        raise _unreadable("gateway", text)
    return found


def net_health(text):
    """One of NET_HEALTH."""
    return _only("net_health", _HEALTH, text).group(1)


def tls(text):
    """Whether TLS is on. The lines about certificates are not read."""
    return _first("tls", _TLS, text).group(1) == "1"


def fec(text):
    """The mode of the forward error correction, such as rs."""
    return _only("fec", _FEC, text).group(1)


def mtu(text):
    """In bytes."""
    return int(_only("mtu", _MTU, text).group(1))


def optical(text):
    """The optical module: {present, tx_power, rx_power, host_snr, media_snr, <limits>}; powers in mW, signal-to-noise ratios in dB.

    The lists have an entry for each lane, None for one without a value; limits are None if the module has none.
    """
    lines = text.strip().splitlines()
    if not lines or lines[0].strip() != "optical info:" or len(lines) > 200:
        raise _unreadable("optical", text)
    lanes = {name: {} for name, _unit in _LANES.values()}
    info = dict.fromkeys(name for name, _unit in _LIMITS.values())
    info["present"] = None
    for line in lines[1:]:
        found = _FIELD.match(line.strip())
        if not found:
            continue
        label, lane, value = found.group(1).strip(), found.group(2), found.group(3).strip()
        if label == "present":
            info["present"] = {"present": True, "not present": False}.get(value)
        elif label in _LANES:
            name, unit = _LANES[label]
            lanes[name][int(lane or 0)] = _measured("optical", value, unit, text)
        elif label in _LIMITS:
            name, unit = _LIMITS[label]
            info[name] = _measured("optical", value, unit, text)
    if info["present"] is None:
        raise _unreadable("optical", text)
    for name, values in lanes.items():
        info[name] = [values.get(lane) for lane in range(max(values) + 1)] if values else []
    return info


def ping(text):
    """(sent, received) packets; None if the output does not say so."""
    found = re.search(r"^([0-9]{1,4}) packets transmitted, ([0-9]{1,4}) received, [0-9.]{1,8}% packets? loss", text, re.MULTILINE)
    if found:
        return int(found.group(1)), int(found.group(2))
    # Without a sum, by packet. Its own error is about the command.
    lost = text.count("recv time out seq") + text.count("Destination Host Unreachable")
    received = text.count("recv seq")
    return (lost + received, received) if lost else None


def is_address(text):
    """Whether it is an IPv4 address of one machine, in the usual form."""
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    # Older versions of Python take leading zeros, which others read as octal.
    return str(address) == text and not (address.is_multicast or address.is_loopback or address.is_unspecified)


def is_netmask(text):
    """Whether it is the netmask of a network with room for a machine."""
    try:
        network = ipaddress.IPv4Network("0.0.0.0/" + text)
    except ValueError:
        return False
    # 0.0.0.255 is taken for a mask, too.
    return str(network.netmask) == text and network.prefixlen > 0


# What the tool answers: parser and the fields that the result is for.
PARSERS = {
    "link": link,
    "speed": speed,
    "ip": ip,
    "gateway": gateway,
    "net_health": net_health,
    "tls": tls,
    "fec": fec,
    "mtu": mtu,
    "optical": optical,
}


def _only(item, expression, text):
    found = expression.fullmatch(text.strip())
    if not found:
        raise _unreadable(item, text)
    return found


def _first(item, expression, text):
    found = expression.match(text.lstrip())
    if not found:
        raise _unreadable(item, text)
    return found


def _measured(item, value, unit, text):
    if value in _NO_VALUE:
        return None
    found = re.fullmatch("%s %s" % (_DECIMAL, unit), value)
    if not found:
        raise _unreadable(item, text)
    return float(found.group(1))


def _unreadable(item, text):
    shown = printable(one_line(text[:600]), 200) if text.strip() else "nothing"
    return NpuError("hccn_tool -%s -g printed something that this version of npuops.ascend cannot parse: %s" % (item, shown))
