# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a copy does, for people."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.columns import aligned
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.copying import DIFFERENT, KEPT, MISSING, PRESENT, Step

_WORDS = {
    MISSING: "new",
    DIFFERENT: "replaces another image",
    PRESENT: "there already",
    KEPT: "not replaced: the destination has other signatures",
}


def table(steps: Sequence[Step]) -> list[str]:
    """A line for each image and each signature."""
    rows = [["IMAGE", "DIGEST", "SIZE", "TO COPY", "STATE"]]
    for step in steps:
        rows.append(
            [
                step.name,
                step.image.digest[: len("sha256:") + 12],
                _size(step.image.size),
                _size(step.bytes_missing) if step.is_due else "-",
                _WORDS[step.state],
            ]
        )
    return aligned(rows, right=(2, 3))


def summary(steps: Sequence[Step], changes: bool) -> str:
    due = [step for step in steps if step.is_due]
    if not due:
        copied = "all %d images are already copied" % len(steps)
        return copied + "; only SHA256SUMS is to be written" if changes else copied
    return "%d of %d images are new or changed, %s to copy" % (len(due), len(steps), _size(sum(step.bytes_missing for step in due)))


def _size(count: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return "%.1f %s" % (count / unit, name)
    return "%d B" % count
