# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy


def test_every_value_may_be_a_string():
    policy = drain_policy.DrainPolicy.of(
        {"selector": "app=train", "timeout": "60"},
        {"force": "true", "timeout": "5", "delete_empty_dir": "no"},
        {"enable": "false", "force": "", "timeout": "", "delete_empty_dir": "yes", "skip_selector": ""},
    )
    assert (policy.jobs_timeout, policy.deletion_force, policy.deletion_timeout) == (60, True, 5)
    assert (policy.drain_enable, policy.drain_force, policy.drain_timeout) == (False, False, 300)
    assert (policy.deletion_delete_empty_dir, policy.drain_delete_empty_dir) == (False, True)


def test_several_dra_drivers():
    policy = drain_policy.DrainPolicy.of(pod_deletion={"dra_drivers": "npu.huawei.com, npu.example.com"})
    assert policy.dra_drivers == {"npu.huawei.com", "npu.example.com"}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"drain": {"force": "perhaps"}}, r"npu_upgrade_drain\.force is 'perhaps'"),
        ({"drain": {"timeout": "-1"}}, r"npu_upgrade_drain\.timeout is '-1'"),
        ({"pod_deletion": {"timeout": "soon"}}, r"npu_upgrade_pod_deletion\.timeout is 'soon'"),
        ({"pod_deletion": {"tiemout": 1}}, "npu_upgrade_pod_deletion has no 'tiemout'; it has force, timeout, delete_empty_dir"),
        (
            {"pod_deletion": {"dra_drivers": "NPU.huawei.com"}},
            "npu_upgrade_pod_deletion.dra_drivers names 'NPU.huawei.com', which is no",
        ),
        ({"pod_deletion": {"dra_drivers": "['npu.huawei.com']"}}, "which is not the name of a DRA driver, such as npu.huawei.com"),
        ({"wait_for_jobs": "app=train"}, "npu_upgrade_wait_for_jobs has no 'app'; it has selector, timeout"),
        ({"wait_for_jobs": {"selector": "a b"}}, r"npu_upgrade_wait_for_jobs\.selector is not a label selector"),
    ],
)
def test_what_is_wrong_with_a_setting_is_told_by_name(variables, message):
    with pytest.raises(NpuError, match=message):
        drain_policy.DrainPolicy.of(**variables)


def test_a_recovery_waits_for_nothing_without_a_limit():
    zero = {"timeout": 0}
    policy = drain_policy.DrainPolicy.of({"selector": "app=a", **zero}, zero, {"timeout": 7200})
    assert (policy.jobs_timeout, policy.deletion_timeout, policy.drain_timeout) == (0, 0, 7200)
    limited = policy.of_recovery()
    assert (limited.jobs_timeout, limited.deletion_timeout, limited.drain_timeout) == (300, 300, 7200)
    assert limited.jobs.matches({"app": "a"})
