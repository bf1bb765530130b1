# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


@pytest.fixture
def fs(tmp_path):
    """A / with two 910B chips and their nodes, and the compression engine of the CPU."""
    add_chips(tmp_path, 2)
    add_chips(tmp_path, 1, "a250", "0000", first=0x75)
    (tmp_path / "dev").mkdir()
    for name in ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc", "null"):
        (tmp_path / "dev" / name).touch()
    return tmp_path


def add_chips(root, count, device="d802", subsystem="3003", first=0):
    for number in range(first, first + count):
        directory = root / "sys" / "bus" / "pci" / "devices" / ("0000:%02x:00.0" % number)
        directory.mkdir(parents=True)
        for name, value in (("vendor", "19e5"), ("class", "120000"), ("device", device), ("subsystem_device", subsystem)):
            (directory / name).write_text("0x%s\n" % value)


def paths(edits):
    return [node["path"] for node in edits["deviceNodes"]]


def test_the_whole_spec(fs):
    spec = cdi_spec.spec(cdi_spec.look(str(fs)), "/var/lib/Ascend", fs=str(fs))
    assert spec["cdiVersion"] == "0.5.0" and spec["kind"] == "huawei.com/npu"
    assert [device["name"] for device in spec["devices"]] == ["0", "1", "all"]
    assert [paths(device["containerEdits"]) for device in spec["devices"]] == [
        ["/dev/davinci0"],
        ["/dev/davinci1"],
        ["/dev/davinci0", "/dev/davinci1"],
    ]
    common = spec["containerEdits"]
    assert paths(common) == ["/dev/davinci_manager", "/dev/hisi_hdc", "/dev/devmm_svm"]
    assert [(mount["hostPath"], mount["containerPath"]) for mount in common["mounts"]] == [
        ("/var/lib/Ascend/driver", "/usr/local/Ascend/driver"),
        ("/var/lib/Ascend/driver/tools/npu-smi", "/usr/local/bin/npu-smi"),
    ]
    nodes = [node for part in [spec] + spec["devices"] for node in part["containerEdits"]["deviceNodes"]]
    assert {node["permissions"] for node in nodes} == {"rw"}
    assert all(mount["options"] == ["ro", "nosuid", "nodev", "rbind", "rprivate"] for mount in common["mounts"])
    libraries = ["/usr/local/Ascend/driver/lib64" + name for name in ("/driver", "/common", "")]
    assert "env" not in common
    assert common["hooks"] == [
        {
            "hookName": "createContainer",
            "path": "/var/lib/npuops/bin/npu-cdi-hook",
            "args": ["npu-cdi-hook"] + libraries,
            # Without an environment of its own a hook gets the image's.
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "timeout": 20,
        }
    ]
    text = cdi_spec.text(spec)
    assert json.loads(text) == spec
    for word in ("major", "minor", "fileMode", "ASCEND_VISIBLE_DEVICES", str(fs)):
        assert word not in text


def test_other_ways_to_the_libraries(fs):
    edits = cdi_spec.spec(cdi_spec.look(str(fs)), "/x", "env", str(fs))["containerEdits"]
    assert "hooks" not in edits
    assert edits["env"] == [
        "LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64/driver:/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64"
    ]
    edits = cdi_spec.spec(cdi_spec.look(str(fs)), "/x", "none", str(fs))["containerEdits"]
    assert "hooks" not in edits and "env" not in edits


def test_virtual_npus(fs):
    for number in (101, 100):
        (fs / "dev" / ("vdavinci%d" % number)).touch()
    devices = cdi_spec.spec(cdi_spec.look(str(fs)), "/x", fs=str(fs))["devices"]
    assert [device["name"] for device in devices] == ["0", "1", "100", "101", "all"]
    assert devices[2]["containerEdits"]["deviceNodes"] == [
        {"path": "/dev/davinci100", "hostPath": "/dev/vdavinci100", "permissions": "rw"}
    ]
    assert paths(devices[4]["containerEdits"]) == ["/dev/davinci0", "/dev/davinci1"]


@pytest.fixture
def programs(tmp_path):
    for name in ("ldconfig", "unshare", "umount", "sed"):
        path = tmp_path / "usr" / "sbin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    return tmp_path


def test_hook_is_written_and_removed(programs):
    fs, script = str(programs), "#!/bin/sh\n"
    path = programs / "var/lib/npuops/bin/npu-cdi-hook"
    assert cdi_spec.hook_reason(None, fs) is None
    assert "does not exist" in cdi_spec.hook_reason(script, fs)
    cdi_spec.write_hook(script, fs)
    assert cdi_spec.hook_reason(script, fs) is None
    assert path.read_text() == script and path.stat().st_mode & 0o777 == 0o755
    path.chmod(0o777)
    assert "not the hook of this version" in cdi_spec.hook_reason(script, fs)
    path.chmod(0o755)
    assert "not the hook of this version" in cdi_spec.hook_reason("#!/bin/sh\nother\n", fs)
    assert "is not needed" in cdi_spec.hook_reason(None, fs)
    cdi_spec.write_hook(None, fs)
    assert not path.exists()


def test_hook_needs_programs(programs):
    (programs / "usr/sbin/unshare").unlink()
    with pytest.raises(NpuError, match="no unshare, .*npu_runtime_library_path: env"):
        cdi_spec.hook_reason("#!/bin/sh\n", str(programs))
    assert cdi_spec.hook_reason(None, str(programs)) is None


@pytest.mark.parametrize(
    "chips, present, numbers",
    [
        (2, [], [0, 1]),
        (2, [0, 1], [0, 1]),
        (3, [0, 2], [0, 1, 2]),
        (2, [5], [0, 5]),
        (1, [0, 1], [0, 1]),
        (0, [], []),
    ],
)
def test_chip_numbers(chips, present, numbers):
    assert cdi_spec.chip_numbers(chips, present) == numbers


def test_before_the_driver_is_loaded_it_is_the_same(fs):
    (fs / "dev" / "dvpp_cmdlist").touch()
    after = cdi_spec.spec(cdi_spec.look(str(fs)), "/x", fs=str(fs))
    for path in (fs / "dev").iterdir():
        path.unlink()
    host = cdi_spec.look(str(fs))
    assert host.missing == [0, 1]
    assert cdi_spec.spec(host, "/x", fs=str(fs)) == after


def test_duo_has_two_chips_per_function(tmp_path):
    add_chips(tmp_path, 2, "d500", "0110")
    assert cdi_spec.look(str(tmp_path)).numbers == [0, 1, 2, 3]


def test_950_has_other_nodes(tmp_path):
    add_chips(tmp_path, 1, "d806")
    assert cdi_spec.look(str(tmp_path)).nodes == ["davinci_manager", "hisi_hdc", "asdrv_svm"]


def test_two_families_are_refused(fs):
    add_chips(fs, 1, "d500", first=9)
    with pytest.raises(NpuError, match="different families"):
        cdi_spec.look(str(fs))


def test_packages_have_files_outside_of_the_tree(fs):
    for path in ("usr/local/bin/npu-smi", "etc/hccn.conf"):
        (fs / path).parent.mkdir(parents=True, exist_ok=True)
        (fs / path).touch()
    (fs / "usr/local/dcmi").mkdir()
    assert cdi_spec.mounts("/usr/local/Ascend/", str(fs)) == [
        ("/usr/local/dcmi", "/usr/local/dcmi"),
        ("/etc/hccn.conf", "/etc/hccn.conf"),
        ("/usr/local/Ascend/driver", "/usr/local/Ascend/driver"),
        ("/usr/local/bin/npu-smi", "/usr/local/bin/npu-smi"),
    ]


def test_write_and_remove(fs, tmp_path):
    path = str(tmp_path / "etc" / "cdi" / "huawei.com-npu.json")
    wanted = cdi_spec.spec(cdi_spec.look(str(fs)), "/x")
    assert cdi_spec.reason(path, None) is None
    assert "does not exist" in cdi_spec.reason(path, wanted)
    cdi_spec.write(path, wanted)
    assert cdi_spec.reason(path, wanted) is None
    assert os.listdir(os.path.dirname(path)) == ["huawei.com-npu.json"]
    assert oct(os.stat(path).st_mode & 0o777) == "0o644"
    with open(path, "a", encoding="utf-8") as stream:
        stream.write("\n")
    assert "not the spec of this host" in cdi_spec.reason(path, wanted)
    assert "is not needed" in cdi_spec.reason(path, None)
    cdi_spec.write(path, None)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    "name, text",
    [
        ("ascend.yaml", "cdiVersion: 0.6.0\nkind: huawei.com/npu # theirs\n"),
        ("ascend.json", '{"cdiVersion": "0.5.0", "kind": "huawei.com/npu"}'),
        ("ascend.yaml", "---\n\"kind\": 'huawei.com/npu'\n"),
    ],
)
def test_other_writers_are_refused(fs, tmp_path, name, text):
    directory = tmp_path / "etc" / "cdi"
    directory.mkdir(parents=True)
    (directory / name).write_text(text)
    (directory / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    (directory / "notes.txt").write_text(text)
    path = str(directory / "huawei.com-npu.json")
    with pytest.raises(NpuError, match="%s also describes devices of the kind huawei.com/npu" % name):
        cdi_spec.reason(path, cdi_spec.spec(cdi_spec.look(str(fs)), "/x"))


def test_broken_files_are_found(tmp_path):
    for name, text in (("a.json", ""), ("b.yaml", " \n"), ("c.json", "{"), ("d.yaml", "kind: x/y\n"), ("e.json", "{}"), ("f", "")):
        (tmp_path / name).write_text(text)
    assert [os.path.basename(path) for path in cdi_spec.unreadable([str(tmp_path)])] == ["a.json", "b.yaml", "c.json"]


def test_problem_says_what_differs(fs):
    host = cdi_spec.look(str(fs))
    spec = cdi_spec.spec(host, "/x", fs=str(fs))
    assert cdi_spec.problem(spec, host, "/x", "hook", str(fs)) is None
    assert cdi_spec.problem(None, host, "/x", "hook", str(fs)) == "there is no CDI spec"
    assert cdi_spec.problem(spec, host, "/y", "hook", str(fs)) == "the CDI spec has the wrong mounts"
    assert cdi_spec.problem(spec, host, "/x", "none", str(fs)) == "the CDI spec has the wrong hooks"
    assert cdi_spec.problem(dict(spec, devices=spec["devices"][1:]), host, "/x", "hook", str(fs)) == (
        "the CDI spec describes 1, all instead of 0, 1, all"
    )
    assert cdi_spec.problem({"devices": "x"}, host, "/x", "env", str(fs))


def test_a_spec_that_is_nested_without_end_is_unreadable(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[" * 100000)
    assert cdi_spec.unreadable([str(tmp_path)]) == [str(path)]


@pytest.mark.parametrize(
    "changes", [{"devices": 5}, {"devices": {"a": 1}}, {"containerEdits": [1]}, {"containerEdits": {"mounts": 7, "hooks": "x"}}]
)
def test_a_spec_of_other_types_is_not_the_one_of_this_host(changes, tmp_path):
    host = cdi_spec.HostDevices(1, None, [0], [], ["davinci_manager"])
    document = dict(cdi_spec.spec(host, "/x", fs=str(tmp_path)), **changes)
    assert cdi_spec.problem(document, host, "/x", "hook", str(tmp_path)).startswith("the CDI spec ")
    assert cdi_spec.mount_sources(document) == [] or "devices" in changes
    assert cdi_spec.hooks(document) == [] or "devices" in changes
