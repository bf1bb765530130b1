# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Go programs: static, small, reproducible."""

from __future__ import annotations

from pathlib import Path

from .tools import SOURCE, run

MODULE = SOURCE / "go"
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}


def build(go: str, program: str, target: Path) -> None:
    """Build go/cmd/`program` as the file `target`. Go's own cache makes it cheap when nothing changed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    run(
        go,
        "build",
        "-mod=readonly",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        "-s -w",
        "-o",
        target,
        f"./cmd/{program}",
        cwd=MODULE,
        env=_ENVIRONMENT,
    )


def test(go: str) -> str:
    """Vet and test everything; returns what go says."""
    run(go, "vet", "./...", cwd=MODULE, env=_ENVIRONMENT)
    return run(go, "test", "./...", cwd=MODULE, env=_ENVIRONMENT)
