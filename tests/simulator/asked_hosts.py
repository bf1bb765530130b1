# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What npu_facts finds out about a host, with the checks of npu_validate, as the filter npu_hosts passes it on."""

from __future__ import annotations

from typing import Any

from simulator.controller import HostPort
from simulator.host import KERNELS, NEW, RELEASES, of_kernel
from support.fleet import hosts as fleet_hosts

_STAGED = {
    release: {"version": release.partition("-")[0], "kernel": kernel, "digest": "sha256:" + release[-1] * 64, "firmware": None}
    for kernel in KERNELS
    for release in (of_kernel(name, kernel) for name in RELEASES)
}


def digest_of(version: str) -> str:
    """Of the image of the driver ``version``, for whichever kernel."""
    return next(str(staged["digest"]) for staged in _STAGED.values() if staged["version"] == version)


def ask(name: str, port: HostPort, version: str, policy: str) -> Any:
    """One host; ``version``: npu_driver_version; ``policy``: npu_firmware_policy. Raises HostUnreachable."""
    view, validation, brings = port.facts()
    staged = [release for release in _STAGED if release in view["releases"] or _STAGED[release]["kernel"] == KERNELS[0]]
    following = view["next_kernel"]
    asked = fleet_hosts.host(
        name,
        validation=_checked(validation),
        config={"driver_version": version, "firmware_policy": policy},
        boot_id=view["boot_id"],
        kernel=view["kernel"],
        next_kernel=None
        if following in (None, view["kernel"])
        else {"kernel": following, "release": of_kernel(NEW, following), "symvers": None},
        uptime=view["uptime"],
        driver=_driver(view),
        upgrade={
            "generation": view["generation"],
            "previous": view["previous"],
            "trial": _trial(view),
            "staged": {
                release: dict(_STAGED[release], brings={"version": brings[release], "drivers": []} if release in brings else None)
                for release in staged
            },
            "holders": view["holders"],
            "flash": view["firmware"],
        },
    )
    # What install reads of it.
    asked["ready"] = view["ready"]
    return asked


def unreachable(name: str, version: str) -> Any:
    asked = fleet_hosts.unreachable(name)
    asked["config"] = dict(asked["config"], driver_version=version)
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
