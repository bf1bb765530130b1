# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import report as preflight_report

from support.fleet.preflight import facts, host, judge


def test_everything_wrong_at_once():
    hosts = [
        host("a", variables=["npu_driver_verison", "npu_driver_version"]),
        host("b", fact=facts(boot_id="boot-b", problems=["/var is mounted noexec"]), driver_repository=None),
        dict(host("c"), facts=None, unreachable=True, error="ssh: connect to host c port 22:\n  timed out"),
        dict(host("d"), facts=None, error="python 3.6 is too old"),
        host("e"),
    ]
    text = preflight_report.report(judge(hosts), ['the Kubernetes user may not "patch" on "nodes"'])
    assert text.splitlines() == [
        "Nothing was changed: 4 of 5 hosts cannot be installed as they are.",
        '  cluster: the Kubernetes user may not "patch" on "nodes"',
        "  a: unknown variable npu_driver_verison: did you mean npu_driver_version?",
        "  b: /var is mounted noexec",
        "  b: npu_driver_repository is not set: the repository that holds the driver images, such as"
        " registry.example.com/mlops/ascend-driver (or npu_driver_image for a whole reference)",
        "  c: not reachable: ssh: connect to host c port 22: timed out",
        "  d: python 3.6 is too old",
        "To continue without a host, exclude it: --limit 'all:!<host>'.",
    ]


def test_nothing_wrong():
    assert preflight_report.report(judge([host()]), []) is None
