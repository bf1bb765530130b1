# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rollout as one HTML page that needs nothing else, rendered from its JSON (_report.rollout_report).

No script, nothing from the network: it can be mailed, archived and opened anywhere. Names, reasons and messages in it come from
the cluster, the hosts and the user's hooks. They reach the template as values only: Jinja escapes each one and never parses it,
and the page forbids the browser to run or load anything.
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import jinja2
import jinja2.sandbox
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import page as report_page
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report

_TEMPLATES = pathlib.Path(__file__).with_name("templates")


def page(report: dict[str, Any]) -> str:
    """The content of the file."""
    return _environment().get_template("report.html.j2").render(report_page.content(report))


@functools.cache
def _environment() -> jinja2.Environment:
    """Jinja's own environment: Ansible's templar would look for templates in the values."""
    return jinja2.sandbox.ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _printable(value: Any) -> str:
    """Escaping does not remove what HTML cannot hold at all, for example control characters."""
    return value if hasattr(value, "__html__") else rollout_report.printable(value)  # what a macro wrote is markup already
