# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of docs/dashboards.md: `python -m support.lab.pictures VERSION` draws the dashboards from what Prometheus saw of the lab
while a chip failed, the driver was upgraded to VERSION, and a wedged node was recovered.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from support import dashboards, drawing
from support.lab.healing import ANYWAY, QUICK, heal, wait_well, wedge
from support.lab.lab import Lab
from support.lab.monitoring import Monitoring, monitoring, of_nodes
from support.lab.rollout import NAMESPACE, NPU_NODES, upgrade
from support.paths import CHECKOUT

TARGET = CHECKOUT / "docs" / "images"
STEP, PAUSE = 2, 40  # seconds: between two values, and between two events
NODE = NPU_NODES[0]


def happen(lab: Lab, version: str) -> None:
    """What the pictures show."""
    time.sleep(PAUSE)
    lab.fault(NODE, "alarm", "0", "80E18402", "Critical")
    time.sleep(PAUSE)
    lab.fault(NODE, "clear")
    upgrade(lab, npu_driver_version=version)
    time.sleep(PAUSE)
    wedge(lab, NPU_NODES[1])
    heal(lab, **ANYWAY)
    wait_well(lab, NPU_NODES[1])
    lab.fault(NODE, "alarm", "1", "80E18005", "Warning")
    time.sleep(PAUSE)


@contextlib.contextmanager
def told_to(prometheus: Monitoring, lab: Lab) -> Iterator[None]:
    """Meanwhile, Prometheus gets the Nodes, the addresses of pods and what status writes."""
    over = threading.Event()

    def tell() -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "npuops.prom")
            while not over.wait(5):
                prometheus.look_for_pods()
                prometheus.serve("kube-state-metrics", of_nodes(lab.api.get("/api/v1/nodes")["items"]))
                lab.playbook("status", npu_status_file=str(file.with_suffix(".json")), npu_status_metrics_file=str(file))
                prometheus.serve("control-machine", file.read_text(encoding="utf-8"))

    teller = threading.Thread(target=tell)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def series(prometheus: Monitoring, panel: dict[str, Any], begin: float, end: float) -> list[drawing.Series]:
    found = []
    for target in panel["targets"]:
        query = dashboards.as_prometheus_takes_it(target["expr"].replace("$__range", f"{end - begin:.0f}s"), NODE)
        if target["instant"]:
            answers = [dict(one, values=[one["value"]]) for one in prometheus.query(query)]
        else:
            answers = prometheus.query_range(query, begin, end, STEP)
        for one in answers:
            values = [(float(when), float(value)) for when, value in one["values"]]
            legend = drawing.legend(target.get("legendFormat", ""), one["metric"])
            found.append(drawing.Series(one["metric"], legend, values))
    return found


def main(version: str) -> None:
    lab = Lab(pathlib.Path(os.environ["NPU_LAB_STATE"]))
    lab.playbook("install", **QUICK)
    begin = time.time()
    with monitoring(lab, NAMESPACE) as prometheus:
        with told_to(prometheus, lab):
            happen(lab, version)
        end = time.time()
        TARGET.mkdir(exist_ok=True)
        for name in dashboards.NAMES:
            dashboard = json.loads(dashboards.file(name).read_text(encoding="utf-8"))
            text = drawing.draw(dashboard, lambda panel: series(prometheus, panel, begin, end), begin, end, STEP)
            (TARGET / f"{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
