# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for hosts that take their driver from a package."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.contents import PackageContents

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_RELEASE, host
from support.fleet.planning import backward, make, only

NEXT = "6.6.0-150.0.0.139.oe2403sp3.aarch64"
PACKAGE = "https://files.example.com/Ascend-hdk-910b-npu-driver_%s_linux-aarch64.run" % NEW


def by_package(name="a", entry=None, **more):
    entry = entry or host(name, **more)
    entry["config"].update(
        driver_source="package",
        driver_version=NEW,
        driver_package=PACKAGE + "?token=SECRET",
        driver_package_sha256=NEW_DIGEST.rpartition(":")[2],
    )
    return entry


def lookups(unpacked=30, kernels=(KERNEL, NEXT), error=None, **more):
    def look(_source, _config):
        if error:
            raise NpuError(error)
        return PackageContents(10, unpacked, NEW, "aarch64", tuple(kernels))

    def no_registry(*_arguments):
        raise AssertionError("a registry was asked")

    return {"lookups": {"package": look, "resolve": no_registry, "size": no_registry, "firmware": no_registry, **more}}


def test_an_upgrade_to_a_package():
    entry = only(by_package(), **lookups())
    assert (entry.verdict, entry.reasons) == ("ready", [])
    assert entry.target == {"version": NEW, "release": NEW_RELEASE, "digest": NEW_DIGEST, "image": None, "package": PACKAGE}
    assert "SECRET" not in str(entry.result())


def test_a_host_that_has_it():
    entry = only(by_package(loaded=NEW_RELEASE), **lookups(error="nobody asks"))
    assert entry.verdict == "up-to-date"


def test_pools_with_images_and_with_packages():
    plan = make([host("a"), by_package("b")], lookups={"package": lookups()["lookups"]["package"]})
    assert [(bool(entry.target["image"]), "package" in entry.target) for entry in plan.entries] == [(True, False), (False, True)]


def test_a_package_that_does_not_fit():
    assert "no kernel modules for %s" % KERNEL in " ".join(only(by_package(), **lookups(kernels=[NEXT])).reasons)
    entry = only(by_package(), **lookups(error="x is truncated"))
    assert (entry.verdict, entry.reasons) == ("blocked", ["x is truncated"])


def test_too_little_space():
    disk = {"path": "/var/lib", "free_bytes": 2**30}
    assert only(by_package(disk=disk), **lookups()).verdict == "ready"
    (reason,) = only(by_package(disk=disk), **lookups(unpacked=2**30)).reasons
    assert reason.startswith("/var/lib has 1024 MiB free, staging the package needs 21")


def test_the_next_kernel():
    entry = only(by_package(next_kernel={"kernel": NEXT, "release": None}), **lookups())
    assert entry.verdict == "ready"
    assert [(one["version"], one["package"]) for one in entry.checked.other_kernels] == [(NEW, PACKAGE)]
    # The package is of the new driver only.
    assert any("driver %s cannot be staged for that: %s has driver %s" % (OLD, PACKAGE, NEW) in note for note in entry.notes)
    entry = only(by_package(next_kernel={"kernel": NEXT, "release": None}), **lookups(kernels=[KERNEL]))
    assert entry.verdict == "blocked" and "no kernel modules for %s" % NEXT in entry.reasons[0]


def test_firmware_is_left_alone():
    entry = by_package()
    entry["config"]["firmware_policy"] = "match"
    found = only(entry, **lookups())
    assert found.verdict == "ready" and "its package has no firmware; that of the chips stays" in found.notes
    entry["config"]["firmware_version"] = "7.8.0"
    (reason,) = only(entry, **lookups()).reasons
    assert reason.endswith("declares no firmware: only driver images bring firmware")


def test_a_rollback_asks_for_no_package():
    entry = by_package(entry=backward())
    assert only(entry, reason="rollback", **lookups(error="nobody asks")).target["release"] == OLD_RELEASE


def test_the_white_list_is_of_images():
    assert only(by_package(), **lookups(white_list=lambda image: "not " + image)).verdict == "ready"
