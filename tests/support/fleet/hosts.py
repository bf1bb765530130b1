# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts as the filter npu_hosts makes them, with facts of an installed driver."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES

KERNEL = "6.6.0-145.0.4.135.oe2403sp3.aarch64"
OLD, NEW = "25.5.0", "25.5.2"
OLD_DIGEST, NEW_DIGEST = "sha256:" + "0a" * 32, "sha256:" + "1b" * 32
REPOSITORY = "registry.example/mlops/ascend-driver"


def release(version: str, digest: str) -> str:
    return "%s-%s-%s" % (version, KERNEL, digest[7:19])


OLD_RELEASE, NEW_RELEASE = release(OLD, OLD_DIGEST), release(NEW, NEW_DIGEST)


def host(
    name: str = "a",
    loaded: str = OLD_RELEASE,
    device: str = "d802",
    validation: Any = None,
    config: Any = None,
    variables: Any = (),
    **changes: Any,
) -> Any:
    """An installed host that is the node of its name; ``changes`` are to its facts."""
    staged = {loaded: {"version": loaded.partition("-")[0], "kernel": KERNEL, "digest": OLD_DIGEST, "firmware": None}}
    facts = {
        "boot_id": "boot-" + name,
        "kernel": KERNEL,
        "kernel_key": "6.6.0-145.0.4.135",
        "os_key": "oe2403sp3",
        "os": {"id": "openEuler", "version_id": "24.03", "pretty_name": "openEuler 24.03 (LTS-SP3)"},
        "machine": "aarch64",
        "chip_count": 8,
        "family": FAMILIES[device]._asdict(),
        "firmware_version": None,
        "driver": {
            "managed": True,
            "loaded": True,
            "release": loaded,
            "good": loaded,
            "loaded_release": loaded,
            "loaded_version": loaded.partition("-")[0],
        },
        "disk": {"path": "/var/lib/Ascend", "free_bytes": 50 * 2**30},
        "upgrade": {"previous": None, "staged": staged, "holders": []},
        "problems": [],
    }
    return {
        "name": name,
        "facts": dict(facts, **changes),
        "error": None,
        "unreachable": False,
        "validation": {"valid": True, "checks": []} if validation is None else validation,
        "config": dict({"driver_version": NEW, "driver_repository": REPOSITORY}, **(config or {})),
        "variables": list(variables),
    }


def unreachable(name: str = "a") -> Any:
    return dict(host(name), facts=None, validation=None, unreachable=True, error="ssh: connect to host a port 22: timed out")
