# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters and tests import the library in their functions.

When a template names one of them, Ansible imports every filter or test of the collection, and does so again in the process of each
task. Imports at the top of these files would load most of the library for a task that needs none of it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.paths import CHECKOUT, TESTS

PROGRAM = """
import importlib, sys
from support import collection
for name in sys.argv[1:]:
    importlib.import_module("ansible_collections.npuops.ascend.plugins." + name)
print(*[name for name in sys.modules if name.startswith("ansible_collections.npuops.ascend.plugins.")], sep="\\n")
"""


@pytest.mark.parametrize("kind", ["filter", "test"])
def test_that_a_neighbour_is_loaded_costs_little(kind):
    names = ["%s.%s" % (kind, path.stem) for path in sorted((CHECKOUT / "plugins" / kind).glob("*.py"))]
    loaded = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], cwd=TESTS, capture_output=True, text=True, check=True
    ).stdout.split()
    packages = ("ansible_collections.npuops.ascend.plugins.", kind)
    assert len(names) > 1 and loaded == ["".join(packages), *[packages[0] + name for name in names]]
