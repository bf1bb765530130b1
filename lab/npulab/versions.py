# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of Kubernetes and containerd that a lab can have; versions.toml lists them."""

from __future__ import annotations

import functools
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

TABLE = Path(__file__).with_name("versions.toml")
RECORD = "versions.json"  # in a lab's state directory: what its nodes were made with


@dataclass(frozen=True)
class Release:
    """One release, in one patch version."""

    project: str
    release: str  # 1.37
    version: str  # as the programs print it: v1.37.2
    # SHA-512 of upstream's archive, by Go's name of the architecture; none if its changelog did not have it yet
    sha512: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """Of its directory in lab/go."""
        return f"{self.project}-{self.release}"

    @property
    def number(self) -> str:
        return self.version.removeprefix("v")


@functools.cache
def _table() -> dict:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def known(project: str) -> dict[str, Release]:
    """A project's releases, the newest first."""
    return {name: Release(project, name, **row) for name, row in _table()[project]["releases"].items()}


def default(project: str) -> str:
    return _table()[project]["default"]


def releases() -> tuple[Release, ...]:
    """All of them."""
    return tuple(release for project in _table() for release in known(project).values())


def recorded(state: Path) -> dict[str, str]:
    """The version of each project in the lab that has this state directory; empty when it has none yet."""
    try:
        return json.loads((state / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
