# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from support.fleet.preflight import cluster_nodes, facts, host, judge, only, plugin_daemonset


def test_mixed_driver_paths_are_refused():
    tree = {"loaded": True, "tree": "/usr/local/Ascend/driver"}
    verdicts = judge([host("a"), host("b", fact=facts(boot_id="boot-b", driver=tree), driver_source="preinstalled"), host("c")])
    assert all("/usr/local/Ascend/driver on b; /var/lib/Ascend/driver on a, c" in v.reasons[0] for v in verdicts)
    assert all(v.reasons[0].endswith(". Set npu_driver_root to /usr/local/Ascend for all hosts") for v in verdicts)
    # As it says.
    alike = [host(name, driver_root="/usr/local/Ascend") for name in "ac"]
    alike.insert(
        1, host("b", fact=facts(boot_id="boot-b", driver=tree), driver_source="preinstalled", driver_root="/usr/local/Ascend")
    )
    assert all(v.status == "ready" for v in judge(alike))
    apart = judge([host("a"), host("b", driver_root="/opt")])
    assert all(v.reasons[0].endswith(". Set the same npu_driver_root") for v in apart)


def test_a_limited_run_does_not_move_the_others_driver():
    nodes = dict(
        cluster_nodes("a"),
        **cluster_nodes("b", labels={"accelerator": "huawei-Ascend910", "npuops.ascend/components": "enabled"}),
    )
    moved = only(host("a"), nodes=nodes, daemonsets=[plugin_daemonset("/opt/Ascend/driver")])
    assert "but b (not in this run) already use the device plugin with /opt/Ascend/driver" in moved.reasons[0]
    assert only(host("a"), nodes=nodes, daemonsets=[plugin_daemonset("/var/lib/Ascend/driver")]).status == "ready"
    assert only(host("a"), daemonsets=[plugin_daemonset("/opt/Ascend/driver")]).status == "ready"
