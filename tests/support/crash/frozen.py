# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of the lab whose sshd freezes at an exact call of a run, and the collection with limits for which a test can wait."""

from __future__ import annotations

import contextlib
import pathlib
import re
import shutil
from collections.abc import Callable, Iterator

from support.crash.gate import Answer, Gate, kind
from support.lab.lab import Lab
from support.paths import CHECKOUT

# Seconds. A call on a slow machine must end within the first.
LIMIT, PATIENCE = 20, 10
# What is said in the sources, of which each must be there once, and what is said instead.
_SHORTER = {
    r"^LIMIT = 60$": f"LIMIT = {LIMIT}",
    r"^RETRY_SECONDS = 300(?=  # without a connection)": f"RETRY_SECONDS = {PATIENCE}",
    r"^READY_WAIT = 30(?=  # of one call)": f"READY_WAIT = {LIMIT // 4}",
}


def impatient(directory: pathlib.Path) -> dict[str, str]:
    """Make a collection that gives up on a host sooner; the environment in which Ansible uses it."""
    tree = directory / "ansible_collections" / "npuops" / "ascend"
    tree.mkdir(parents=True)
    for path in CHECKOUT.iterdir():
        if path.name == "plugins":
            shutil.copytree(path, tree / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif not path.name.startswith("."):
            (tree / path.name).symlink_to(path)
    sources = {path: path.read_text(encoding="utf-8") for path in (tree / "plugins").rglob("*.py")}
    for pattern, instead in _SHORTER.items():
        (path,) = (path for path, text in sources.items() if re.search(pattern, text, re.M))
        sources[path] = re.sub(pattern, instead, sources[path], flags=re.M)
        path.write_text(sources[path], encoding="utf-8")
    return {"ANSIBLE_COLLECTIONS_PATH": str(directory)}


class When(Gate):
    """A gate that calls `function` before it lets the first call through whose target and words match the pattern `at`."""

    def __init__(self, at: str, function: Callable[[], None]) -> None:
        super().__init__()
        self._pattern, self._function = at, function
        self.happened = False

    def before(self, target: str, what: str) -> tuple[int, Answer]:
        if not self.happened and re.search(self._pattern, f"{target} {kind(what)}"):
            self.happened = True
            self._function()
        return super().before(target, what)


@contextlib.contextmanager
def thawed_at_the_end(lab: Lab, node: str) -> Iterator[Callable[[], None]]:
    """The function that freezes the node's sshd and all that runs for its connections; at the end they go on."""

    def freeze() -> None:
        lab.console(node, "pkill -STOP -x 'sshd.*'")
        states = lab.console(node, "pgrep -x 'sshd.*' | xargs -I{} grep -h ^State: /proc/{}/status").splitlines()
        assert states and all(state.split()[1] == "T" for state in states), f"sshd of {node} is not frozen: {states}"

    try:
        yield freeze
    finally:
        lab.console(node, "pkill -CONT -x 'sshd.*'")
