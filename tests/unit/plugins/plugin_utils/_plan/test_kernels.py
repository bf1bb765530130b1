# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_DIGEST, OLD_RELEASE, host
from support.fleet.planning import backward, only

NEXT = "6.6.0-150.0.0.139.oe2403sp3.aarch64"
UPCOMING = {"next_kernel": {"kernel": NEXT, "release": None, "symvers": None}}
TAG = "%s-910b-6.6.0-150.0.0.139-oe2403sp3"


def without(*tags):
    def resolve(reference, _config, _machine):
        if any(reference.endswith(tag) for tag in tags):
            raise ImageNotFound("%s does not exist" % reference)
        return NEW_DIGEST

    return {"lookups": {"resolve": resolve}}


def sibling(version, kernel=NEXT):
    name = "%s-%s-0123456789ab" % (version, kernel)
    return {name: {"version": version, "kernel": kernel, "digest": OLD_DIGEST, "firmware": None}}


def test_both_versions_are_staged_for_the_next_kernel():
    """The one it is to get, and the one to which it returns if that does not work."""
    entry = only(host(**UPCOMING))
    assert entry.verdict == "ready"
    assert [(one["version"], one["kernel"]) for one in entry.result()["other_kernels"]] == [(NEW, NEXT), (OLD, NEXT)]
    assert "its reboot is into kernel " + NEXT in entry.notes


def test_a_reboot_that_would_leave_the_host_without_its_driver_is_refused():
    entry = only(host(**UPCOMING), **without(TAG % NEW))
    assert entry.verdict == "blocked"
    (reason,) = entry.reasons
    assert reason.startswith("its next boot is into kernel %s, and driver %s cannot be staged for that" % (NEXT, NEW))
    assert TAG % NEW in reason


def test_without_a_way_back_in_the_next_kernel_it_is_told():
    """A kernel may be newer than the driver that runs now."""
    entry = only(host(**UPCOMING), **without(TAG % OLD))
    assert entry.verdict == "ready" and [one["version"] for one in entry.checked.other_kernels] == [NEW]
    assert any("driver %s cannot be staged for that" % OLD in note for note in entry.notes)


def test_what_is_staged_already_needs_no_image():
    there = {"previous": None, "holders": [], "staged": dict(sibling(NEW), **sibling(OLD))}
    entry = only(host(upgrade=there, **UPCOMING), **without(TAG % NEW, TAG % OLD))
    assert entry.verdict == "ready"


def test_the_setting_says_that_nothing_is_staged():
    entry = only(host(config={"driver_kernels": []}, **UPCOMING))
    assert entry.verdict == "blocked" and "Add it, or let the host boot" in entry.reasons[0]


def test_a_named_kernel_without_an_image_is_in_the_way():
    entry = only(host(config={"driver_kernels": [NEXT]}), **without(TAG % NEW))
    assert entry.verdict == "blocked" and entry.reasons[0].startswith("npu_driver_kernels names the kernel " + NEXT)


def test_space_for_all_images():
    disk = {"path": "/var/lib/Ascend", "free_bytes": 4 * 2**30}
    assert only(host(disk=disk)).verdict == "ready"
    entry = only(host(disk=disk, **UPCOMING))
    assert entry.verdict == "blocked" and "staging 3 images needs" in entry.reasons[0]


def test_a_rollback_takes_what_is_staged():
    entry = only(dict(backward(), facts=dict(backward()["facts"], **UPCOMING)), reason="rollback")
    assert entry.verdict == "blocked"
    assert "for which driver %s is not staged. Let the host boot %s" % (OLD, KERNEL) in entry.reasons[0]
    there = backward()
    there["facts"]["upgrade"]["staged"].update(sibling(OLD))
    there["facts"].update(UPCOMING)
    assert only(there, reason="rollback").verdict == "ready"


def test_a_host_with_its_driver_is_told_what_its_next_boot_lacks():
    entry = only(host(loaded=NEW_RELEASE, **UPCOMING))
    assert entry.verdict == "up-to-date" and entry.notes == [
        "its next boot is into kernel %s, and driver %s is not staged for that yet: run npuops.ascend.install" % (NEXT, NEW)
    ]
    entry = only(host(loaded=NEW_RELEASE, **UPCOMING), **without(TAG % NEW))
    assert entry.verdict == "up-to-date" and "cannot be staged for that" in entry.notes[0]


def test_a_host_that_came_up_with_its_driver_for_a_new_kernel_is_up_to_date():
    """good is that of the kernel before, until install confirms the other."""
    entry = host(loaded=NEW_RELEASE)
    entry["facts"]["driver"]["good"] = "%s-6.6.0-100-0123456789ab" % NEW
    assert only(entry).verdict == "up-to-date"
    entry["facts"]["driver"]["good"] = OLD_RELEASE
    assert only(entry).verdict == "ready"
