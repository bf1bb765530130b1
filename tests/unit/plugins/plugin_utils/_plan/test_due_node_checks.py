# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, host
from support.fleet.planning import (
    make,
    nodes_of,
    only,
)


@pytest.mark.parametrize(
    ("entry", "kwargs", "reason"),
    [
        (host(disk={"path": "/var", "free_bytes": 2**30}), {}, "/var has 1024 MiB free, staging the image needs 3136 MiB"),
        (host(driver={"managed": False, "loaded": False}), {}, "run npuops.ascend.install first"),
        (host(boot_id="other"), {}, "the host is not the node a"),
        (host(), {"nodes": {}}, "the cluster has no node a"),
        (host(), {"nodes": nodes_of("a", ready=False)}, "the node a is not Ready"),
        (host(problems=["This host does not run systemd"]), {}, "does not run systemd"),
        (
            host(validation={"checks": [{"name": "cdi_running", "ok": False, "seen": "off", "expected": "on", "message": "m"}]}),
            {},
            "its current driver fails validation: cdi_running is off, expected on. m",
        ),
        (host(validation={"failed": True, "msg": "Traceback ..."}), {}, "could not be validated: Traceback"),
        (
            host(upgrade={"staged": {}, "holders": [{"pid": 7, "command": "python x", "device": "davinci0", "pod": False}]}),
            {},
            "the process 7 (python x) has davinci0 open and belongs to no pod",
        ),
        (
            host(),
            {"nodes": nodes_of("a", annotations={"npuops.ascend/vnpu-change": "2026-11-24T10:00:00Z"})},
            "its virtual NPUs are being changed; if no install is running, run npuops.ascend.install first",
        ),
        (host(), {"lookups": {"own_boot_id": "boot-a"}}, "Ansible itself runs on it"),
        (host(), {"lookups": {"support": lambda *_args: (["firmware too old"], [])}}, "firmware too old"),
        (host(), {"lookups": {"white_list": lambda image: "not allowed: " + image[-9:]}}, "not allowed: oe2403sp3"),
    ],
)
def test_what_is_in_the_way(entry, kwargs, reason):
    plan = make([entry], **kwargs)
    (found,) = plan.entries
    assert found.verdict == "blocked"
    assert any(reason in text for text in found.reasons), found.reasons
    assert (plan.green, found.deferrable, found.order) == (False, False, None)
    assert reason in plan.problem


def test_a_pods_process_on_the_chip_is_no_hidden_user():
    holder = {"pid": 7, "command": "python x", "device": "davinci0", "pod": True}
    assert only(host(upgrade={"staged": {}, "holders": [holder]})).verdict == "ready"


def test_an_ill_driver_does_not_stand_in_the_way_of_a_requested_reboot():
    checks = [{"name": "npu_smi", "ok": False, "seen": "-8005", "expected": "8 chips", "message": "m"}]
    nodes = nodes_of("a", labels={"npuops.ascend/maintenance-requested": "true"})
    assert only(host(validation={"checks": checks}), nodes=nodes).verdict == "ready"


def test_chips_that_are_not_ok_do_not_stand_in_the_way():
    ill = [{"npu": 4, "chip": 0, "bus_id": "0000:81:00.0", "health": "Critical"}]
    entry = only(host(validation={"valid": True, "checks": [], "chip_health": ill}))
    assert entry.verdict == "ready"
    assert any("chips that are not OK: NPU 4 chip 0 (0000:81:00.0): Critical" in note for note in entry.notes)


def test_a_chip_that_is_gone_is_no_reason_either():
    before = {"count": 9, "gone": ["0000:c9:00.0"], "boot": None}
    entry = only(host(chips_before=before))
    assert entry.verdict == "ready"
    assert any("8 of 9 chips: 0000:c9:00.0 is missing from the PCI bus" in note for note in entry.notes)


def test_an_image_that_is_staged_needs_no_space_and_no_second_look_at_the_registry():
    staged = {NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": None}}
    entry = host(disk={"path": "/", "free_bytes": 0}, upgrade={"staged": staged, "holders": []})
    assert only(entry, lookups={"size": lambda *_args: pytest.fail("asked")}).verdict == "ready"


def test_the_support_table_is_asked_with_the_firmware_of_the_chips_and_what_the_staged_driver_declares():
    asked = []

    def support(*args):
        asked.append(args)
        return [], []

    staged = {NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": ["7.0.0", "8.9.9"]}}
    entry = host(
        validation={"valid": True, "checks": [], "firmware_version": "7.8.0"},
        firmware_version="1.0",
        upgrade={"staged": staged, "holders": []},
    )
    only(entry, lookups={"support": support})
    ((version, facts, info, firmware, declared),) = asked
    assert (version, firmware, declared) == (NEW, "7.8.0", ["7.0.0", "8.9.9"])
    assert facts["chip_count"] == 8
    assert info["kubeletVersion"] == "v1.34.4"


def test_the_registry_is_asked_once_per_image():
    asked = []

    def size(*args):
        asked.append(args)
        return 1

    make([host("a"), host("b"), host("c", device="d500")], lookups={"size": size})
    assert len(asked) == 2


def test_a_missing_image_stops_all_of_its_profile():
    def resolve(reference, _config, _machine):
        if "310p" in reference:
            raise ImageNotFound("%s does not exist." % reference)
        return NEW_DIGEST

    plan = make([host("a"), host("b", device="d500")], lookups={"resolve": resolve})
    assert [entry.verdict for entry in plan.entries] == ["ready", "blocked"]
    assert "no driver image for the profile 25.5.2-310p-" in plan.problem


def test_an_image_whose_size_cannot_be_told_is_told():
    def size(*_args):
        raise NpuError("The registry\n broke.")

    assert "The registry broke" in only(host(), lookups={"size": size}).reasons
