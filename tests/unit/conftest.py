# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the checkout on the path as ansible_collections.npuops.ascend."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_TREE = tempfile.mkdtemp(prefix="npuops-collections-")
atexit.register(shutil.rmtree, _TREE, ignore_errors=True)
os.makedirs(os.path.join(_TREE, "ansible_collections", "npuops"))
os.symlink(_CHECKOUT, os.path.join(_TREE, "ansible_collections", "npuops", "ascend"))
_AnsibleCollectionFinder(paths=[_TREE])._install()
