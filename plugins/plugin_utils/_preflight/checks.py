# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks of the hosts before anything is changed on any of them.

Pure decisions on what the hosts, the cluster and the registry said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import parts
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import (
    driver_image,
    driver_package,
    driver_path,
    host_checks,
    node_checks,
    other_kernels,
    runtime_package,
    vnpu_checks,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.driver_image import Resolve


def judge(
    hosts: Sequence[AskedHost],
    nodes: Mapping[str, Object],
    resolve: Resolve,
    daemonsets: Sequence[Object] = (),
    version_line: str | None = None,
    share_count: int = 1,
    hot_reset: str = "disabled",
    npu_users: vnpu_checks.Users = lambda _names: {},
    look: driver_package.Look = driver_package.look,
    adopting: bool = False,
) -> list[CheckedHost]:
    """What install makes of the hosts: a list of CheckedHost, one per host, in their order.

    ``hosts``: list of {name, facts, error, unreachable, config, variables}; ``nodes``: Node objects by name;
    ``resolve``: called with (reference text, config), returns the digest, raises NpuError; ``daemonsets``: our
    device plugin's that exist already; ``version_line``: of the device plugin that is to be deployed, or None;
    ``share_count``: how often that is to offer each chip; ``hot_reset``: whether it is to reset faulty ones; ``npu_users``: called
    with names of nodes, returns the pods that use their NPUs; ``look``: called with (source of a package, config), returns its
    contents, raises NpuError; ``adopting``: whether nodes with the device plugin of others move to ours after this.
    """
    answers = driver_image.Answers(resolve, look)
    verdicts = inspect(hosts, nodes, answers, version_line)
    candidates = [verdict for verdict in verdicts if verdict.has_chips]
    for verdict in verdicts:
        if verdict.facts and not verdict.has_chips:
            host_checks.check_chips(verdict)
    driver_path.check_deployed(candidates, nodes, daemonsets)
    if adopting:
        node_checks.hold_back(candidates, nodes)
    for verdict in candidates:
        node_checks.check_gate(verdict, nodes)
        host_checks.check_chips(verdict)
        host_checks.check_loaded(verdict)
        if verdict.digest:
            found = other_kernels.look(verdict, [_version_of_boots(verdict)], answers)
            verdict.other_kernels = found.images
            verdict.reasons += found.reasons
            verdict.notes += found.notes
        host_checks.check_version_line(verdict, version_line)
        runtime_package.check(verdict, version_line)
        if version_line:
            host_checks.check_share_count(verdict, share_count, daemonsets)
        vnpu_checks.look(verdict, nodes.get(verdict.node_name))
        if version_line:
            vnpu_checks.check_plugin(verdict, share_count, hot_reset)
    vnpu_checks.check_free(candidates, npu_users)
    return verdicts


def inspect(
    hosts: Sequence[AskedHost],
    nodes: Mapping[str, Object],
    answers: driver_image.Answers | None,
    version_line: str | None = None,
    explicit: bool = False,
) -> list[CheckedHost]:
    """The checks that an upgrade also makes: the host, whether it is its node, the driver image. See ``judge``.

    Without ``answers`` (None) no image is looked for. ``explicit``: whether each host must say which version it is to have.
    """
    verdicts = [CheckedHost(host) for host in hosts]
    for verdict in verdicts:
        host_checks.check(verdict, version_line)
    candidates = [verdict for verdict in verdicts if verdict.has_chips]
    node_checks.check(candidates, nodes)
    driver_path.check_one(candidates)
    if answers is not None:
        driver_image.resolve_all(candidates, answers, explicit)
    return verdicts


def _version_of_boots(verdict: CheckedHost) -> str:
    """The driver version that the next boots select: that of the release which stays, if install does not replace it."""
    if verdict.runs_another and verdict.keep_release:
        return parts(verdict.keep_release)[0]
    return verdict.config["driver_version"]
