# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What npuops.ascend.npu_nodes costs for 2,000 nodes, against a recorded API: ansible-inventory as a user runs it.

With the API, from the cache, and beside them the same number of hosts in a list. The API server is a process of its own. A goal
missed is exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
GOAL_SECONDS, GOAL_MEGABYTES = 10.0, 300.0


def run(source: str, environment: dict[str, str]) -> tuple[float, float, float]:
    """Return seconds, seconds of CPU and peak megabytes of `ansible-inventory --list`."""
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, "-m", "ansible", "inventory", "-i", source, "--list"],
                          stdout=subprocess.DEVNULL, env=environment) as process:  # fmt: skip
        _pid, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("ansible-inventory -i %s failed" % source)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=2000)
    arguments = parser.parse_args()
    server = [sys.executable, "-m", "support.kube.big_cluster"]
    server += ["--nodes", str(arguments.nodes), "--pods", "0"]
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen(server, cwd=CHECKOUT / "tests", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            return measure(pathlib.Path(directory), process.stdout.readline().strip(), arguments.nodes)
        finally:
            process.stdin.close()


def measure(directory: pathlib.Path, address: str, nodes: int) -> int:
    # kubernetes.core keeps what it learns of an API server in the temporary directory.
    environment = {**os.environ, "K8S_AUTH_HOST": address, "K8S_AUTH_API_KEY": "token", "TMPDIR": str(directory)}
    source = {"plugin": "npuops.ascend.npu_nodes", "cache": True, "cache_plugin": "ansible.builtin.jsonfile",
              "cache_connection": str(directory / "cache")}  # fmt: skip
    (directory / "npu_nodes.yml").write_text(json.dumps(source), encoding="utf-8")
    names = "\n".join("n%04d ansible_host=10.1.%d.%d" % (number, *divmod(number, 250)) for number in range(nodes))
    (directory / "hosts.ini").write_text("[npu_nodes]\n%s\n" % names, encoding="utf-8")
    print("%d nodes" % nodes)
    asked = run(str(directory / "npu_nodes.yml"), environment)
    cached = run(str(directory / "npu_nodes.yml"), environment)
    plain = run(str(directory / "hosts.ini"), environment)
    for name, (seconds, cpu, megabytes) in (("asking the API", asked), ("from the cache", cached), ("a list of hosts", plain)):
        print("  %-18s %5.1f s, CPU %5.1f s, %4.0f MB" % (name, seconds, cpu, megabytes))
    print("  goals for the first: %.0f s, %.0f MB" % (GOAL_SECONDS, GOAL_MEGABYTES))
    return int(asked[0] > GOAL_SECONDS or asked[2] > GOAL_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
