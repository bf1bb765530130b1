# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

from support.fleet.preflight import DIGEST, REPOSITORY, facts, host, only

NEXT, NAMED = "6.6.0-150.0.0.139.oe2403sp3.aarch64", "5.15.0-25-generic"
RUNNING = facts()["kernel"]


def upcoming(kernels=None, **changes):
    """A host whose next boot is into another kernel."""
    config = {} if kernels is None else {"driver_kernels": kernels}
    fact = facts(boot_id="boot-a", next_kernel={"kernel": NEXT, "release": None, "symvers": None}, **changes.pop("fact", {}))
    return host(fact=fact, **config, **changes)


def has_only(*words):
    def resolve(reference, _config, _machine):
        if not any(word in reference for word in words):
            raise ImageNotFound("%s does not exist" % reference)
        return DIGEST

    return resolve


def test_by_default_the_next_kernel():
    verdict = only(upcoming())
    assert verdict.result()["other_kernels"] == [
        {
            "kernel": NEXT,
            "version": "25.5.0",
            "image": REPOSITORY + ":25.5.0-910b-6.6.0-150.0.0.139-oe2403sp3",
            "upstream": REPOSITORY + ":25.5.0-910b-6.6.0-150.0.0.139-oe2403sp3",
            "digest": DIGEST,
            "release": "25.5.0-%s-abababababab" % NEXT,
        }
    ]
    assert verdict.line().endswith("driver 25.5.0 for kernel " + NEXT)


@pytest.mark.parametrize("kernels", [[], [RUNNING]])
def test_none_but_the_running_one(kernels):
    assert only(upcoming(kernels)).other_kernels == []


def test_a_host_that_keeps_its_kernel():
    assert only(host()).other_kernels == []


def test_a_named_kernel_without_a_mark_of_its_distribution():
    """Its OS is that of the running one."""
    verdict = only(host(driver_kernels=[NAMED, NAMED]))
    assert [one["image"] for one in verdict.other_kernels] == [REPOSITORY + ":25.5.0-910b-5.15.0-25-generic-oe2403sp3"]


def test_a_next_kernel_without_an_image_is_a_note():
    verdict = only(upcoming(), resolve=has_only("145.0.4.135"))
    assert verdict.status == "ready" and verdict.other_kernels == []
    (note,) = verdict.notes
    assert note.startswith("its next boot is into kernel %s, and driver 25.5.0 cannot be staged for that: " % NEXT)
    assert "25.5.0-910b-6.6.0-150.0.0.139-oe2403sp3 does not exist" in note


def test_a_named_kernel_without_an_image_is_in_the_way():
    verdict = only(upcoming(["next", NAMED]), resolve=has_only("145.0.4.135", "150.0.0.139"))
    (reason,) = verdict.reasons
    assert reason.startswith("npu_driver_kernels names the kernel %s, and driver 25.5.0 cannot be staged for that: " % NAMED)


@pytest.mark.parametrize("name", ["../6.6.0", "6.6 0", "x" * 300, "-r"])
def test_what_is_no_kernel(name):
    (reason,) = only(host(driver_kernels=[name])).reasons
    assert "it must have kernel releases as of uname -r, or next" in reason and len(reason) < 200


@pytest.mark.parametrize("name", ["driver_image", "driver_profile", "driver_digest"])
def test_a_setting_for_one_image_names_no_other(name):
    value = {"driver_image": REPOSITORY + ":x", "driver_profile": "910b-mine", "driver_digest": DIGEST}[name]
    verdict = only(upcoming(**{name: value}))
    assert verdict.other_kernels == [] and "npu_%s is set, which is for one kernel" % name in verdict.notes[0]
    assert "npu_%s is set" % name in only(upcoming([NAMED], **{name: value})).reasons[0]


def test_a_host_that_stays_on_another_driver_gets_that_driver():
    """The boot into the next kernel selects the version that is good, whatever is configured."""
    loaded = "25.3.0-%s-0123456789ab" % RUNNING
    driver = {"loaded": True, "managed": True, "loaded_release": loaded, "release": loaded, "complete": True, "good": loaded}
    verdict = only(upcoming(fact={"driver": driver}))
    assert verdict.runs_another and [one["version"] for one in verdict.other_kernels] == ["25.3.0"]


def test_a_preinstalled_driver_is_not_staged():
    fact = {"driver": {"loaded": True, "tree": "/usr/local/Ascend/driver"}}
    assert only(upcoming([NAMED], fact=fact, driver_source="preinstalled")).other_kernels == []
