# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that every relative link and anchor in the Markdown files leads somewhere."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors that a forge makes of the headings in a Markdown text."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.replace(" ", "-"))
    return found


def problems(path: pathlib.Path) -> list[str]:
    """Return one sentence for every link in the Markdown file `path` that leads nowhere."""
    result = []
    for link in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _unused, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path.resolve()
        if not target.exists():
            result.append(f"{path}: {link} does not exist")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
            result.append(f"{path}: {link}: no such heading")
    return result


if __name__ == "__main__":
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], check=True, capture_output=True, text=True
    ).stdout.split()
    bad = [line for name in names if pathlib.Path(name).exists() for line in problems(pathlib.Path(name))]
    print("\n".join(bad) if bad else f"{len(names)} Markdown files, all links lead somewhere")
    sys.exit(bool(bad))
