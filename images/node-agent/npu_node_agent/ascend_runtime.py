# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Translate an Allocate response of the upstream plugin for ascend-docker-runtime, which acts on a variable of the container.

A plugin that this runtime has started names the chips in that variable itself. One that was started before the runtime was
installed lists device nodes instead: a container would get them, and no library of the driver.
"""

from __future__ import annotations

import re

from . import api, translate, wire

OPTIONS = "ASCEND_RUNTIME_OPTIONS"
VIRTUAL = "VIRTUAL"

_VIRTUAL_PATH = re.compile(r"/dev/vdavinci[0-9]+")
# What the runtime adds to every container with chips, on whichever chip.
_ADDED = re.compile(
    r"/dev/(v?davinci[0-9]+|davinci_manager|davinci_manager_docker|devmm_svm|hisi_hdc|dvpp_cmdlist|(uburma|ummu)/.+"
    r"|svm0|ts_aisle|upgrade|sys|vdec|vpc|pngd|venc|log_drv|acodec|ai|ao|vo|hdmi)"
)


def allocate(answer: bytes) -> tuple[bytes, list]:
    """Translate an AllocateResponse. Returns the new message and the numbers of the chips per container.

    Raises WireError, TranslateError.
    """
    fields, chips = [], []
    for field in wire.decode(answer):
        if field.number == api.CONTAINER_RESPONSES and field.kind == wire.BYTES:
            container, container_chips = _container(wire.content(field))
            field = wire.blob(api.CONTAINER_RESPONSES, container)
            chips.append(container_chips)
        fields.append(field)
    return wire.encode(fields), chips


def _container(message: bytes) -> tuple[bytes, list]:
    fields = wire.decode(message)
    chips = translate.chips_of(fields)
    if not chips or _names_chips(fields):
        return message, chips
    virtual = any(_VIRTUAL_PATH.fullmatch(_host_path(spec)) for spec in wire.messages(fields, api.DEVICE_SPECS))
    kept = [field for field in fields if field.number != api.DEVICE_SPECS or not _ADDED.fullmatch(_host_path(wire.content(field)))]
    added = [_variable(translate.VISIBLE_DEVICES, ",".join(chips))]
    if virtual:
        added.append(_variable(OPTIONS, VIRTUAL))
    return wire.encode(kept + added), chips


def _names_chips(fields: list) -> bool:
    """Whether the plugin has set the variable."""
    pairs = [wire.decode(entry) for entry in wire.messages(fields, api.ENVS)]
    return any(wire.text(pair, api.MAP_KEY) == translate.VISIBLE_DEVICES for pair in pairs)


def _host_path(spec: bytes) -> str:
    return wire.text(wire.decode(spec), api.HOST_PATH)


def _variable(name: str, value: str) -> wire.Field:
    return wire.blob(api.ENVS, wire.encode([wire.blob(api.MAP_KEY, name), wire.blob(api.MAP_VALUE, value)]))
