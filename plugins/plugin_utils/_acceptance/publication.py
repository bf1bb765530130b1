# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of an acceptance: its document is written where it belongs, and told to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import BAD
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import acceptance_document, on_node
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster

Connect = Callable[[], AnyCluster]


def publish(document: Mapping[str, Any], directory: str | None, connect: Connect | None, boot_id: str | None) -> dict[str, Any]:
    """Write the document into a ``directory``, and the verdict to the Node; returns what the modules return of it.

    None for a directory or a cluster: nothing is written there. ``boot_id``: of the host. Raises NpuError if the file cannot be
    written.
    """
    path = acceptance_document.write(directory, document) if directory else None
    lines = acceptance_document.lines(document)
    problem = lines[0] if document["verdict"] in BAD else None
    if connect is not None:
        try:
            lines += on_node.write(connect(), document, boot_id)
        except kube_client.NoCredentials:
            pass  # hosts can be accepted before there is a cluster
        except NpuError as exc:
            lines.append("  The verdict was not written to the Node: %s" % sentence(exc.message))
            problem = problem or "%s. The verdict was not written to the Node: %s" % (lines[0], sentence(exc.message))
    return {"document": document, "path": path, "lines": lines, "problem": problem}
