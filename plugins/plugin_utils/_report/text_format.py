# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gauges in the text format of Prometheus, with labels that come from outside."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable

_LONGEST = 253  # characters of a label's value, as many as the name of a Node has
_LARGEST = 2**53  # what a float has exactly


class Gauge:
    """One gauge with its samples.

    Of samples with the same labels, the last one counts: with two, node_exporter refuses everything that it has.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name, self._text = name, text
        self._samples: dict[tuple[tuple[str, str], ...], int] = {}

    def set(self, value: int, **labels: str) -> None:
        """Set the sample with these labels, which are cut and get no control characters."""
        # Cut first: a label may have megabytes.
        key = tuple((name, printable(text[: _LONGEST + 1], _LONGEST)) for name, text in labels.items())
        self._samples[key] = max(-_LARGEST, min(value, _LARGEST))

    def lines(self) -> Iterator[str]:
        """Nothing without a sample."""
        if self._samples:
            yield "# HELP %s %s" % (self.name, self._text)
            yield "# TYPE %s gauge" % self.name
        for labels, value in self._samples.items():
            inside = ",".join('%s="%s"' % (name, _escaped(text)) for name, text in labels)
            yield "%s%s %d" % (self.name, "{%s}" % inside if inside else "", value)


def _escaped(text: str) -> str:
    """The third character that would need it is the line break, which is not printable."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
