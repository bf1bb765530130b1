# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the files that run on a host, one a line: the modules that say so, and what they import from our library."""

from __future__ import annotations

import ast
import pathlib
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
UTILS = "ansible_collections.npuops.ascend.plugins.module_utils"
FRAGMENT = "npuops.ascend.attributes.host"


def own_imports(path: pathlib.Path) -> set[pathlib.Path]:
    """Return the files of our own library that the Python file `path` imports anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            names.add(package)
            names.update(f"{package}.{alias.name}" for alias in node.names)
    found = set()
    for name in names:
        if name.startswith(UTILS + "."):
            file = (CHECKOUT / "plugins" / "module_utils").joinpath(*name[len(UTILS) + 1 :].split(".")).with_suffix(".py")
            if file.exists():
                found.add(file)
    return found


def host_files() -> list[pathlib.Path]:
    """Return host modules and everything they import from our library, directly or not, sorted."""
    modules = sorted((CHECKOUT / "plugins" / "modules").glob("*.py"))
    todo = [path for path in modules if FRAGMENT in path.read_text(encoding="utf-8")]
    seen: set[pathlib.Path] = set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo.extend(own_imports(path))
    return sorted(seen)


if __name__ == "__main__":
    files = host_files()
    if not files:
        sys.exit(f"no module in plugins/modules uses the documentation fragment {FRAGMENT}")
    for file in files:
        print(file.relative_to(CHECKOUT))
