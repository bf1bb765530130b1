# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers for Prometheus, in its text format."""

from __future__ import annotations

from typing import Iterator

PREFIX = "npuops_node_agent_"


class Metric:
    """One counter or gauge with its label sets."""

    def __init__(self, kind: str, name: str, text: str) -> None:
        self.kind, self.name, self.text = kind, PREFIX + name, text
        self._values: dict[tuple, float] = {}

    def set(self, value: float, **labels: str) -> None:
        """Set the sample with these labels."""
        self._values[tuple(sorted(labels.items()))] = value

    def inc(self, **labels: str) -> None:
        """Add one to the sample with these labels."""
        key = tuple(sorted(labels.items()))
        self._values[key] = self._values.get(key, 0) + 1

    def clear(self) -> None:
        """Forget every sample."""
        self._values.clear()

    def lines(self) -> Iterator[str]:
        """This metric as Prometheus reads it."""
        yield "# HELP %s %s" % (self.name, self.text)
        yield "# TYPE %s %s" % (self.name, self.kind)
        for labels, value in sorted(self._values.items()):
            inside = ",".join('%s="%s"' % (key, _escape(text)) for key, text in labels)
            yield "%s%s %s" % (self.name, "{%s}" % inside if inside else "", repr(float(value)))


class Metrics:
    """Everything the agent publishes."""

    def __init__(self) -> None:
        self.driver_state = Metric(
            "gauge", "driver_state", "1 for the state the driver is in: ready, suspended, maintenance or absent."
        )
        self.driver_info = Metric("gauge", "driver_info", "1; version and release of the driver that is ready.")
        self.probe_failures = Metric("gauge", "probe_failures", "Failures of npu-smi in a row, 0 after a success.")
        self.probes = Metric("counter", "probes_total", "Probes by result: ok, failed, occupied or undecided.")
        self.undecided = Metric(
            "gauge", "probes_undecided", "Probes in a row that trouble of the node itself prevented, 0 after a verdict."
        )
        self.last_success = Metric(
            "gauge", "probe_last_success_timestamp_seconds", "When npu-smi last listed every chip, in Unix time."
        )
        self.chips = Metric("gauge", "chips", "Chips by who counts them: pci or npu-smi.")
        self.cdi_valid = Metric("gauge", "cdi_spec_valid", "1 when the CDI spec fits the chips and the loaded driver.")
        self.reports_pending = Metric(
            "gauge", "report_pending", "1 while the API server does not know yet what it should about this node."
        )
        self.devices = Metric("gauge", "devices", "Devices as the kubelet is told, by resource and health.")
        self.allocations = Metric("counter", "allocations_total", "Allocate calls by resource and result.")
        self.connections_refused = Metric(
            "counter", "connections_refused_total", "Connections to this page ended early, for others to have their turn."
        )
        self.plugin_registrations = Metric("counter", "plugin_registrations_total", "Registrations taken from device plugins.")
        self.kubelet_registrations = Metric(
            "counter", "kubelet_registrations_total", "Registrations the kubelet took from the bridge."
        )

    def render(self) -> str:
        """The page."""
        metrics = [value for value in vars(self).values() if isinstance(value, Metric)]
        return "".join(line + "\n" for metric in metrics for line in metric.lines())


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
