# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of the agent: starts its parts and stops them on SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
from typing import Awaitable, Callable, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import runtime_mode

from . import __version__, config, kube, logs
from .bridge import Bridge
from .cdi_check import HostPaths
from .cdi_spec import SpecFile
from .changed import Changed
from .chip_faults import Faults
from .device_taints import DeviceTaints
from .guests import raise_file_limit
from .hints import Hints
from .kernel_log import KernelLog
from .marker import Markers
from .metrics import Metrics
from .node_conditions import NodeConditions
from .notice import Notices
from .pages import serve
from .physical_ids import PhysicalIds
from .probe import Probe
from .report import Reporter
from .wedge_watch import Watch

log = logging.getLogger(__name__)

_PAUSE = 10  # seconds before a part that failed is restarted


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT."""
    settings = config.parse(arguments)
    logs.setup(settings.log_level)
    asyncio.run(_run(settings))
    return 0


async def _run(settings: argparse.Namespace) -> None:
    log.info("node agent %s is starting", __version__, extra={"node": settings.node_name})
    raise_file_limit()
    metrics = Metrics()
    metrics.build_info.set(1, version=__version__)
    changed = Changed()
    markers = Markers(settings.run_dir, settings.boot_id_file, changed)
    markers.poll()
    spec = SpecFile(settings.cdi_spec)
    hints = Hints(changed)
    bridge = Bridge(settings.kubelet_dir, settings.plugin_dir, markers, spec, changed, metrics, hints)
    server = settings.api_server or kube.in_cluster()
    api = kube.Api(server, settings.api_token_file, settings.api_ca_file) if server else None
    reporter = Reporter(api, settings.node_name, changed, metrics)
    conditions = NodeConditions(api, settings.node_name, changed, metrics)
    notices = Notices(api, settings.node_name, changed)
    memory = os.path.join(settings.plugin_dir, chip_memory.NAME)
    prober = Probe(
        settings.driver_tree,
        settings.npu_smi.split(":"),
        settings.pci_devices,
        os.path.join(settings.run_dir, "npu-smi.lock"),
        settings.probe_timeout,
        memory,
    )
    taints = DeviceTaints(api if settings.device_taints else None, settings.node_name, PhysicalIds(prober.npu_smi), changed)
    watch = Watch(
        markers,
        prober,
        Faults(prober.npu_smi),
        spec,
        HostPaths(
            settings.dev_dir,
            settings.driver_tree,
            os.path.join(settings.plugin_dir, runtime_mode.NAME),
            settings.pci_devices,
            memory,
        ),
        reporter,
        conditions,
        taints,
        notices,
        changed,
        hints,
        metrics,
        settings.probe_interval,
        settings.probe_failures,
    )
    parts = {
        "bridge": bridge.run,
        "watch": watch.run,
        "report": reporter.run,
        "conditions": conditions.run,
        "device taints": taints.run,
        "notices": notices.run,
        "kernel log": KernelLog(settings.kernel_log, hints).run,
        "metrics": lambda: serve(settings.metrics_address, metrics, lambda: bridge.awaited.settled),
    }
    # Excludes the objects that exist now from garbage collection, to avoid pauses during calls.
    gc.collect()
    gc.freeze()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks = [asyncio.create_task(_keep_running(name, part)) for name, part in parts.items()]
    await stop.wait()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    log.info("node agent has stopped")


async def _keep_running(name: str, part: Callable[[], Awaitable[None]]) -> None:
    """Run a part, and restart it when it fails, so that a bug in one part does not affect the others."""
    while True:
        try:
            await part()
        except Exception:
            log.exception("part %s failed; restarting it in %d s", name, _PAUSE)
        await asyncio.sleep(_PAUSE)
