# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where images are copied to: what people write for npu_mirror_to, or for npu_registry_mirror without it."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference, parse_reference


def directory(text: Any) -> str | None:
    """The absolute path of a directory, if ``text`` is a path and not a registry."""
    if isinstance(text, str) and (text.startswith(("/", "~", "./", "../")) or text in (".", "..")):
        return os.path.abspath(os.path.expanduser(text))
    return None


def check_prefix(mirror: Any, variable: str) -> None:
    """Raise NpuError unless ``mirror``, which the ``variable`` has, is a prefix or a mapping of prefixes."""
    mirrored("registry.invalid/x:x", mirror, variable)


def name_in(mirror: Any, reference: Reference, variable: str) -> Reference:
    """The name of the image in the mirror, which must be another one. Raises NpuError."""
    found = parse_reference(mirrored(str(reference), mirror, variable))
    if found == reference:
        raise NpuError(
            f"{variable} gives no other name to {reference}: it is in the mirror already, or the mapping has no prefix of it"
        )
    return found
