# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster part of a plan costs for 1,000 nodes and 30,000 pods, against a recorded API.

The API server is a process of its own; time and memory are those of the planning process, whose host facts are made up
before. A goal missed is exit status 1.
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "tests"))

from support import collection  # noqa: F401  (makes the checkout importable)

GOAL_SECONDS, GOAL_MEGABYTES = 10.0, 300.0


def peak_megabytes() -> float:
    """Return the largest size this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30000)
    arguments = parser.parse_args()
    server = [sys.executable, "-m", "support.kube.big_cluster"]
    server += ["--nodes", str(arguments.nodes), "--pods", str(arguments.pods)]
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen(server, cwd=CHECKOUT / "tests", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        # kubernetes.core keeps what it learns of an API server in the temporary directory.
        tempfile.tempdir = directory
        try:
            return measure(process.stdout.readline().strip(), arguments)
        finally:
            process.stdin.close()


def measure(address: str, arguments: argparse.Namespace) -> int:
    from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction_dry_run
    from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
    from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
    from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
    from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table, rollout_permissions, rollout_settings
    from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
    from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
    from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots

    from support.fleet.hosts import NEW_DIGEST, host
    from support.fleet.planning import asked

    hosts = [host("n%04d" % number) for number in range(arguments.nodes)]
    before = peak_megabytes()
    begun, cpu = time.monotonic(), time.process_time()
    cluster = kube_client.connect({"host": address, "api_key": "token"})
    calls = []
    request = cluster.request
    cluster.request = lambda method, path, **params: calls.append((method, path)) or request(method, path, **params)
    rollout_permissions.check_readable(cluster, "npu-operator")
    snapshot = fleet_snapshot.FleetSnapshot.read(cluster, ["registry.example"])
    read = time.monotonic() - begun
    slots = maintenance_slots.Slots(cluster, "npu-operator", kube_retry.Clock()).view()
    lookups = rollout_settings.Lookups(
        resolve=lambda reference, config, machine: NEW_DIGEST,
        size=lambda *_args: 2**30,
        support=mindcluster_support.judge,
        confirm=lambda pods: eviction_dry_run.confirm(cluster, pods, snapshot.budgets),
        now=time.time(),
    )
    settings = asked()
    plan = rollout_planner.make(hosts, snapshot, slots, settings, lookups)
    table = plan_table.table(plan)
    seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    dry_runs = sum(path.endswith("/eviction") for _method, path in calls)
    print("%d nodes, %d pods: %s" % (arguments.nodes, arguments.pods, table[-1]))
    print("  %-28s %6.1f s (goal %.0f), of that reading %.1f s; CPU %.1f s" % ("wall", seconds, GOAL_SECONDS, read, cpu))
    print("  %-28s %6.0f MB (goal %.0f), %.0f MB before" % ("peak memory", peak_megabytes(), GOAL_MEGABYTES, before))
    print("  %-28s %6d, of them %d dry-run evictions" % ("API calls", len(calls), dry_runs))
    return int(seconds > GOAL_SECONDS or peak_megabytes() > GOAL_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
