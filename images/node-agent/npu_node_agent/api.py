# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the kubelet's device plugin API v1beta1 that the bridge needs: method names, field numbers, some messages.

The numbers are those of api.proto in k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1. tests/v1beta1.proto contains them as a schema,
with which the tests communicate with the bridge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import wire

VERSION = "v1beta1"
REGISTER = "/v1beta1.Registration/Register"
GET_OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"
PREFERRED_ALLOCATION = "/v1beta1.DevicePlugin/GetPreferredAllocation"
ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
PRE_START = "/v1beta1.DevicePlugin/PreStartContainer"

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"

# RegisterRequest
_VERSION, _ENDPOINT, _RESOURCE_NAME = 1, 2, 3
# ListAndWatchResponse, Device
_DEVICES = 1
_ID, _HEALTH = 1, 2
# AllocateResponse and its content, for translate.py
CONTAINER_RESPONSES = 1
ENVS, MOUNTS, DEVICE_SPECS, CDI_DEVICES = 1, 2, 3, 5
CONTAINER_PATH, HOST_PATH = 1, 2
CDI_NAME = 1
MAP_KEY, MAP_VALUE = 1, 2

_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Registration:
    """A RegisterRequest; ``message`` is the original, so that options and unknown fields are passed on."""

    resource: str
    endpoint: str
    message: bytes

    @classmethod
    def decode(cls, message: bytes) -> Registration:
        """Raises ValueError for requests that the kubelet would refuse, and for an endpoint outside the directory."""
        fields = wire.decode(message)
        version = wire.text(fields, _VERSION)
        resource, endpoint = wire.text(fields, _RESOURCE_NAME), wire.text(fields, _ENDPOINT)
        if version != VERSION:
            raise ValueError("API version %r is not supported, only %s" % (version, VERSION))
        if not _RESOURCE.fullmatch(resource):
            raise ValueError("%r is not an extended resource name" % resource)
        if not endpoint or "/" in endpoint or endpoint in (".", "..") or "\0" in endpoint:
            raise ValueError("endpoint %r is not a file name" % endpoint)
        return cls(resource, endpoint, message)

    def with_endpoint(self, endpoint: str) -> bytes:
        """The same request for another socket."""
        return wire.encode(
            wire.blob(_ENDPOINT, endpoint) if field.number == _ENDPOINT else field for field in wire.decode(self.message)
        )


def devices(message: bytes) -> dict[str, str]:
    """Health by device ID, from a ListAndWatchResponse. Raises WireError."""
    listed = [wire.decode(device) for device in wire.messages(wire.decode(message), _DEVICES)]
    return {wire.text(device, _ID): wire.text(device, _HEALTH) for device in listed}


def all_unhealthy(message: bytes) -> bytes:
    """The same ListAndWatchResponse with every device Unhealthy, and otherwise unchanged."""
    return wire.encode(
        wire.blob(_DEVICES, _unhealthy(wire.content(field))) if field.number == _DEVICES else field
        for field in wire.decode(message)
    )


def _unhealthy(device: bytes) -> bytes:
    kept = [field for field in wire.decode(device) if field.number != _HEALTH]
    return wire.encode([*kept, wire.blob(_HEALTH, UNHEALTHY)])
