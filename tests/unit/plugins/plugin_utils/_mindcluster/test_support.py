# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
import tomllib

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support

from support.fleet.hosts import host
from support.paths import CHECKOUT

TODAY = datetime.date(2026, 11, 21)
INFO = {"kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.1.5"}
SOON = datetime.date(2026, 1, 1)


def judge(version="25.5.2", info=None, firmware=None, declared=None, today=SOON, device="d802", **facts):
    return mindcluster_support.judge(
        version, host(device=device, **facts)["facts"], dict(INFO, **(info or {})), firmware, declared, today
    )


def test_nothing_to_say():
    assert judge() == ([], [])


@pytest.mark.parametrize(
    ("firmware", "declared", "reasons", "notes"),
    [
        ("7.8.0.6.201", None, 0, 0),
        ("6.4.0", None, 0, 1),
        ("6.4.0", ["7.0.0", "8.9.9"], 1, 0),
        ("7.8.0, 6.4.0", ["7.0.0", "8.9.9"], 1, 0),
        ("9.0.0", ["9.0.0", "9.9.9"], 0, 0),
        (None, ["7.0.0", "8.9.9"], 0, 0),
    ],
)
def test_firmware(firmware, declared, reasons, notes):
    """The driver's own word forbids; the table, made from packages of the same series, only warns."""
    found = judge(firmware=firmware, declared=declared)
    assert [len(found[0]), len(found[1])] == [reasons, notes]
    for text in found[0] + found[1]:
        assert "the firmware of its chips is 6.4.0; driver 25.5.2 works with 7.0.0 to 8.9.9" in text


@pytest.mark.parametrize(
    ("firmware", "advice"), [("6.4.0", "Upgrade the firmware first"), ("9.1.0", "Use a driver that works with it")]
)
def test_the_advice_fits_the_side_on_which_the_firmware_is_wrong(firmware, advice):
    assert judge(firmware=firmware, declared=["7.0.0", "8.9.9"])[0][0].endswith(advice)


def test_rows_are_for_families():
    assert "nothing is known" in judge("25.1.rc2")[1][0]
    assert judge("25.1.rc2", device="d806") == ([], [])


@pytest.mark.parametrize(
    ("version", "known"), [("25.5", True), ("25.5.0", True), ("25.50.0", False), ("24.1.rc2.2", True), ("24.1.rc20", False)]
)
def test_a_version_stands_for_what_begins_with_it(version, known):
    assert bool(judge(version)[1]) is not known


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"info": {"kubeletVersion": "v1.36.0"}}, "runs Kubernetes 1.36.0; MindCluster supports 1.17 to 1.34"),
        ({"info": {"containerRuntimeVersion": "containerd://2.3.0"}}, "runs containerd 2.3.0; MindCluster supports 1.4 to 2.1"),
        ({"today": TODAY}, "Kubernetes 1.34 reached end of life on 2026-10-27 (https://kubernetes.io"),
        ({"today": TODAY}, "containerd 2.1 reached end of life on 2026-07-03 (https://github.com/containerd"),
        ({"os": {"id": "debian", "version_id": "12", "pretty_name": "Debian 12"}}, "runs Debian 12, which Huawei does not list"),
    ],
)
def test_notes(changes, note):
    reasons, notes = judge(**changes)
    assert reasons == []
    assert any(text.startswith(note) for text in notes), notes


SUPPORTED = {
    ("7.3", "d802"): ["25.5"],
    ("26.0", "d802"): ["25.5", "26.0"],
    ("26.1", "d802"): ["25.5", "26.0", "26.1"],
    ("26.0", "d806"): ["25.1.rc1", "25.6.rc1", "25.7.rc1"],
    ("26.1", "d806"): ["25.1.rc1", "25.6.rc1", "25.7.rc1"],
}


@pytest.mark.parametrize(("version_line", "device"), SUPPORTED)
@pytest.mark.parametrize("driver", ["25.5.1", "26.0.rc1", "26.1.0"])
def test_a_driver_that_only_another_version_line_supports_is_refused(version_line, device, driver):
    reasons, notes = mindcluster_support.judge_version_line(version_line, driver, FAMILIES[device].name, SOON)
    supported = SUPPORTED[version_line, device]
    if device == "d806":
        # None of the version lines names it for the 950.
        assert reasons == [] and any(
            "Huawei does not say whether MindCluster %s works with driver" % version_line in note for note in notes
        )
    elif driver[:4] in supported:
        assert reasons == [] and not any("MindCluster %s" % version_line in note for note in notes)
    else:
        assert len(reasons) == 1
        told = 'MindCluster %s supports driver %s, not %s. Set npu_mindcluster_version_line: "26.1", which supports it (https://'
        assert reasons[0].startswith(told % (version_line, ", ".join(supported), driver))


def test_only_version_lines_that_can_be_deployed_are_advised():
    """26.0 supports such drivers, and this collection has no manifests of it."""
    assert mindcluster_support.deployable("26.0.1", "910B") == ["26.1"] and mindcluster_support.deployable("25.5.1", "910B") == [
        "7.3",
        "26.1",
    ]
    rows = [row for row in mindcluster_support.table()["mindcluster"] if row["version"] != "26.1"]
    (reason,), _notes = mindcluster_support.judge_version_line("7.3", "26.0.1", "910B", SOON, {"mindcluster": rows})
    assert "26.0 supports" not in reason and reason.startswith(
        "MindCluster 7.3 supports driver 25.5, not 26.0.1. No version line that this collection deploys supports it; set "
        "npu_driver_version to"
        " a driver that one supports ("
    )


@pytest.mark.parametrize("version_line", ["26.0", "26.1"])
@pytest.mark.parametrize("driver", SUPPORTED["26.1", "d806"])
def test_drivers_of_the_950(version_line, driver):
    assert mindcluster_support.judge_version_line(version_line, driver.upper() + ".2", "950", SOON) == ([], [])


def test_the_end_of_a_version_line_is_told():
    row = dict(mindcluster_support.table()["mindcluster"][0], end_of_life=SOON)
    found = mindcluster_support.judge_version_line("7.3", "25.5.0", "910B", TODAY, {"mindcluster": [row]})
    assert found == ([], ["MindCluster 7.3 reached end of life on 2026-01-01 (%s)" % row["source"]])


@pytest.mark.parametrize(
    ("version_line", "driver", "device", "note"),
    [
        ("7.3", "24.1.rc2", "d802", "Huawei does not say whether MindCluster 7.3 works with driver 24.1.rc2 (https://"),
        ("25.0", "25.5.0", "d802", "nothing is known of MindCluster 25.0 on the 910B; whether it works with driver 25.5.0 was not"),
        ("7.3", "25.1.rc1", "d806", "nothing is known of MindCluster 7.3 on the 950; whether"),
    ],
)
def test_what_is_not_known_of_a_version_line_is_told(version_line, driver, device, note):
    reasons, notes = mindcluster_support.judge_version_line(version_line, driver, FAMILIES[device].name, SOON)
    assert reasons == [] and [text for text in notes if text.startswith(note)]


def test_the_table_has_a_row_for_each_version_line_and_family_that_is_deployed():
    deployed = {
        (version_line, family.name)
        for version_line in mindcluster.names()
        for family in FAMILIES.values()
        if family.accelerator in mindcluster.version_line(version_line)["device_plugin"]["families"]
    }
    rows = mindcluster_support.table()["mindcluster"]
    assert deployed <= {(row["version"], family) for row in rows for family in row["families"]}
    known = [row["version"] for row in mindcluster_support.table()["driver"]]
    assert {driver for row in rows for driver in row["drivers"]} <= set(known)


@pytest.mark.parametrize(
    ("cgroup_version", "kubelet", "told"),
    [
        (1, "v1.37.2", True),
        (1, "v1.35.0", True),
        (1, "v1.34.4", False),
        (2, "v1.37.2", False),
        (None, "v1.37.2", False),
        (1, "", False),
    ],
)
def test_cgroup_v1_with_a_kubelet_that_refuses_it(cgroup_version, kubelet, told):
    reasons, notes = judge(info={"kubeletVersion": kubelet}, cgroup_version=cgroup_version)
    assert reasons == []
    assert any(note.startswith("has cgroup v1, where a kubelet of 1.35 or newer refuses to start") for note in notes) is told


@pytest.mark.parametrize(("version", "tested"), [("1.36.3", "is tested with it"), ("1.39.0", "is tested with 1.34 to 1.37")])
def test_a_note_says_what_this_collection_is_tested_with(version, tested):
    (note,) = judge(info={"kubeletVersion": "v" + version})[1]
    assert note.endswith("this collection " + tested)


def test_tested_is_what_the_lab_knows():
    releases = tomllib.loads((CHECKOUT / "lab" / "npulab" / "versions.toml").read_text(encoding="utf-8"))
    for component in ("kubernetes", "containerd"):
        known = sorted(releases[component]["releases"], key=mindcluster_support.numbers)
        tested = mindcluster_support.table()[component]["tested"]
        assert [tested["lowest"], tested["highest"]] == [known[0], known[-1]], component


def test_every_row_has_a_source_and_says_what_is_known_of_its_end():
    table = mindcluster_support.table()
    rows = table["driver"] + table["mindcluster"] + table["os"] + table["kubernetes"]["releases"] + table["containerd"]["releases"]
    for row in rows:
        assert row["source"].startswith("https://"), row
        assert row["end_of_life"] is None or isinstance(row["end_of_life"], datetime.date), row
        assert isinstance(row["version"], str), row
    for component in ("kubernetes", "containerd"):
        assert table[component]["mindcluster"]["source"].startswith("https://")
    assert table["kubernetes"]["cgroup_v2"]["source"].startswith("https://")
