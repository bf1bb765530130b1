# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_mindcluster import npu_mindcluster
from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster, wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import component_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

from support.paths import CHECKOUT

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("version", "version_line"),
    [
        ("v7.3.0", "7.3"),
        ("7.3.2", "7.3"),
        ("v7.3.0.SPC1", "7.3"),
        ("v26.1.0", "26.1"),
        ("v26.1.0.beta.2", "26.1"),
        ("v26.1.0-openeuler", "26.1"),
        ("v26.0.1", "26.0"),
        ("v7.0.RC1", "7.0"),
        ("v26.10.0", None),
        ("26.1", None),
        ("latest", None),
        ("", None),
    ],
)
def test_a_release_names_its_version_line(version, version_line):
    assert mindcluster.version_line_of(version) == version_line


@pytest.mark.parametrize(
    ("version", "image", "told"),
    [
        (None, None, None),
        ("v26.1.0", "registry.example:5000/plugin:v26.1.0", None),
        (None, "registry.example/plugin:mine", None),
        (None, "registry.example/plugin@" + DIGEST, None),
        (None, "not an image", None),
        (
            "v7.3.0",
            None,
            "npu_exporter_version is v7.3.0, of MindCluster 7.3, and npu_mindcluster_version_line is 26.1: its manifest does not "
            "fit. "
            'Set npu_exporter_version to v26.1.0, or npu_mindcluster_version_line: "7.3"',
        ),
        ("v26.0.1", None, "Set npu_exporter_version to v26.1.0"),
        ("mine", None, "npu_exporter_version is mine, which names no release of MindCluster, such as v26.1.0"),
        (
            None,
            "registry.example/plugin:v7.3.2@" + DIGEST,
            'Set npu_exporter_image to an image of v26.1.0, or npu_mindcluster_version_line: "7.3"',
        ),
        ("v26.1.0", "registry.example/plugin:v7.3.2", "npu_exporter_image is registry.example/plugin:v7.3.2, of MindCluster 7.3"),
    ],
)
def test_version_and_image_are_of_the_version_line(version, image, told):
    """The flags of one version line end the programs of another: they do not know them."""
    reasons = mindcluster.mismatches("26.1", "npu_exporter", version, image)
    assert len(reasons) == (told is not None)
    assert told is None or told in reasons[0]
    if told:
        with pytest.raises(AnsibleFilterError) as caught:
            npu_mindcluster("26.1", "npu_exporter", version, image)
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("tag", "version_line"),
    [
        ("v1.12.0-v26.1.0-alpinelatest", "26.1"),
        ("v1.9.0-v7.3.2", "7.3"),
        ("v26.1.0", "26.1"),
        ("v1.12.0", None),
        ("1.7.0", None),
        ("v1.12.0-mine", None),
    ],
)
def test_tags_with_volcanos_release(tag, version_line):
    """Which is no version line of MindCluster."""
    assert mindcluster.version_line_of_image("registry.example/vc-scheduler:" + tag) == version_line


def test_each_of_several_images_is_of_the_version_line():
    images = {"scheduler_image": "r.example/s:v1.9.0-v7.3.2", "controllers_image": "r.example/c:v1.9.0-v7.3.2"}
    reasons = mindcluster.mismatches("26.1", "npu_volcano", "v26.1.0", images)
    assert [reason.split(" is ")[0] for reason in reasons] == ["npu_volcano_scheduler_image", "npu_volcano_controllers_image"]
    assert mindcluster.mismatches("7.3", "npu_volcano", None, images) == []
    (reason,) = mindcluster.mismatches("26.1", "npu_volcano", "mine", images)
    assert reason.endswith("set npu_volcano_scheduler_image and npu_volcano_controllers_image")


def test_what_is_not_known_is_refused():
    with pytest.raises(AnsibleFilterError, match="npu_mindcluster_version_line is 26.0; it must be one of 7.3, 26.1"):
        npu_mindcluster("26.0")
    with pytest.raises(AnsibleFilterError, match="MindCluster 7.3 has no device plugin for huawei-npu"):
        npu_mindcluster(7.3, accelerators=["huawei-Ascend910", "huawei-npu"])


ROLES = {"npu_device_plugin": "device_plugin", "npu_exporter": "exporter"}


@pytest.mark.parametrize("version_line", mindcluster.names())
@pytest.mark.parametrize("role", ROLES)
def test_settings_that_nobody_gives_change_nothing(version_line, role):
    """An empty answer of a survey is none."""
    plain = mindcluster.version_line(version_line)
    for common in (None, {}, {"log_levels": "", "log_max_age": None}, {"log_levels": {ROLES[role]: None}}):
        assert mindcluster.component(version_line, role, {}, common) == plain == npu_mindcluster(version_line, role, common=common)


@pytest.mark.parametrize("version_line", mindcluster.names())
@pytest.mark.parametrize("role", ROLES)
def test_what_is_logged_and_kept(version_line, role):
    common = {"log_levels": {ROLES[role]: "-1"}, "log_max_age": "30", "log_max_backups": 5}
    flags = mindcluster.component(version_line, role, {}, common)[ROLES[role]]["flags"]
    assert "-logLevel=-1" in flags and "-logLevel=0" not in flags
    assert flags[-2:] == ["-maxAge=30", "-maxBackups=5"]


def test_each_component_has_a_level_of_its_own():
    common = {"log_levels": {"exporter": 2}}
    assert "-logLevel=0" in mindcluster.component("26.1", "npu_device_plugin", {}, common)["device_plugin"]["flags"]
    levels = spec_defaults.option("npu_component_log_levels")["options"]
    assert set(levels) == {part for part in mindcluster.version_line()["images"] if not part.startswith("volcano_")}


@pytest.mark.parametrize("version_line", mindcluster.names())
@pytest.mark.parametrize(
    ("hot_reset", "flags"), [("disabled", []), ("inference", ["-hotReset=0"]), ("training-offline", ["-hotReset=2"])]
)
def test_hot_reset(version_line, hot_reset, flags):
    row = mindcluster.component(version_line, "npu_device_plugin", {"hot_reset": hot_reset})["device_plugin"]
    assert row["flags"] == mindcluster.version_line(version_line)["device_plugin"]["flags"] + flags


@pytest.mark.parametrize("version_line", mindcluster.names())
def test_chips_that_are_shared(version_line):
    """Upstream's plugin ignores the flag for all other chips: their DaemonSets do not change, and their nodes are left alone."""
    plain = mindcluster.version_line(version_line)["device_plugin"]
    row = mindcluster.component(version_line, "npu_device_plugin", {"share_count": "4"})["device_plugin"]
    assert row["flags"] == plain["flags"]
    flags = {accelerator: family["flags"] for accelerator, family in row["families"].items() if family["flags"]}
    assert flags == {"huawei-Ascend310P": ["-shareDevCount=4"], "huawei-Ascend310": ["-shareDevCount=4"]}
    assert mindcluster.component(version_line, "npu_device_plugin", {"share_count": 1})["device_plugin"] == plain
    chips = {family.name for family in FAMILIES.values() if family.name in mindcluster.shared_chips(family.accelerator)}
    assert chips == {"310P", "310B"}


@pytest.mark.parametrize(
    ("version_line", "family", "mounts"),
    [
        ("7.3", "huawei-Ascend910", {"/etc/vnpu.cfg", "/run/vnpu_cfg_lock", "/user/restore/reset"}),
        ("7.3", "huawei-Ascend310P", {"/etc/vnpu.cfg"}),
        ("7.3", "huawei-Ascend310", set()),
        ("26.1", "huawei-Ascend910", {"/etc/vnpu.cfg", "/run/vnpu_cfg_lock", "/user/restore/reset"}),
        ("26.1", "huawei-Ascend310", {"/etc/vnpu.cfg", "/run/vnpu_cfg_lock", "/user/restore/reset"}),
    ],
)
def test_volcano(version_line, family, mounts):
    plain = mindcluster.version_line(version_line)["device_plugin"]
    row = mindcluster.component(version_line, "npu_device_plugin", {"volcano": "true"})["device_plugin"]
    assert row["flags"] == plain["flags"] + ["-volcanoType=true", "-presetVirtualDevice=true"]
    before = plain["families"][family]["mounts"]
    added = row["families"][family]["mounts"][len(before) :]
    assert row["families"][family]["mounts"][: len(before)] == before and {mount["path"] for mount in added} == mounts
    assert {mount["type"] for mount in added if mount["path"] == "/etc/vnpu.cfg"} <= {"File"}


@pytest.mark.parametrize(
    ("version_line", "role", "given", "told"),
    [
        ("26.1", "npu_device_plugin", {"volcano": "maybe"}, "npu_device_plugin_volcano is 'maybe'; it must be true or false"),
        ("26.1", "npu_device_plugin", {"hot_reset": 1}, "it must be disabled or inference or training-offline"),
        (
            "26.1",
            "npu_device_plugin",
            {"share_count": 0},
            "npu_device_plugin_share_count is 0; it must be a whole number, 1 to 100",
        ),
        ("7.3", "npu_device_plugin", {"share_count": "101"}, "it must be a whole number, 1 to 100"),
        (
            "7.3",
            "npu_device_plugin",
            {"share_count": 4, "volcano": True},
            "npu_device_plugin_share_count is 4, and npu_device_plugin_volcano is true: Volcano cannot assign shared chips. Set"
            " npu_device_plugin_share_count: 1, or npu_device_plugin_volcano: false",
        ),
        ("26.1", "npu_device_plugin", {"share_count": 2, "volcano": "yes"}, "Volcano cannot assign shared chips"),
        (
            "26.1",
            "npu_device_plugin",
            {"share_count": 4, "hot_reset": "inference"},
            "npu_device_plugin_hot_reset is inference: a reset would hit all pods that share the chip",
        ),
    ],
)
def test_settings_that_a_program_would_refuse(version_line, role, given, told):
    """They end without a word in the pod's state; preflight says it before anything is changed."""
    (reason,) = component_checks.mindcluster_reasons(version_line, wanted(role, given))
    assert told in reason
    with pytest.raises(AnsibleFilterError) as caught:
        npu_mindcluster(version_line, role, settings=given)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("version_line", "common", "told"),
    [
        ("7.3", {"log_max_backups": "31"}, "npu_component_log_max_backups is 31; MindCluster 7.3 keeps 30 at most"),
        ("26.1", {"log_max_backups": 181}, "npu_component_log_max_backups is 181; it must be a whole number, 1 to 180"),
        ("26.1", {"log_max_age": 6}, "npu_component_log_max_age is 6; it must be a whole number, 7 to 700"),
        ("26.1", {"log_levels": {"exporter": 4}}, "npu_component_log_levels.exporter is 4; it must be a whole number, -1 to 3"),
        (
            "26.1",
            {"log_levels": {"plugin": 1}},
            "npu_component_log_levels has no 'plugin'; it has device_plugin, exporter, clusterd,",
        ),
    ],
)
@pytest.mark.parametrize("role", ROLES)
def test_log_settings_that_a_program_would_refuse(version_line, role, common, told):
    (reason,) = component_checks.mindcluster_reasons(version_line, wanted(role, {}, common))
    assert told in reason
    with pytest.raises(AnsibleFilterError) as caught:
        npu_mindcluster(version_line, role, common=common)
    assert told in str(caught.value)


def wanted(role, given, common=None):
    part = role.removeprefix("npu_")
    return wanted_components.of({part: given, "component": common})[part]


def test_all_that_is_wrong_with_a_component_is_told_at_once():
    reasons = component_checks.mindcluster_reasons("26.1", wanted("npu_exporter", {"version": "v7.3.2"}, {"log_max_age": 1}))
    assert [reason.split()[0] for reason in reasons] == ["npu_exporter_version", "npu_component_log_max_age"]
    assert component_checks.mindcluster_reasons("26.1", wanted("npu_exporter", {})) == []


def test_the_newest_version_line_is_the_default():
    option = spec_defaults.role_options("npu_component")["npu_mindcluster_version_line"]
    assert option["choices"] == list(mindcluster.names())
    assert option["default"] == mindcluster.default() == npu_mindcluster("")["name"] == mindcluster.names()[-1]
    defaults = yaml.safe_load((CHECKOUT / "roles/npu_exporter/defaults/main.yml").read_text(encoding="utf-8"))
    assert defaults["npu_mindcluster_version_line"] == option["default"]


@pytest.mark.parametrize("version_line", mindcluster.names())
def test_a_version_line_installs_a_release_of_its_own(version_line):
    assert mindcluster.version_line_of(mindcluster.version_line(version_line)["version"]) == version_line


def test_families_are_those_of_the_chips():
    known = {(family.accelerator, family.resource) for family in FAMILIES.values()}
    assert {(name, row["resource"]) for name, row in mindcluster.table()["families"].items()} == known
    assert set(mindcluster.version_line("26.1")["device_plugin"]["families"]) == {name for name, _resource in known}
