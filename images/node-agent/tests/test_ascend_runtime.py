# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocate answers as ascend-docker-runtime acts on them: messages made by protobuf, taken apart by the agent."""

from __future__ import annotations

import pytest
from fakes import Plugin, pb

from npu_node_agent import ascend_runtime, translate


def translated(container):
    message, chips = ascend_runtime.allocate(pb.AllocateResponse(container_responses=[container]).SerializeToString())
    result = pb.AllocateResponse.FromString(message).container_responses[0]
    assert not result.cdi_devices
    return result, chips[0]


def spec(host, container=None):
    return pb.DeviceSpec(host_path=host, container_path=container or host, permissions="rw")


def test_what_a_plugin_says_that_the_runtime_has_started_stays():
    container = pb.ContainerAllocateResponse(envs={"ASCEND_VISIBLE_DEVICES": "0-2,4", "ASCEND_RUNTIME_OPTIONS": ""})
    answer = pb.AllocateResponse(container_responses=[container]).SerializeToString()
    assert ascend_runtime.allocate(answer) == (answer, [["0", "1", "2", "4"]])


def test_device_nodes_become_the_variable():
    result, chips = translated(Plugin.device_specs(["Ascend910-5", "Ascend910-0"]))
    assert dict(result.envs) == {"ASCEND_VISIBLE_DEVICES": "0,5"} and not result.devices
    assert chips == ["0", "5"]


def test_a_virtual_npu():
    container = pb.ContainerAllocateResponse(devices=[spec("/dev/vdavinci100", "/dev/davinci100"), spec("/dev/davinci_manager")])
    result, chips = translated(container)
    assert dict(result.envs) == {"ASCEND_VISIBLE_DEVICES": "100", "ASCEND_RUNTIME_OPTIONS": "VIRTUAL"}
    assert not result.devices and chips == ["100"]


def test_everything_else_stays():
    container = Plugin.device_specs(["Ascend910-1"])
    container.devices.append(spec("/dev/infiniband/uverbs0"))
    container.mounts.append(pb.Mount(host_path="/x", container_path="/y"))
    container.annotations["huawei.com/AscendReal"] = "Ascend910-1"
    result, _chips = translated(container)
    assert [device.host_path for device in result.devices] == ["/dev/infiniband/uverbs0"]
    assert result.mounts == container.mounts and result.annotations == container.annotations


def test_a_container_without_chips():
    container = pb.ContainerAllocateResponse(envs={"A": "b"}, devices=[spec("/dev/davinci_manager")])
    assert translated(container) == (container, [])


def test_a_variable_that_names_no_chip():
    with pytest.raises(translate.TranslateError, match="'x' is not a chip"):
        translated(pb.ContainerAllocateResponse(envs={"ASCEND_VISIBLE_DEVICES": "x"}))
