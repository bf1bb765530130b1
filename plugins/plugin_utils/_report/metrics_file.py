# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with metrics that the textfile collector of node_exporter reads."""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import write_atomic

_SUFFIX = ".prom"


def check(path: str | None) -> None:
    """Raise NpuError if no collector would read a file with this name."""
    if path is not None and not (path.endswith(_SUFFIX) and os.path.basename(path) != _SUFFIX):
        raise NpuError(
            "npu_status_metrics_file is %s, and the textfile collector of node_exporter only reads files whose names end in %s."
            " Name the file, for example, %s." % (path, _SUFFIX, os.path.join(_directory(path), "npuops" + _SUFFIX))
        )


def write(path: str, text: str) -> None:
    """Write it, completely or not at all: node_exporter may read it at any time. Raises NpuError."""
    try:
        write_atomic(os.path.abspath(path), text, mode=0o644)
    except OSError as exc:
        raise NpuError(
            "The metrics could not be written to %s on the controller: %s. Name a file in npu_status_metrics_file whose directory"
            " exists, and in which the user that runs Ansible may write." % (path, exc.strerror or exc)
        ) from exc


def _directory(path: str) -> str:
    return path if path.endswith("/") or os.path.isdir(path) else os.path.dirname(path)
