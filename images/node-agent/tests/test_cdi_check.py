# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about a CDI spec that does not fit the host."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory

from npu_node_agent.cdi_check import HostPaths, problems
from npu_node_agent.cdi_spec import SpecFile

RELEASE = "25.5.0-6.6.0-0123456789ab"


@pytest.fixture
def host(tmp_path):
    root = tmp_path / "Ascend"
    for release in (RELEASE, "25.0.0-6.6.0-ba9876543210"):
        (root / "releases" / release / "driver" / "lib64").mkdir(parents=True)
    (root / "driver").symlink_to("releases/%s/driver" % RELEASE)
    (tmp_path / "dev").mkdir()
    for name in ("davinci0", "davinci1", "davinci_manager", "vdavinci100"):
        (tmp_path / "dev" / name).touch()
    for address in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "pci" / address).mkdir(parents=True)
        for name, value in (("vendor", "0x19e5"), ("class", "0x120000"), ("device", "0xd802")):
            (tmp_path / "pci" / address / name).write_text(value)
    memory = str(tmp_path / "plugin" / "chips.json")
    return HostPaths(str(tmp_path / "dev"), str(root / "driver"), pci_devices=str(tmp_path / "pci"), memory=memory)


@pytest.fixture
def write(tmp_path, host):
    path = str(tmp_path / "huawei.com-npu.json")
    document = {
        "cdiVersion": "0.5.0",
        "kind": "huawei.com/npu",
        "devices": [{"name": n, "containerEdits": {"deviceNodes": []}} for n in ("0", "1", "100", "all")],
        "containerEdits": {
            "mounts": [
                {"hostPath": host.driver_tree + "/lib64", "containerPath": "/lib64"},
                {"hostPath": "/elsewhere", "containerPath": "/x"},
            ]
        },
    }

    def put(change=lambda document: None, text=None):
        change(document)
        with open(path + ".new", "w", encoding="utf-8") as stream:
            stream.write(json.dumps(document) if text is None else text)
        os.rename(path + ".new", path)
        return SpecFile(path)

    return put


READY = {"release": RELEASE, "version": "25.5.0"}


def test_in_order(host, write):
    assert problems(write(), host, READY) == []
    assert problems(write(), host, None) == []
    assert problems(write(), host, {"release": "", "version": "25.5.0"}) == []  # preinstalled


def test_missing_then_there(host, tmp_path, write):
    spec = SpecFile(str(tmp_path / "huawei.com-npu.json"))
    assert "No such file" in problems(spec, host, READY)[0]
    write()
    assert problems(spec, host, READY) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"devices": 3}', '{"devices": [{}], "kind": "huawei.com/npu"}', "null"])
def test_not_a_spec(host, write, text):
    assert "is not a CDI spec" in problems(write(text=text), host, READY)[0]


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda d: d.update(kind="ascend.com/npu"), "its kind is 'ascend.com/npu', not huawei.com/npu"),
        (lambda d: d["devices"].pop(1), "chip 1 has a device node, but no entry"),
        (lambda d: d["devices"].append({"name": "7"}), "chip 7 has an entry, but no device node"),
    ],
)
def test_one_difference(host, write, change, expected):
    assert problems(write(change), host, READY) == [expected]


def test_chips_that_are_missing_since_install_are_no_difference(host, write):
    """Install, which would write the spec again, waits until that is accepted."""
    spec = write(lambda d: d["devices"].append({"name": "7"}))
    told = "chip 7 has an entry, but no device node"
    at = {"0000:%02x:00.0" % bus: 1 for bus in range(1, 4)}
    chip_memory.write(at, host.memory)
    assert problems(spec, host, READY) == []
    # On a bus that was renumbered, it is not known which one it is.
    chip_memory.write({"0000:%02x:00.0" % bus: 1 for bus in range(11, 14)}, host.memory)
    assert problems(spec, host, READY) == []
    # Another one has no device node either.
    os.unlink(os.path.join(host.dev_dir, "davinci1"))
    assert problems(spec, host, READY) == ["chip 1 has an entry, but no device node", told]
    os.unlink(host.memory)
    os.symlink("elsewhere", host.memory)
    assert problems(spec, host, READY) == ["chip 1 has an entry, but no device node", told]


def test_mount_that_is_gone(host, write):
    os.rmdir(os.path.join(os.path.realpath(host.driver_tree), "lib64"))
    assert problems(write(), host, READY) == ["%s/lib64, which it mounts, does not exist" % host.driver_tree]


def test_link_moved_under_a_loaded_driver(host, write):
    os.unlink(host.driver_tree)
    os.symlink("releases/25.0.0-6.6.0-ba9876543210/driver", host.driver_tree)
    expected = "it points to the release 25.0.0-6.6.0-ba9876543210, but %s is loaded" % RELEASE
    assert problems(write(), host, READY) == [expected]


def test_other_files_beside_it(host, tmp_path, write):
    spec = write()
    (tmp_path / "half.json").write_text("")
    assert "half.json in the same directory is invalid" in problems(spec, host, READY)[0]
    (tmp_path / "half.json").unlink()
    (tmp_path / "foreign.yaml").write_text("cdiVersion: 0.5.0\nkind: huawei.com/npu\n")
    assert "foreign.yaml describes devices of the same kind" in problems(spec, host, READY)[0]


def test_no_spec_is_needed_where_cdi_is_not_used(host, tmp_path):
    spec, mode = SpecFile(str(tmp_path / "missing.json")), tmp_path / "runtime-mode"
    host = host._replace(mode_file=str(mode))
    assert len(problems(spec, host, READY)) == 1
    mode.write_text("ascend\n")
    assert problems(spec, host, READY) == []
