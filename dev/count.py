# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print how many tests passed and failed in pytest's JUnit files: python count.py FILE..."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree


def main(paths: list[str]) -> int:
    """Print the sum over the files; the exit status says whether there was a test and none failed."""
    total = failed = skipped = 0
    for path in paths:
        for suite in ElementTree.parse(path).getroot().iter("testsuite"):
            total += int(suite.get("tests", 0))
            failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0))
    print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return int(failed > 0 or total == skipped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
