# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What npu_facts finds out about a host, with the checks of npu_validate, as the filter npu_hosts passes it on."""

from __future__ import annotations

from typing import Any

from simulator.controller import HostPort
from simulator.host import NEW, OLD
from support.fleet import hosts as fleet_hosts

_KERNEL = "k"
_STAGED = {
    release: {"version": release.partition("-")[0], "kernel": _KERNEL, "digest": "sha256:" + release[-1] * 64, "firmware": None}
    for release in (OLD, NEW)
}


def digest_of(release: str) -> str:
    return str(_STAGED[release]["digest"])


def ask(name: str, port: HostPort, policy: str) -> Any:
    """One host; ``policy``: npu_firmware_policy. Raises HostUnreachable."""
    view, validation, brings = port.facts()
    asked = fleet_hosts.host(
        name,
        validation=_checked(validation),
        config={"driver_version": NEW.partition("-")[0], "firmware_policy": policy},
        boot_id=view["boot_id"],
        kernel=_KERNEL,
        uptime=view["uptime"],
        driver=_driver(view),
        upgrade={
            "previous": view["previous"],
            "trial": _trial(view),
            "staged": {
                release: dict(staged, brings={"version": brings[release], "drivers": []} if release in brings else None)
                for release, staged in _STAGED.items()
            },
            "holders": view["holders"],
            "flash": view["firmware"],
        },
    )
    # What install reads of it.
    asked["ready"] = view["ready"]
    return asked


def unreachable(name: str) -> Any:
    asked = fleet_hosts.unreachable(name)
    asked["config"] = dict(asked["config"], driver_version=NEW.partition("-")[0])
    asked["ready"] = None
    return asked


def _driver(view: dict[str, Any]) -> dict[str, Any]:
    """Modules that could not be loaded leave no trace of a driver."""
    there = view["failed"] is None
    return {
        "managed": True,
        "loaded": there,
        "release": view["driver"],
        "good": view["good"],
        "next": view["next"],
        "loaded_release": view["driver"] if there else None,
        "loaded_version": view["loaded_version"] if there else None,
        "failed": view["failed"],
        "complete": True,
    }


def _trial(view: dict[str, Any]) -> str | None:
    trial = view["trial"] or {}
    return trial.get("release") if trial.get("boot_id") == view["boot_id"] else None


def _checked(validation: dict[str, Any]) -> dict[str, Any]:
    check = {"name": "npu_smi", "ok": validation["valid"], "expected": "an answer", "seen": "none", "message": validation["msg"]}
    return dict(validation, checks=[check])
