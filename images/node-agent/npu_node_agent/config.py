# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's settings: each is a flag or an environment variable."""

from __future__ import annotations

import argparse
import os
import re
from typing import Mapping, Optional, Sequence

ENVIRONMENT_PREFIX = "NPU_AGENT_"
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86400:
        raise argparse.ArgumentTypeError("%s is not a number of seconds between 0 and 86400 (a day)" % text)
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 0 < value < 1000:
        raise argparse.ArgumentTypeError("%s is not between 1 and 999" % text)
    return value


def _switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError("%s is neither true nor false" % text)
    return text == "true"


def _address(text: str) -> tuple:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError("%s is not host:port" % text)
    return host.strip("[]"), int(port)


# name, default, type, help
_SETTINGS = (
    ("node-name", "", str, "name of this node in the cluster; if empty, nothing is reported to the API server"),
    ("kubelet-dir", "/var/lib/kubelet/device-plugins", str, "the kubelet's directory for sockets of device plugins"),
    ("plugin-dir", "/var/lib/npuops/device-plugins", str, "the directory that the device plugin uses instead"),
    ("run-dir", "/run/npuops", str, "directory of the markers"),
    ("boot-id-file", "/proc/sys/kernel/random/boot_id", str, "file with the boot ID of the host"),
    ("cdi-spec", "/etc/cdi/huawei.com-npu.json", str, "the CDI spec of the host"),
    ("driver-tree", "/var/lib/Ascend/driver", str, "the driver tree, through its link"),
    (
        "npu-smi",
        "/usr/local/sbin/npu-smi:/usr/local/bin/npu-smi",
        str,
        "paths of npu-smi if it is not in the driver tree, separated by colons",
    ),
    ("pci-devices", "/sys/bus/pci/devices", str, "sysfs directory of PCI functions"),
    ("dev-dir", "/dev", str, "directory of the device nodes"),
    ("kernel-log", "/dev/kmsg", str, "the records of the kernel log"),
    ("probe-interval", "60", _seconds, "seconds between two probes"),
    ("probe-timeout", "30", _seconds, "seconds after which a probe is considered hung"),
    ("probe-failures", "3", _count, "consecutive failures after which the driver is considered wedged"),
    # The address of the pod may be of either family.
    ("metrics-address", ":9461", _address, "address (host:port) for /metrics, /healthz and /readyz; without a host, all addresses"),
    ("api-server", "", str, "URL of the API server; if empty, that of the cluster in which the agent runs"),
    ("api-token-file", _SERVICE_ACCOUNT + "/token", str, "file with the bearer token, read for every request"),
    ("api-ca-file", _SERVICE_ACCOUNT + "/ca.crt", str, "file with the CA of the API server's certificate"),
    ("device-taints", "false", _switch, "whether to keep a DeviceTaintRule without an effect for each chip that does not serve"),
    ("log-level", "info", str, "debug, info, warning or error"),
)


def parse(arguments: Sequence[str], environment: Optional[Mapping[str, str]] = None) -> argparse.Namespace:
    """The settings. A flag takes precedence over its variable, and that over the default. Exits with 2 on an invalid value."""
    environment = os.environ if environment is None else environment
    parser = argparse.ArgumentParser(
        prog="npu-node-agent",
        description="CDI bridge and health watch for Ascend NPUs. Every flag can also be set in the environment, for example "
        "--probe-interval as %sPROBE_INTERVAL." % ENVIRONMENT_PREFIX,
        allow_abbrev=False,
    )
    for name, default, kind, text in _SETTINGS:
        variable = ENVIRONMENT_PREFIX + re.sub("-", "_", name).upper()
        parser.add_argument("--" + name, default=environment.get(variable, default), type=kind, help=text)
    settings = parser.parse_args(arguments)
    if settings.log_level.lower() not in ("debug", "info", "warning", "error"):
        parser.error("--log-level: %s is not one of debug, info, warning, error" % settings.log_level)
    if settings.probe_timeout >= settings.probe_interval:
        parser.error("--probe-timeout must be less than --probe-interval, because only one probe runs at a time")
    return settings
