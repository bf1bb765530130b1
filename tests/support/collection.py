# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Importing this makes the checkout importable as ansible_collections.npuops.ascend."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TREE = tempfile.mkdtemp(prefix="npuops-collections-")
atexit.register(shutil.rmtree, TREE, ignore_errors=True)
os.makedirs(os.path.join(TREE, "ansible_collections", "npuops"))
os.symlink(_CHECKOUT, os.path.join(TREE, "ansible_collections", "npuops", "ascend"))

try:
    from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
except ImportError:
    # Python 3.8 as on an NPU host: no Ansible there. Namespace packages do for the library, which is all that runs on it.
    sys.path.insert(0, TREE)
else:
    _AnsibleCollectionFinder(paths=[TREE])._install()


def python_of_a_host(code: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run ``code`` in a process of its own that has the library and nothing but the standard library beside it."""
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        env=dict(os.environ, PYTHONPATH=TREE, PYTHONDONTWRITEBYTECODE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        check=False,
    )
