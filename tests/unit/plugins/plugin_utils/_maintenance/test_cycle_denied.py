# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials or rights that the API server refuses for some seconds, as it does when it has just started."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet.fake_fleet import FakeCluster
from support.fleet.maintenance_bench import Bench

UNAUTHORIZED = kube_client.Unauthorized("The Kubernetes API does not accept the credentials (401 Unauthorized).")
FORBIDDEN = NpuError("The Kubernetes API refuses", missing={"verb": "get", "resource": "nodes", "group": "", "namespace": None})


class Denying(FakeCluster):
    """Refuses everything until a time on the clock of its world."""

    denial = UNAUTHORIZED
    until = 0.0

    def _check(self):
        if self._world.clock.now() < type(self).until:
            raise self.denial

    def get(self, path):
        self._check()
        return super().get(path)

    def request(self, *args, **params):
        self._check()
        return super().request(*args, **params)

    def merge_patch(self, *args, **params):
        self._check()
        return super().merge_patch(*args, **params)


def denied_after_the_intent(denial, seconds):
    class Here(Denying):
        pass

    Here.denial = denial
    bench = Bench()
    bench.cluster = Here

    def look(_path, body):
        if "boot_id" in str(body) and '"boot_id": null' not in str(body):
            bench.world.on_write = lambda *_args: None
            bench.world.clock.at(3, lambda: setattr(Here, "until", bench.world.clock.now() + seconds))

    bench.world.on_write = look
    return bench


@pytest.mark.parametrize("denial", [UNAUTHORIZED, FORBIDDEN])
def test_some_seconds_halt_nothing(denial):
    bench = denied_after_the_intent(denial, 40)
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert bench.world.slots()["halted"] is None


def test_what_lasts_is_told_and_the_next_run_goes_on():
    bench = denied_after_the_intent(UNAUTHORIZED, 200)
    with pytest.raises(NpuError, match="does not accept the credentials"):
        bench.run()
    bench.wait(200)
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()
