# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own smoke pod on all chips of a node at once: whether pods get each of them, and can work with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import FAIL, PASS, UNKNOWN, finding
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import offered_npus
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AcceptanceFinding
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.smoke_pod import SmokeFailed, SmokePod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use

NAME, LEVEL = "smoke pods", 2
_MOST = 64  # pods at once
_MOST_TOLD = 4


def check(
    cluster: AnyCluster, node: Object, chips: int, manifest: Object, timeout: int, say: Callable[[str], None], clock: Clock
) -> AcceptanceFinding:
    """Run the pods of a ``manifest`` and return the finding. ``chips``: how many chips the host has; ``timeout``: seconds that each
    pod may take, 0 = any number. Raises NpuError if the API server does not respond.
    """
    asked = npu_use.requests(manifest["spec"])
    lacking = offered_npus.lacking(node, asked)
    if lacking:
        seen = "not run, because the node does not offer what one asks for: %s" % lacking
        return finding(NAME, LEVEL, UNKNOWN, seen, offered_npus.ADVICE)
    number = max(1, min((_at_once(node, name, chips) // count for name, count in asked.items()), default=1))
    pods = [
        SmokePod(cluster, node["metadata"]["name"], manifest, timeout, lambda: None, say, clock, index)
        for index in range(min(number, _MOST))
    ]
    failed = _run(pods)
    if failed:
        seen = "%d of %d failed: %s" % (len(failed), len(pods), and_more(failed, _MOST_TOLD))
        return finding(NAME, LEVEL, FAIL, seen, "docs/chip-faults.md and docs/troubleshooting.md say what such errors mean")
    return finding(NAME, LEVEL, PASS, "%d of %d succeeded" % (len(pods), len(pods)))


def _at_once(node: Object, name: str, chips: int) -> int:
    """How many pods can each have one of the resource ``name``. Chips that pods share are offered more often than they exist."""
    offered = kube_client.allocatable(node, name)
    return offered if vnpu.is_of_vnpu(name) else min(offered, chips)


def _run(pods: Sequence[SmokePod]) -> list[str]:
    """Run all of them at once; why those failed that did. None is left, whatever happens."""
    failed: list[str] = []
    begun: list[SmokePod] = []
    try:
        for pod in pods:
            begun += [pod] if _succeeds(pod.begin, failed) else []
        for pod in begun:
            _succeeds(pod.end, failed)
    except BaseException:
        for pod in begun:
            pod.delete()
        raise
    return failed


def _succeeds(step: Callable[[], None], failed: list[str]) -> bool:
    try:
        step()
    except SmokeFailed as exc:
        failed.append(exc.message)
        return False
    return True
