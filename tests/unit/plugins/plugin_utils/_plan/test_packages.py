# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for hosts that take their driver from a package."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.contents import PackageContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.firmware_package import FirmwareContents

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_RELEASE, host
from support.fleet.planning import backward, make, only

NEXT = "6.6.0-150.0.0.139.oe2403sp3.aarch64"
FIRMWARE, SUM = "https://files.example.com/Ascend-hdk-910b-npu-firmware_7.8.0.7.220.run", "ab" * 32
RUNNING, BROUGHT = "7.8.0.6.201", "7.8.0.7.220"
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
    entry = only(by_package(next_kernel={"kernel": NEXT, "release": None, "symvers": None}), **lookups())
    assert entry.verdict == "ready"
    assert [(one["version"], one["package"]) for one in entry.checked.other_kernels] == [(NEW, PACKAGE)]
    # The package is of the new driver only.
    assert any("driver %s cannot be staged for that: %s has driver %s" % (OLD, PACKAGE, NEW) in note for note in entry.notes)
    entry = only(by_package(next_kernel={"kernel": NEXT, "release": None, "symvers": None}), **lookups(kernels=[KERNEL]))
    assert entry.verdict == "blocked" and "no kernel modules for %s" % NEXT in entry.reasons[0]


def with_firmware(entry=None, running=RUNNING, **config):
    """A host that is also to get the firmware of a package."""
    entry = by_package(entry=entry)
    entry["validation"] = {"valid": True, "checks": [], "firmware_version": running}
    given = {"firmware_policy": "match", "firmware_package": FIRMWARE + "?token=SECRET", "firmware_package_sha256": SUM}
    entry["config"].update(given, **config)
    return entry


def brings(version=BROUGHT, drivers=("25.5",), size=100, error=None, **more):
    def look(source, _config):
        if error:
            raise NpuError(error)
        assert (source.name, source.digest) == (FIRMWARE, "sha256:" + SUM)
        return FirmwareContents(size, version, drivers)

    return lookups(firmware_package=look, **more)


def test_without_a_firmware_package_the_firmware_stays_and_the_plan_says_why():
    entry = with_firmware(firmware_package=None)
    found = only(entry, **lookups())
    assert found.verdict == "ready" and found.firmware is None
    (note,) = [note for note in found.notes if "firmware" in note]
    assert note.startswith("npu_firmware_policy is match, but npu_firmware_package") and note.endswith(
        "The firmware of its chips stays"
    )
    entry["config"]["firmware_version"] = "7.8.0"
    (reason,) = only(entry, **lookups()).reasons
    assert reason.startswith("npu_firmware_version is 7.8.0, but npu_firmware_package") and reason.endswith("is not set")


def test_firmware_of_a_package_changes_with_the_driver():
    entry = only(with_firmware(), **brings())
    assert (entry.verdict, entry.reasons) == ("ready", []) and entry.target["firmware"] == BROUGHT
    assert entry.result()["firmware"] == {"from": RUNNING, "to": BROUGHT} and "SECRET" not in str(entry.result())
    assert any(note.startswith("firmware %s -> %s: written after the drain" % (RUNNING, BROUGHT)) for note in entry.notes)
    assert only(with_firmware(firmware_version=BROUGHT), **brings()).verdict == "ready"


def test_firmware_packages_count_only_with_policy_match():
    entry = only(with_firmware(firmware_policy="keep"), **brings(error="nobody asks"))
    assert entry.verdict == "ready" and "firmware" not in entry.target


@pytest.mark.parametrize(
    ("config", "brought", "reason"),
    [
        ({"firmware_version": "7.9.9"}, {}, "npu_firmware_version is 7.9.9, but %s has the firmware %s" % (FIRMWARE, BROUGHT)),
        ({"firmware_package_sha256": None}, {}, "npu_firmware_package_sha256 is not set"),
        ({"firmware_package": "ftp://x.example/a.run"}, {}, "npu_firmware_package begins with ftp://"),
        ({"firmware_package": FIRMWARE.replace("910b", "310p")}, {}, "is for 310p chips, not for 910b"),
        ({}, {"error": "x is truncated"}, "x is truncated"),
        ({}, {"drivers": ("26.1",)}, "its firmware package has the firmware %s, which works with drivers 26.1" % BROUGHT),
    ],
)
def test_firmware_packages_that_do_not_fit(config, brought, reason):
    entry = only(with_firmware(**config), **brings(**brought))
    assert entry.verdict == "blocked" and any(reason in one for one in entry.reasons), entry.reasons


def test_firmware_that_the_way_back_does_not_work_with():
    staged = {OLD_RELEASE: {"version": OLD, "kernel": KERNEL, "digest": None, "firmware": ["7.8.0.1", "7.8.0.6"]}}
    entry = host("a", upgrade={"previous": None, "staged": staged, "holders": []})
    assert any("there would be no way back" in one for one in only(with_firmware(entry), **brings()).reasons)


def test_a_firmware_package_that_is_staged_is_not_asked_for():
    release = {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": None}
    staged = {NEW_RELEASE: dict(release, brings={"version": BROUGHT, "drivers": [], "sha256": SUM})}
    entry = host("a", loaded=NEW_RELEASE, upgrade={"previous": None, "staged": staged, "holders": []})
    never = brings(error="somebody asks")
    assert only(with_firmware(entry), **never).target["firmware"] == BROUGHT
    assert only(with_firmware(entry, running=BROUGHT), **never).verdict == "up-to-date"
    # Another one than the settings name.
    staged[NEW_RELEASE]["brings"]["sha256"] = "0" * 64
    assert "somebody asks" in only(with_firmware(entry), **never).reasons
    # What was staged before is not written when the settings no longer ask for it.
    assert only(with_firmware(entry, firmware_package=None), **never).verdict == "up-to-date"


def test_each_firmware_package_is_looked_into_once():
    asked = []
    look = brings()["lookups"]["firmware_package"]
    found = brings()
    found["lookups"]["firmware_package"] = lambda *what: asked.append(what) or look(*what)
    make([with_firmware(host("a")), with_firmware(host("b"))], **found)
    assert len(asked) == 1


def test_too_little_space_for_the_firmware():
    disk = {"path": "/var/lib", "free_bytes": 2**30}
    (reason,) = only(with_firmware(host("a", disk=disk)), **brings(size=2**30)).reasons
    assert reason.startswith("/var/lib has 1024 MiB free, staging the packages needs 21")


def test_a_rollback_asks_for_no_package():
    entry = by_package(entry=backward())
    assert only(entry, reason="rollback", **lookups(error="nobody asks")).target["release"] == OLD_RELEASE


def test_the_white_list_is_of_images():
    assert only(by_package(), **lookups(white_list=lambda image: "not " + image)).verdict == "ready"
