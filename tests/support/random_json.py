# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that the collection never writes: a value with one or more places changed into something else. A seed gives the same JSON."""

from __future__ import annotations

import json
import random

_STRANGE = (
    None, True, False, 0, 1, -1, 5, 1.5, 10**30, -(10**30), "", "x", "\x00", "é", "\ud800", "y" * 300, "2026-11-21T12:00:00Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", [], [[]], [1], ["x"], [None], {}, {"": None}, {"run": 1}, {"x": {"y": []}}, {"version": []}, [{}],
)  # fmt: skip
# No JSON, or more than one can read.
_TEXTS = (
    "",
    " ",
    "{",
    "nonsense",
    "[" * 100000,
    '{"run":' * 5000,
    "NaN",
    '"\\ud800"',
    "1" * 5000,
    "9e999",
    "\x00",
    '{"run": "a", "generation": 1e400}',
)


class RandomJson:
    def __init__(self, seed):
        self._random = random.Random(seed)

    def text(self, value):
        """A text in the place of ``value`` as JSON."""
        if self._random.random() < 0.05:
            return self._random.choice(_TEXTS)
        for _change in range(self._random.choice((1, 1, 1, 2, 5))):
            value = self._changed(value)
        return json.dumps(value)

    def _changed(self, value):
        if isinstance(value, dict) and value and self._random.random() < 0.9:
            name = self._random.choice(sorted(value))
            roll = self._random.random()
            if roll < 0.1:
                return {key: item for key, item in value.items() if key != name}
            if roll < 0.2:
                return dict(value, **{str(self._strange()): self._strange()})
            return dict(value, **{name: self._changed(value[name])})
        if isinstance(value, list) and value and self._random.random() < 0.5:
            place = self._random.randrange(len(value))
            return value[:place] + [self._changed(value[place])] + value[place + 1 :]
        return self._strange()

    def _strange(self):
        return self._random.choice(_STRANGE)
