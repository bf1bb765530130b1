# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest

from support.fleet.preflight import facts, host, only


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("run", "npu_driver_source is 'run'; it must be one of image, package, preinstalled"),
        ("Image", "npu_driver_source is 'Image'; it must be one of image, package, preinstalled"),
    ],
)
def test_source(source, reason):
    assert only(host(driver_source=source)).reasons == [reason]


@pytest.mark.parametrize(
    ("count", "before", "config", "words"),
    [
        (7, 8, {}, "only 7 of 8 chips: 0000:c4:00.0 is missing from the PCI bus since the boot of 2026-11-25T22:00:00Z"),
        (7, 8, {"chips": 7}, None),
        (7, 0, {"chips": 8}, "only 7 of 8 chips"),
        (8, 8, {"chips": 7}, "npu_chips is 7"),
        (8, 8, {"chips": 0}, None),
    ],
)
def test_a_chip_that_is_gone_has_to_be_accepted(count, before, config, words):
    told = {"count": before, "gone": ["0000:c4:00.0"] if count < before else [], "boot": "2026-11-25T22:00:00Z"}
    verdict = only(host(fact=facts(boot_id="boot-a", chip_count=count, chips_before=told), **config))
    assert verdict.status == ("ready" if words is None else "blocked"), verdict.reasons
    assert words is None or any(words in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("before", "config", "words"),
    [
        (
            2,
            {},
            "only 0 of 2 chips: 0000:c4:00.0, 0000:c5:00.0 are missing from the PCI bus since the boot of 2026-11-25T22:00:00Z",
        ),
        (2, {"chips": 2}, "only 0 of 2 chips: 0000:c4:00.0"),
        (0, {"chips": 8}, "only 0 of 8 chips on the PCI bus"),
        (0, {"chips": 0}, None),
        (0, {}, None),
    ],
)
def test_a_host_that_has_lost_all_its_chips_is_not_skipped(before, config, words):
    told = {"count": before, "gone": ["0000:c4:00.0", "0000:c5:00.0"] if before else [], "boot": "2026-11-25T22:00:00Z"}
    verdict = only(host(fact=facts(boot_id="boot-a", chip_count=0, family=None, chips_before=told), **config))
    assert verdict.status == ("skipped" if words is None else "blocked")
    if words is None:
        assert (verdict.reasons, verdict.notes) == ([], ["has no Ascend chip; skipped"])
    else:
        (reason,) = verdict.reasons
        assert words in reason and "skipped" not in " ".join(verdict.notes)


@pytest.mark.parametrize("changes", [{"unreachable": True, "error": "no route"}, {"error": "no sh"}, {"pending": "gets Python"}])
def test_a_host_that_has_said_nothing_has_lost_no_chip(changes):
    verdict = only(dict(host(fact={}, chips=8), **changes))
    assert not any("chips" in text for text in verdict.reasons + verdict.notes)


def test_preinstalled_needs_no_registry():
    tree = {"loaded": True, "tree": "/usr/local/Ascend/driver", "loaded_version": "24.1.0"}
    verdict = only(
        host(fact=facts(boot_id="boot-a", driver=tree), driver_source="preinstalled", driver_repository=None),
        resolve=None,
    )
    assert (verdict.status, verdict.image, verdict.driver_path) == ("ready", None, "/usr/local/Ascend/driver")
    assert verdict.result()["expected_version"] is None


RELEASE = "25.5.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-" + "ab" * 6


@pytest.mark.parametrize(
    ("loaded", "pending"),
    [
        (RELEASE, False),
        ("25.5.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-" + "cd" * 6, True),
        ("25.3.0-6.6.0-145.0.4.135.oe2403sp3.aarch64-" + "ab" * 6, True),
    ],
)
def test_a_loaded_driver_is_not_replaced(loaded, pending):
    driver = {"loaded": True, "managed": True, "loaded_release": loaded}
    verdict = only(host(fact=facts(boot_id="boot-a", driver=driver)))
    assert verdict.status == "ready"
    assert verdict.keep_release == (loaded if pending else None)
    assert verdict.result()["expected_version"] == (None if pending else "25.5.0")
    assert ("npuops.ascend.upgrade" in " ".join(verdict.notes)) is pending


@pytest.mark.parametrize("complete", [True, False])
def test_what_is_there_already_is_not_staged_again(complete):
    driver = {"loaded": True, "managed": True, "loaded_release": RELEASE, "release": RELEASE, "complete": complete}
    verdict = only(host(fact=facts(boot_id="boot-a", driver=driver)))
    assert verdict.keep_release == (RELEASE if complete else None)
    assert verdict.notes == [] and verdict.result()["expected_version"] == "25.5.0"


def test_not_every_version_line_has_a_device_plugin_for_the_950():
    def ascend950(**kwargs):
        return only(host(fact=facts("d806", "boot-a")), **kwargs)

    assert ascend950(version_line="7.3").reasons == ["MindCluster 7.3 has no device plugin for the 950 (huawei-npu)"]
    assert ascend950(version_line="26.1").status == ascend950(version_line=None).status == "ready"


def test_chips_that_are_shared():
    """Upstream's plugin ignores the flag for other chips. Those with the same DaemonSet would never offer what is waited for."""

    def chip(device, **kwargs):
        return only(host(fact=facts(device, "boot-a"), device_plugin_share_count="4"), share_count=4, version_line="26.1", **kwargs)

    assert chip("d500").notes == chip("d105").notes == [] and chip("d500").status == "ready"
    assert chip("d802").notes == ["npu_device_plugin_share_count has no effect here: MindCluster does not share the 910B"]
    (reason,) = chip("d100").reasons
    assert "MindCluster does not share the 310, and its nodes have the same DaemonSet as those with the 310B" in reason


@pytest.mark.parametrize(("own", "wanted"), [(None, 4), (4, 1), ("2", 4)])
def test_all_hosts_have_the_same_share_count(own, wanted):
    """Whichever is first in the run decides for all: one DaemonSet is for all nodes of a family."""
    (reason,) = only(host(fact=facts("d500", "boot-a"), device_plugin_share_count=own), share_count=wanted).reasons
    assert "npu_device_plugin_share_count is %s for this host and %d for the first host" % (own or 1, wanted) in reason
    assert (
        only(host(fact=facts("d500", "boot-a"), device_plugin_share_count=own), share_count=wanted, version_line=None).status
        == "ready"
    )


def test_a_share_count_that_is_none():
    (reason,) = only(host(fact=facts("d500", "boot-a"), device_plugin_share_count="many")).reasons
    assert reason == "npu_device_plugin_share_count is 'many'; it must be a whole number, 1 to 100"


@pytest.mark.parametrize(("before", "notes"), [(None, 1), (4, 0), (2, 1)])
def test_a_changed_share_count_frees_the_chips_of_running_pods(before, notes):
    args = ["exec device-plugin" + (" -shareDevCount=%d" % before if before else "")]
    template = {"spec": {"containers": [{"args": args}], "volumes": []}}
    daemonset = {
        "metadata": {"name": "ascend-device-plugin310p-daemonset", "namespace": "npu-operator"},
        "spec": {"template": template},
    }
    entry = host(fact=facts("d500", "boot-a"), device_plugin_share_count=4)
    verdict = only(entry, share_count=4, version_line="26.1", daemonsets=[daemonset])
    assert verdict.status == "ready" and len(verdict.notes) == notes
    assert not notes or "each chip is to be offered 4 times instead of %d" % (before or 1) in verdict.line()


OTHER_VERSION_LINE = '. Set npu_mindcluster_version_line: "26.1", which supports it'


@pytest.mark.parametrize(
    ("version_line", "driver", "reason"),
    [
        ("7.3", "25.5.0", None),
        ("7.3", "26.0.0", "MindCluster 7.3 supports driver 25.5, not 26.0.0" + OTHER_VERSION_LINE),
        ("7.3", "26.1.0", "MindCluster 7.3 supports driver 25.5, not 26.1.0" + OTHER_VERSION_LINE),
        ("26.1", "26.1.0", None),
        (None, "26.1.0", None),
    ],
)
def test_mindcluster_supports_the_driver(version_line, driver, reason):
    verdict = only(host(driver_version=driver), version_line=version_line)
    assert [text.partition(" (https://")[0] for text in verdict.reasons] == ([reason] if reason else [])
    if reason:
        advised = re.search('Set npu_mindcluster_version_line: "(.*?)"', verdict.reasons[0]).group(1)
        assert only(host(driver_version=driver), version_line=advised).status == "ready"


def test_what_counts_is_the_driver_that_the_host_will_run():
    """Install does not replace a loaded driver, and a preinstalled one is what it is."""
    loaded = {"loaded": True, "managed": True, "loaded_release": RELEASE, "loaded_version": "25.5.0"}
    assert only(host(fact=facts(boot_id="boot-a", driver=loaded), driver_version="26.1.0"), version_line="7.3").status == "ready"
    tree = {"loaded": True, "tree": "/usr/local/Ascend/driver", "loaded_version": "26.1.0"}
    preinstalled = host(fact=facts(boot_id="boot-a", driver=tree), driver_source="preinstalled", driver_repository=None)
    assert only(preinstalled, resolve=None, version_line="7.3").status == "blocked"
    assert only(preinstalled, resolve=None, version_line="26.1").status == "ready"


def test_a_driver_that_huawei_does_not_name_is_told():
    verdict = only(host(driver_version="25.3.rc1"), version_line="26.1")
    assert verdict.status == "ready" and "Huawei does not say whether MindCluster 26.1 works with driver 25.3.rc1" in verdict.line()


THERE = {"loaded": True, "managed": True, "loaded_release": RELEASE, "release": RELEASE, "complete": True}


@pytest.mark.parametrize(
    ("driver", "config", "settled"),
    [
        (THERE, {}, True),
        (dict(THERE, loaded_release=RELEASE.replace("25.5.0", "25.3.0")), {}, True),
        (dict(THERE, complete=False), {}, False),
        ({"loaded": False, "tree": None}, {}, False),
        (THERE, {"runtime_mode": "cdi"}, True),
        (THERE, {"runtime_mode": "ascend"}, False),
        (THERE, {"driver_source": "preinstalled"}, True),
        (THERE, {"driver_source": "run"}, False),
    ],
)
def test_which_hosts_may_need_nothing(driver, config, settled):
    assert only(host(fact=facts(boot_id="boot-a", driver=driver), **config)).may_be_settled is settled


def test_one_whose_virtual_npus_change_needs_something():
    vnpus = {"vnpu_plan": {"changed": True, "target": [], "destroy": [], "create": [], "problem": None}}
    verdict = only(host(fact=facts("d500", "boot-a", driver=THERE, **vnpus), vnpu={"vir04": 1}))
    assert verdict.status == "ready" and not verdict.may_be_settled


def test_one_with_a_driver_to_stage_for_another_kernel_needs_something():
    verdict = only(host(fact=facts(boot_id="boot-a", driver=THERE), driver_kernels=["6.6.0-200.0.0.1"]))
    assert verdict.other_kernels and not verdict.may_be_settled
