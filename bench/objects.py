# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What npu_objects costs beside kubernetes.core.k8s: a playbook that finds its objects as they should be, against a recorded API.

Time is that of the whole ansible-playbook with its children. The API server is a thread of this process and not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "tests"))

from support import collection  # noqa: F401  (makes the checkout importable)
from support.kube.stub import ApiServer


def config_map(number: int) -> dict:
    metadata = {"name": f"object-{number:02d}", "namespace": "npu-operator"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}}


def playbooks(count: int, per_task: int) -> dict[str, list[dict]]:
    """{name: the tasks}: the same objects in the same tasks with each module, then a task for each object, then none."""
    objects = [config_map(number) for number in range(count)]
    groups = [objects[start : start + per_task] for start in range(0, count, per_task)]
    ours = [{"npuops.ascend.npu_objects": {"definitions": "\n---\n".join(map(json.dumps, group))}} for group in groups]
    theirs = [{"kubernetes.core.k8s": {"definition": group, "apply": True}} for group in groups]
    single = [{"kubernetes.core.k8s": {"definition": item, "apply": True}} for item in objects]
    return {
        f"npu_objects, {len(ours)} tasks": ours,
        f"kubernetes.core.k8s, {len(theirs)} tasks": theirs,
        f"kubernetes.core.k8s, {len(single)} tasks": single,
        "no task": [],
    }


def run(playbook: pathlib.Path, environment: dict[str, str]) -> tuple[float, float]:
    """(wall, CPU) seconds of one run."""
    program = shutil.which("ansible-playbook") or "ansible-playbook"
    command = [program, "-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}", str(playbook)]
    begun = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(output)
    if playbook.name != "first.json" and "localhost  " in output and "changed=0" not in output:
        raise SystemExit("A run that should change nothing changed something:\n" + output)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--objects", type=int, default=12)
    parser.add_argument("--per-task", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with ApiServer() as api, tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ, TMPDIR=directory, K8S_AUTH_HOST=api.address, K8S_AUTH_API_KEY="token")
        files = {}
        for number, (name, tasks) in enumerate(playbooks(arguments.objects, arguments.per_task).items()):
            files[name] = pathlib.Path(directory, f"{number}.json")
            play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
            files[name].write_text(json.dumps([play]))
        api.objects["/api/v1/namespaces/npu-operator/configmaps"] = {}
        first = pathlib.Path(directory, "first.json")
        first.write_bytes(files[next(iter(files))].read_bytes())
        run(first, environment)
        # In turn, so that a machine that slows down slows all of them.
        taken = [{name: run(file, environment) for name, file in files.items()} for _number in range(arguments.runs)]
    print("%d objects, nothing to change, median of %d runs:" % (arguments.objects, arguments.runs))
    for name in files:
        wall, cpu = (statistics.median(entry[name][part] for entry in taken) for part in (0, 1))
        print("  %-32s %5.1f s wall, %5.1f s CPU" % (name, wall, cpu))
    return 0


if __name__ == "__main__":
    sys.exit(main())
