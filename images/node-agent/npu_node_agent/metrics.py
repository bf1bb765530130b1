# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from typing import Iterator, Sequence

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
        """Remove all samples."""
        self._values.clear()

    def lines(self) -> Iterator[str]:
        """The metric in the text format."""
        yield "# HELP %s %s" % (self.name, self.text)
        yield "# TYPE %s %s" % (self.name, self.kind)
        for labels, value in sorted(self._values.items()):
            inside = ",".join('%s="%s"' % (key, _escape(text)) for key, text in labels)
            yield "%s%s %s" % (self.name, "{%s}" % inside if inside else "", repr(float(value)))


class Histogram:
    """One histogram without labels."""

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name, self.text = PREFIX + name, text
        self._bounds = tuple(bounds)
        self._counts = [0] * len(self._bounds)
        self._count, self._sum = 0, 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._count += 1
        self._sum += value
        for number, bound in enumerate(self._bounds):
            self._counts[number] += value <= bound

    def lines(self) -> Iterator[str]:
        """The histogram in the text format."""
        yield "# HELP %s %s" % (self.name, self.text)
        yield "# TYPE %s histogram" % self.name
        for bound, count in zip(self._bounds, self._counts):
            yield '%s_bucket{le="%s"} %d' % (self.name, repr(float(bound)), count)
        yield '%s_bucket{le="+Inf"} %d' % (self.name, self._count)
        yield "%s_sum %s" % (self.name, repr(self._sum))
        yield "%s_count %d" % (self.name, self._count)


class Metrics:
    """All metrics of the agent."""

    def __init__(self) -> None:
        self.build_info = Metric("gauge", "build_info", "Version of this agent; always 1.")
        self.driver_state = Metric(
            "gauge",
            "driver_state",
            "State of the driver: 1 for the current state (ready, suspended, maintenance or absent), 0 for the others.",
        )
        self.driver_info = Metric("gauge", "driver_info", "Version and release of the driver that is ready or suspended; always 1.")
        self.probe_failures = Metric("gauge", "probe_failures", "Number of consecutive failed probes, 0 after a success.")
        self.probes = Metric("counter", "probes_total", "Total number of probes by result: ok, failed, occupied or undecided.")
        self.probe_duration = Histogram(
            "probe_duration_seconds",
            "Time that a probe took, with the wait for another npu-smi.",
            (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40),
        )
        self.undecided = Metric(
            "gauge",
            "probes_undecided",
            "Number of consecutive probes that a problem of the node itself prevented, 0 after a probe with a result.",
        )
        self.last_success = Metric(
            "gauge", "probe_last_success_timestamp_seconds", "Unix time at which npu-smi last listed all chips."
        )
        self.chips = Metric("gauge", "chips", "Number of chips by source: pci or npu-smi.")
        self.chips_expected = Metric(
            "gauge", "chips_expected", "Number of chips that the node had at the last install; none if that is not recorded."
        )
        self.chip_health = Metric(
            "gauge",
            "chip_health",
            "Health of each chip as npu-smi listed it last; always 1. None while the driver is suspended and npu-smi "
            "does not respond.",
        )
        self.chip_fault = Metric(
            "gauge",
            "chip_fault_info",
            "Fault codes of the chips that are not OK, at most 8 of each chip, the worst ones, with the level at which the device "
            "plugin handles them and their meaning, both empty for an unknown code; always 1.",
        )
        self.chip_missing = Metric(
            "gauge",
            "chip_missing",
            "PCI addresses of the chips that the node had at the last install and that are missing; always 1.",
        )
        self.cdi_valid = Metric(
            "gauge", "cdi_spec_valid", "1 if the CDI spec fits the chips and the loaded driver, or is not used, 0 otherwise."
        )
        self.report_pending = Metric(
            "gauge", "report_pending", "1 while the current state of the node is not yet reported to the API server."
        )
        self._pending: set[str] = set()
        self.devices = Metric("gauge", "devices", "Number of devices offered to the kubelet, by resource and health.")
        self.allocations = Metric("counter", "allocations_total", "Total number of Allocate calls by resource and result.")
        self.connections_refused = Metric(
            "counter",
            "connections_refused_total",
            "Total number of connections to this server that were closed because there were too many.",
        )
        self.plugin_registrations = Metric(
            "counter", "plugin_registrations_total", "Total number of registrations by device plugins."
        )
        self.kubelet_registrations = Metric(
            "counter", "kubelet_registrations_total", "Total number of successful registrations with the kubelet."
        )

    def pending(self, what: str, pending: bool) -> None:
        """Whether this part of the node's state is not reported yet."""
        (self._pending.add if pending else self._pending.discard)(what)
        self.report_pending.set(bool(self._pending))

    def render(self) -> str:
        """All metrics in the text format."""
        metrics = [value for value in vars(self).values() if isinstance(value, (Metric, Histogram))]
        return "".join(line + "\n" for metric in metrics for line in metric.lines())


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
