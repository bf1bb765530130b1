# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of firmware that is to change together with the driver."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_DIGEST, OLD_RELEASE, host, unreachable
from support.fleet.planning import make, nodes_of, only, under_way

RUNNING, BROUGHT = "7.8.0.6.201", "7.8.0.7.220"
MATCH = {"firmware_policy": "match"}


def image(version=BROUGHT, drivers=("25.5",)):
    return {"lookups": {"firmware": lambda *_args: {"version": version, "drivers": list(drivers)}}}


def runs(firmware=RUNNING, **changes):
    """A host with that firmware in its chips, and policy match."""
    config = dict(MATCH, **changes.pop("config", {}))
    return host(validation={"valid": True, "checks": [], "firmware_version": firmware}, config=config, **changes)


def staged(back=None, **new):
    """The releases on the host: the loaded one, with the firmware range ``back`` that it declares, and the new one."""
    found = {OLD_RELEASE: {"version": OLD, "kernel": KERNEL, "digest": OLD_DIGEST, "firmware": back}}
    if new:
        found[NEW_RELEASE] = dict({"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": None}, **new)
    return {"previous": None, "staged": found, "holders": []}


def test_it_changes_with_the_driver():
    entry = only(runs(), **image())
    assert entry.verdict == "ready" and entry.result()["firmware"] == {"from": RUNNING, "to": BROUGHT}
    assert entry.target["firmware"] == BROUGHT and entry.target["release"] == NEW_RELEASE
    told = "firmware %s -> %s: written after the drain, in use after the reboot, and kept if the driver returns to %s"
    assert told % (RUNNING, BROUGHT, OLD) in entry.notes


def test_by_default_it_stays():
    entry = only(host(validation={"valid": True, "checks": [], "firmware_version": RUNNING}), **image())
    assert entry.verdict == "ready" and entry.result()["firmware"] is None and "firmware" not in entry.target


def test_the_same_version_is_not_written():
    entry = only(runs(BROUGHT), **image())
    assert entry.result()["firmware"] is None and not any("written" in note for note in entry.notes)


def test_a_node_that_lacks_only_the_firmware_is_due():
    has = runs(loaded=NEW_RELEASE, upgrade=staged(brings={"version": BROUGHT, "drivers": ["25.5"]}))
    entry = only(has)
    assert entry.verdict == "ready" and entry.target["firmware"] == BROUGHT
    assert only(dict(has, validation=runs(BROUGHT)["validation"])).verdict == "up-to-date"


@pytest.mark.parametrize(("other", "proved"), [(BROUGHT, True), (RUNNING, False)])
def test_whether_the_firmware_works_is_shown_by_the_first_node_of_a_kind(other, proved):
    """That another node has the driver alone proves nothing."""
    nodes = [
        runs(firmware, name=name, loaded=NEW_RELEASE, upgrade=staged(brings={"version": BROUGHT, "drivers": []}))
        for name, firmware in (("a", other), ("b", RUNNING))
    ]
    entries = {entry.name: entry for entry in make(nodes).entries}
    assert entries["b"].verdict == "ready" and entries["b"].proved is proved
    assert any(entry.canary for entry in entries.values()) is not proved


def test_nodes_that_get_the_same_driver_are_of_one_kind_whatever_their_firmware():
    entries = make([runs(BROUGHT, name="a"), runs(RUNNING, name="b")], **image()).entries
    # The Lease remembers the kinds that end with the release that was confirmed.
    assert {entry.pool for entry in entries} == {"910B with firmware %s %s" % (BROUGHT, NEW_RELEASE)}


def test_what_is_staged_counts_and_nobody_is_asked():
    def never(*_args):
        raise AssertionError("asked")

    entry = only(runs(upgrade=staged(brings={"version": BROUGHT, "drivers": ["25.5"]})), lookups={"firmware": never})
    assert entry.target["firmware"] == BROUGHT


@pytest.mark.parametrize(
    ("entry", "brought", "reason"),
    [
        (runs(None), image(), "npu-smi does not report the firmware of its chips, which is to become %s" % BROUGHT),
        (runs(), image(drivers=["24.1"]), "works with drivers 24.1, not with %s: build the image with matching packages" % NEW),
        (
            runs(upgrade=staged(["7.0.0", "7.8.0.6"])),
            image(),
            "no way back: a failed upgrade returns to driver %s, which does not work with the firmware %s (it works with 7.0.0 to"
            % (OLD, BROUGHT),
        ),
        (
            runs(),
            image(drivers=[NEW]),
            "no way back: a failed upgrade returns to driver %s, which does not work with the firmware %s (that firmware works with"
            % (OLD, BROUGHT),
        ),
        (
            runs(upgrade=dict(staged(), flash={"state": "failed", "version": BROUGHT, "reason": "the package failed."})),
            image(),
            "the firmware %s could not be written before: the package failed; after checking its chips" % BROUGHT,
        ),
        (
            runs(config={"firmware_version": "7.8.0.9.1"}),
            image(),
            "npu_firmware_version is 7.8.0.9.1, but",
        ),
        (
            runs(config={"firmware_version": BROUGHT}),
            {"lookups": {"firmware": lambda *_args: None}},
            "declares no firmware: build the image with the option firmware",
        ),
        (
            runs(config={"firmware_policy": "keep", "firmware_version": BROUGHT}),
            image(),
            "npu_firmware_policy is keep: set it to match",
        ),
        (runs(config={"firmware_policy": "always"}), image(), "npu_firmware_policy is always; it must be keep or match"),
    ],
)
def test_what_is_in_the_way(entry, brought, reason):
    found = only(entry, **brought)
    assert found.verdict == "blocked" and any(reason in text for text in found.reasons), found.reasons


def test_the_registry_does_not_answer():
    def fails(*_args):
        raise NpuError("The registry does not answer")

    found = only(runs(), lookups={"firmware": fails})
    assert found.verdict == "blocked" and "The registry does not answer" in found.reasons


def test_the_advice_after_a_failed_write():
    entry = runs(upgrade=dict(staged(), flash={"state": "failed", "version": BROUGHT, "reason": "the package failed"}))
    assert only(entry, retry=True, **image()).verdict == "ready"


def test_the_driver_is_judged_with_the_firmware_that_it_gets():
    seen = []

    def support(version, facts, node_info, firmware, declared):
        seen.append(firmware)
        return [], []

    only(runs(), lookups={"support": support, **image()["lookups"]})
    assert seen == [BROUGHT]


def test_an_image_without_firmware_is_noted():
    entry = only(runs(), lookups={"firmware": lambda *_args: None})
    assert entry.verdict == "ready"
    (note,) = [note for note in entry.notes if "firmware" in note]
    assert note.startswith("npu_firmware_policy is match, but registry.example/mlops/ascend-driver:")
    assert note.endswith("declares no firmware: build the image with the option firmware. The firmware of its chips stays")


def waiting(**changes):
    """A host on which firmware was written in this boot, and which was not rebooted since."""
    flash = {"state": "written", "version": BROUGHT, "boot_id": "boot-a"}
    found = runs(upgrade=dict(staged(), flash=flash, previous=OLD_RELEASE), **changes)
    assert found["facts"]["boot_id"] == "boot-a"
    return found


@pytest.mark.parametrize("policy", ["match", "keep"])
def test_firmware_that_waits_for_the_next_boot_is_told(policy):
    told = "the firmware %s is in its chips already: they run it after the next boot" % BROUGHT
    assert told in only(waiting(config={"firmware_policy": policy}), **image()).notes
    after = waiting()
    after["facts"]["boot_id"] = "boot-b"
    assert told not in only(after, nodes=nodes_of("a"), **image()).notes


def test_a_driver_is_judged_with_the_firmware_that_waits_for_the_next_boot():
    judged = []
    lookups = {"support": lambda _version, _facts, _info, firmware, _declared: judged.append(firmware) or ([], [])}
    only(waiting(config={"firmware_policy": "keep"}), lookups=lookups)
    assert judged == [BROUGHT]


def test_an_older_firmware_is_told():
    entry = only(runs("7.9.0.1.100"), **image())
    assert any("%s (older)" % BROUGHT in note for note in entry.notes)


def test_a_rollback_leaves_the_firmware():
    previous = dict(staged(brings={"version": BROUGHT, "drivers": []}), previous=NEW_RELEASE)
    entry = only(runs(upgrade=previous), reason="rollback")
    assert entry.result()["firmware"] is None


def intended(**to):
    """The Node of a maintenance whose reboot is certain, with firmware in its record."""
    nodes = under_way("upgrade", "new", boot_id="boot-a", step="reboot-required", times={})
    annotations = nodes["a"]["metadata"]["annotations"]
    known = json.loads(annotations["npuops.ascend/maintenance"])
    known["to"] = {"version": NEW, "release": NEW_RELEASE, "firmware": BROUGHT, **to}
    annotations["npuops.ascend/maintenance"] = json.dumps(known)
    return {"nodes": nodes}


def test_a_maintenance_that_goes_on_writes_what_the_settings_ask_for():
    entry = only(runs(), **image(), **intended())
    assert entry.verdict == "in-flight" and entry.target["firmware"] == BROUGHT
    assert not any("omitted" in note for note in entry.notes)


def test_after_a_change_of_kernel_it_is_written_as_well():
    """The record names the release for the kernel before."""
    before = NEW_RELEASE.replace(KERNEL, "5.10.0-before")
    entry = only(runs(), **image(), **intended(release=before))
    assert (entry.target["release"], entry.target["firmware"]) == (before, BROUGHT), entry.notes


@pytest.mark.parametrize(
    ("has", "to", "brought", "why"),
    [
        (runs(config={"firmware_policy": "keep"}), {}, image(), "npu_firmware_policy is keep"),
        (runs(), {"firmware": "7.8.0.9.1"}, image(), "this run is to install %s with the firmware %s" % (NEW_RELEASE, BROUGHT)),
        (runs(), {"release": OLD_RELEASE, "version": OLD}, image(), "this run is to install %s" % NEW_RELEASE),
        (dict(unreachable("a"), config=runs()["config"]), {}, image(), "whether it may be written is not known"),
    ],
    ids=["keep", "another-firmware", "another-driver", "unreachable"],
)
def test_firmware_of_a_record_alone_is_not_written(has, to, brought, why):
    """Any client that may write to the Node may have written the record."""
    entry = only(has, **brought, **intended(**to))
    assert entry.verdict == "in-flight" and entry.target["release"] == to.get("release", NEW_RELEASE)
    assert "firmware" not in entry.target and entry.result()["firmware"] is None
    assert any("a write that has not begun is omitted: %s" % why in note for note in entry.notes), entry.notes


def test_a_maintenance_that_began_without_firmware_goes_on_without():
    entry = only(runs(), **image(), **intended(firmware=None))
    assert entry.verdict == "in-flight" and "firmware" not in entry.target and entry.result()["firmware"] is None
    assert any("stays for now: its maintenance began without; another run writes it" in note for note in entry.notes)


def test_a_maintenance_that_goes_on_is_checked_like_a_new_one():
    entry = only(runs(upgrade=staged(["7.0.0", "7.8.0.6"])), **image(), **intended())
    assert entry.verdict == "in-flight" and "firmware" not in entry.target
    assert any("stays for now: there would be no way back" in note for note in entry.notes)


@pytest.mark.parametrize("where", ["to", "from"])
def test_a_rollback_takes_no_firmware_from_a_record(where):
    nodes = under_way("rollback" if where == "to" else "upgrade", "old", boot_id="boot-a", step="reboot-required", times={})
    annotations = nodes["a"]["metadata"]["annotations"]
    known = json.loads(annotations["npuops.ascend/maintenance"])
    known[where] = dict(known[where], firmware=BROUGHT)
    annotations["npuops.ascend/maintenance"] = json.dumps(known)
    entry = only(runs(), reason="rollback", nodes=nodes)
    assert entry.verdict == "in-flight" and "firmware" not in entry.target


def test_a_trial_that_is_adopted_gets_no_firmware_that_nobody_has_checked():
    adopted = runs(upgrade=dict(staged(["7.0.0", "7.8.0.6"]), trial=NEW_RELEASE))
    adopted["facts"]["driver"]["good"] = OLD_RELEASE
    entry = only(adopted, **image(drivers=["99.9"]))
    assert entry.verdict == "on-trial" and "firmware" not in entry.target
    assert any("the firmware of its chips stays for now" in note and "99.9" in note for note in entry.notes)
