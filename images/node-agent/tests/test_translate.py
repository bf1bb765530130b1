# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocate answers as CDI names: messages made by protobuf, taken apart by the agent."""

from __future__ import annotations

import random

import pytest
from fakes import Plugin, pb

from npu_node_agent import api, translate, wire

SHARED = frozenset("/dev/" + name for name in ("davinci_manager", "hisi_hdc", "devmm_svm", "dvpp_cmdlist"))


def provided_by(names):
    chips = {"/dev/davinci" + name for name in names} | {"/dev/vdavinci" + name for name in names}
    return translate.Provided(SHARED | chips, frozenset({("/var/lib/Ascend/driver", "/usr/local/Ascend/driver")}))


def translated(container, provider=provided_by):
    answer = pb.AllocateResponse(container_responses=[container])
    message, names = translate.allocate(answer.SerializeToString(), provider)
    result = pb.AllocateResponse.FromString(message).container_responses[0]
    assert [device.name for device in result.cdi_devices] == names[0]
    return result


def names(container):
    return [device.name for device in container.cdi_devices]


def spec(host, container=None):
    return pb.DeviceSpec(host_path=host, container_path=container or host, permissions="rw")


def test_device_paths():
    result = translated(Plugin.device_specs(["Ascend910-5", "Ascend910-0"]))
    assert names(result) == ["huawei.com/npu=0", "huawei.com/npu=5"]
    assert not result.devices


def test_devices_that_share_a_chip():
    result = translated(Plugin.device_specs(["Ascend310P-5-3", "Ascend310P-0-2", "Ascend310P-5-0"]))
    assert names(result) == ["huawei.com/npu=0", "huawei.com/npu=5"]
    assert not result.devices


def test_virtual_npu():
    result = translated(pb.ContainerAllocateResponse(devices=[spec("/dev/vdavinci100", "/dev/davinci100")]))
    assert names(result) == ["huawei.com/npu=100"] and not result.devices


@pytest.mark.parametrize(
    "value, chips",
    [
        ("0", "0"),
        ("0,1", "0 1"),
        ("3, 1", "3 1"),
        ("0-3,7", "0 1 2 3 7"),
        ("Ascend910-5", "5"),
        ("Ascend310P-0-3,Ascend310P-2-0", "0 2"),
        ("007", "7"),
        ("1,1", "1"),
    ],
)
def test_visible_devices(value, chips):
    envs = {"ASCEND_VISIBLE_DEVICES": value, "ASCEND_RUNTIME_OPTIONS": ""}
    result = translated(pb.ContainerAllocateResponse(envs=envs))
    assert names(result) == ["huawei.com/npu=" + chip for chip in chips.split()]
    assert dict(result.envs) == {"ASCEND_RUNTIME_OPTIONS": ""}


@pytest.mark.parametrize("value", ["all", "0,x", "3-1", "0-99999999999", "0;1", ",", "-1"])
def test_visible_devices_that_name_no_chip(value):
    with pytest.raises(translate.TranslateError, match="ASCEND_VISIBLE_DEVICES"):
        translated(pb.ContainerAllocateResponse(envs={"ASCEND_VISIBLE_DEVICES": value}))


@pytest.mark.parametrize(
    "container",
    [
        pb.ContainerAllocateResponse(),
        pb.ContainerAllocateResponse(envs={"ASCEND_VISIBLE_DEVICES": "void"}),
        pb.ContainerAllocateResponse(envs={"ASCEND_VISIBLE_DEVICES": ""}),
        pb.ContainerAllocateResponse(devices=[spec("/dev/davinci_manager"), spec("/dev/davinci")]),
        pb.ContainerAllocateResponse(devices=[spec("/dev/davinci0")], cdi_devices=[pb.CDIDevice(name="ascend.com/npu=0")]),
    ],
)
def test_answers_without_chips_or_with_names_of_their_own_stay(container):
    assert translated(container) == container


def test_everything_else_passes():
    container = pb.ContainerAllocateResponse(
        envs={"A": "1", "ASCEND_VISIBLE_DEVICES": "2"},
        annotations={"note": "x"},
        mounts=[
            pb.Mount(host_path="/etc/a", container_path="/etc/b", read_only=True),
            pb.Mount(host_path="/var/lib/Ascend/driver", container_path="/usr/local/Ascend/driver", read_only=True),
        ],
        devices=[spec("/dev/davinci1"), spec("/dev/infiniband/rdma_cm"), spec("/dev/hisi_hdc")],
    )
    result = translated(container)
    assert names(result) == ["huawei.com/npu=1", "huawei.com/npu=2"]
    assert dict(result.envs) == {"A": "1"} and dict(result.annotations) == {"note": "x"}
    assert list(result.mounts) == [container.mounts[0]]
    assert list(result.devices) == [container.devices[1]]


def test_without_a_spec_nothing_is_left_out_but_the_variable():
    result = translated(Plugin.device_specs(["Ascend910-0"]), lambda names: translate.NOTHING)
    assert names(result) == ["huawei.com/npu=0"] and len(result.devices) == 5


def test_each_container_by_itself():
    answer = pb.AllocateResponse(container_responses=[Plugin.device_specs(["Ascend910-0"]), Plugin.device_specs(["Ascend910-1"])])
    found = translate.allocate(answer.SerializeToString(), provided_by)[1]
    assert found == [["huawei.com/npu=0"], ["huawei.com/npu=1"]]


def test_unknown_fields_survive():
    unknown = [
        wire.Field(1000, wire.VARINT, 2**64 - 1),
        wire.blob(1001, b"new"),
        wire.Field(1002, wire.FIXED64, b"8" * 8),
        wire.Field(1003, wire.FIXED32, b"4444"),
    ]
    inner = wire.encode([*wire.decode(Plugin.device_specs(["Ascend910-0"]).SerializeToString()), *unknown])
    message = translate.allocate(wire.encode([wire.blob(1, inner), *unknown]), provided_by)[0]
    outer = wire.decode(message)
    assert outer[1:] == unknown
    assert [field for field in wire.decode(outer[0].value) if field.number >= 1000] == unknown


def test_a_mount_that_is_a_number():
    inner = [*wire.decode(Plugin.device_specs(["Ascend910-0"]).SerializeToString()), wire.Field(api.MOUNTS, wire.VARINT, 7)]
    with pytest.raises(wire.WireError, match="wrong wire type"):
        translate.allocate(wire.encode([wire.blob(1, wire.encode(inner))]), provided_by)


def test_all_unhealthy_keeps_the_rest():
    devices = [
        pb.Device(ID="Ascend910-0", health="Healthy", topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=3)])),
        pb.Device(ID="Ascend910-1", health="Unhealthy"),
        pb.Device(ID="Ascend910-2"),
    ]
    message = api.all_unhealthy(pb.ListAndWatchResponse(devices=devices).SerializeToString())
    for device in devices:
        device.health = "Unhealthy"
    assert pb.ListAndWatchResponse.FromString(message) == pb.ListAndWatchResponse(devices=devices)


def test_wire_never_fails_otherwise_than_with_its_error():
    source = random.Random(7)
    good = pb.AllocateResponse(container_responses=[Plugin.device_specs(["Ascend910-0"])]).SerializeToString()
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        data = bytes(data[: source.randrange(len(data) + 1)])
        try:
            assert isinstance(translate.allocate(data, provided_by)[0], bytes)
            api.devices(data)
        except (wire.WireError, translate.TranslateError):
            pass
        try:
            fields = wire.decode(data)
        except wire.WireError:
            continue
        assert wire.decode(wire.encode(fields)) == fields


@pytest.mark.parametrize("endpoint", ["", ".", "..", "a/b.sock", "/a.sock", "../kubelet.sock", "a\0b"])
def test_endpoints_outside_the_directory_are_refused(endpoint):
    request = pb.RegisterRequest(version="v1beta1", resource_name="huawei.com/Ascend910", endpoint=endpoint)
    with pytest.raises(ValueError, match="not a file name"):
        api.Registration.decode(request.SerializeToString())
