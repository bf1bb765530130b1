# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose sshd stops to answer in the middle of its maintenance: it takes connections, keeps those it has, and says nothing."""

from __future__ import annotations

import pytest

from support.crash import frozen
from support.lab.observer import COMPONENTS, STATE
from support.lab.rollout import TAKEOVER, address, last, proof, run, slots, target, untouched, upgrade, version_of, watch
from support.patience import PATIENCE

NODE, OTHER = "npu-a", "npu-b"
BOTH = f"--limit={NODE},{OTHER}"
NO_ANSWER = f"no answer within {frozen.LIMIT} s"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    return frozen.impatient(tmp_path_factory.mktemp("impatient"))


def test_a_host_that_freezes_before_its_reboot(idle, impatient):
    """It is given back, with the reason on it; the other node is upgraded meanwhile."""
    version = target(idle, NODE, OTHER)
    with watch(idle) as observer:
        with frozen.thawed_at_the_end(idle, NODE) as freeze:
            gate = frozen.When(f"^api .*nodes/{NODE} .*driver-upgrade-state=reboot-required", freeze)
            with run(idle, BOTH, gate=gate, environment=impatient, npu_driver_version=version) as one:
                assert one.wait(PATIENCE) != 0
                text = one.text
            assert gate.happened, text[-4000:]
            told = f"The host did not answer for {frozen.PATIENCE} s: {NO_ANSWER}"
            assert told in text and told in last(idle, NODE)["failure"], text[-4000:]
            node = observer.now()[NODE]
            assert not node.cordoned and not node.record, text[-4000:]
            assert (node.labels.get(STATE), node.labels.get(COMPONENTS)) == ("upgrade-required", "enabled")
            assert (slots(idle)["holders"], slots(idle)["halted"]) == ({}, None)
            assert version_of(idle, OTHER) == version
        assert version_of(idle, NODE) != version
        upgrade(idle, BOTH, npu_driver_version=version)
    assert proof(idle, observer, {NODE: 1, OTHER: 1}, version) == []


def test_a_host_that_freezes_as_it_is_told_to_reboot(idle, impatient):
    """What it will do when it thaws is unknown: it stays cordoned, the rollout is halted, and it boots once in any case."""
    version = target(idle, NODE, OTHER)
    with watch(idle) as observer:
        with frozen.thawed_at_the_end(idle, NODE) as freeze:
            gate = frozen.When(f"^{address(idle, NODE)} npu_trial_boot rebooted", freeze)
            with run(
                idle, BOTH, gate=gate, environment=impatient, npu_driver_version=version, npu_upgrade_reboot={"timeout": 5}
            ) as one:
                assert one.wait(PATIENCE) != 0
                text = one.text
            assert gate.happened, text[-4000:]
            assert "It did not come back within 5 s: the host cannot be reached" in text, text[-4000:]
            halted = slots(idle)["halted"]
            assert halted["node"] == NODE and NO_ANSWER in halted["why"], halted
            node = observer.now()[NODE]
            assert node.cordoned and node.record["step"] == "reboot-required" and NO_ANSWER in node.record["failure"]
            assert list(slots(idle)["holders"]) == [NODE]
            assert untouched(observer, OTHER) == []
        idle.wait_for(lambda: idle.ssh(NODE, "true", check=False).returncode == 0, PATIENCE, f"{NODE} answers")
        upgrade(idle, BOTH, npu_driver_version=version, **TAKEOVER)
    assert proof(idle, observer, {NODE: 1, OTHER: 1}, version) == []
