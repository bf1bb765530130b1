# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what a host says of itself can be facts. One that was taken over says what it likes; that is its own affair only."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import (
    Misfit,
    anything,
    fields,
    flag,
    listing,
    number,
    optional,
    shown,
    table,
    text,
)

_word = optional(text(256))
# Components mount it, and it stands in their manifests.
_path = optional(text(256, r"/[A-Za-z0-9._/@:+-]*", "a path"))
_told = text(4096)
_told_if_any = optional(_told)


def _family(value, where):
    """Its words become labels, resources and names of objects."""
    if value is not None and value not in [family._asdict() for family in FAMILIES.values()]:
        raise Misfit("%s is %s, which this version does not know" % (where, shown(value)))


_DRIVER = fields(
    root=_path,
    managed=optional(flag),
    package=_path,
    tree=_path,
    version=_word,
    release=_word,
    complete=optional(flag),
    good=_word,
    next=_word,
    loaded=optional(flag),
    loaded_release=_word,
    loaded_version=_word,
    ready=optional(fields()),
    failed=optional(fields(reason=_told_if_any)),
    problem=_told_if_any,
)
_STAGED = fields(version=_word, kernel=_word, digest=_word, firmware=optional(listing(_word, 2)))
_HOLDER = fields(pid=optional(number()), command=_told_if_any, device=_told_if_any, pod=optional(flag))
_UPGRADE = fields(previous=_word, trial=_word, staged=optional(table(_STAGED)), holders=optional(listing(_HOLDER, 10000)))
_FACTS = fields(
    hostname=_word,
    boot_id=_word,
    machine_id=_word,
    uptime=optional(number(real=True)),
    kernel=_word,
    machine=_word,
    os=optional(fields(id=_word, version_id=_word, pretty_name=_told_if_any)),
    kernel_key=_word,
    os_key=_word,
    python=_word,
    chips=optional(listing(fields())),
    chip_count=optional(number(0, 1024)),
    family=_family,
    runtime=optional(fields(name=_word, version=_word, address=_told_if_any, ctr=_told_if_any, config_path=_told_if_any)),
    driver=optional(_DRIVER),
    firmware_version=_word,
    disk=optional(fields(path=_told_if_any, free_bytes=optional(number(most=2**63)))),
    upgrade=optional(_UPGRADE),
    problems=optional(listing(_told)),
)
_CHECK = fields(name=_told_if_any, passed=optional(flag), expected=anything, seen=anything, message=_told_if_any)
_VALIDATION = fields(checks=optional(listing(_CHECK)), valid=optional(flag), version=_word, msg=_told_if_any)


def why_not(facts, validation=None):
    """Why this cannot be a host's facts and its validation, as a sentence; None if they can."""
    try:
        _FACTS(facts if facts is not None else {}, "")
        _VALIDATION(validation if validation is not None else {}, "validation")
    except Misfit as exc:
        return (
            "its facts are not valid: %s. Check that its address belongs to the right host, and that its Python was"
            " not changed" % exc
        )
    return None
