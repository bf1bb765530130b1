# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code of the collection run among real mounts, in a mount namespace of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.paths import TESTS


def output_of(mount, program, cwd="/"):
    """What ``program`` (Python) prints after ``mount`` (the arguments of that command). Skips where mounts are not permitted."""
    code = "import sys; sys.path[:0] = %r\nfrom support import collection\n%s" % ([str(TESTS)], program)
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount "$@" && exec "$PYTHON" -c "$CODE"', "sh", *mount],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHON": sys.executable, "CODE": code},
        cwd=str(cwd),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if "unshare failed" in result.stdout or "permission denied" in result.stdout:
        pytest.skip("no mounts here")
    assert result.returncode == 0, result.stdout
    return result.stdout
