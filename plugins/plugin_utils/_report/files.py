# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rollout as files, each rendered from its JSON (_report.rollout_report)."""

from __future__ import annotations

import json
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import write_atomic
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import html as report_html
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import junit as report_junit
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.rollout_report import Report

_RENDERERS = {
    "json": lambda report: json.dumps(report, indent=2) + "\n",
    "xml": report_junit.document,
    "html": report_html.page,
}


def paths(directory: str, report: Report) -> dict[str, str]:
    """{kind: absolute path} of the files, ``npu-<reason>-<run>.<kind>``; a relative directory is below the working one."""
    # The caller of the module may name the run; its files must stay in the directory.
    name = re.sub(r"[^A-Za-z0-9._-]", "-", "npu-%s-%s" % (report["reason"], report["run"]))
    return {kind: os.path.join(os.path.abspath(directory), "%s.%s" % (name, kind)) for kind in _RENDERERS}


def write(where: dict[str, str], report: Report) -> None:
    """Write them all. ``where``: of ``paths``. Each is there completely or not at all. Raises NpuError."""
    rendered = {kind: render(report) for kind, render in _RENDERERS.items()}
    directory = os.path.dirname(where["json"])
    try:
        os.makedirs(directory, exist_ok=True)
        for kind, text in rendered.items():
            write_atomic(where[kind], text)
    except OSError as exc:
        raise NpuError(
            "The report could not be written to %s on the controller: %s. Let the user that runs Ansible write there, or"
            " name another directory in npu_upgrade_report_dir." % (directory, exc.strerror or exc)
        ) from exc
