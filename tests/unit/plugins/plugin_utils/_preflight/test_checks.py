# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from support.fleet.preflight import DIGEST, REPOSITORY, facts, host, only


def test_a_host_in_order():
    verdict = only(host())
    assert verdict.result() == {
        "status": "ready",
        "reasons": [],
        "notes": [],
        "node_name": "a",
        "family": "910B",
        "family_key": "910b",
        "accelerator": "huawei-Ascend910",
        "resource": "huawei.com/Ascend910",
        "chips": 8,
        "offers": {"huawei.com/Ascend910": 8},
        "boot_id": "boot-a",
        "host_arch": "huawei-arm",
        "driver_source": "image",
        "driver_version": "25.5.0",
        "expected_version": "25.5.0",
        "driver_path": "/var/lib/Ascend/driver",
        "distribution": "containerd",
        "image": REPOSITORY + ":25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3",
        "upstream": REPOSITORY + ":25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3",
        "package": None,
        "digest": DIGEST,
        "profile": "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3",
        "components": "enabled",
        "gate": 0,
        "keep_release": None,
        "other_kernels": [],
        "vnpu_layout": None,
        "vnpu_pause": False,
    }


def test_a_host_without_a_chip_is_left_alone_and_said_so():
    empty = host(fact={"boot_id": "other", "chip_count": 0, "family": None, "problems": ["no systemd"]})
    verdict = only(empty, nodes={})
    assert (verdict.status, verdict.reasons) == ("skipped", [])
    assert verdict.line() == "a: has no Ascend chip; skipped"


def test_what_may_be_a_newer_chip_is_said():
    note = "the unknown accelerator 19e5:d9ff (0000:01:00.0) may be a newer chip"
    empty = host(fact={"boot_id": "other", "chip_count": 0, "family": None, "problems": [], "notes": [note]})
    assert only(empty, nodes={}).line() == "a: has no Ascend chip; skipped; " + note
    verdict = only(host(fact=facts(notes=[note])))
    assert (verdict.status, verdict.reasons) == ("ready", []) and verdict.line().endswith("; " + note)
