# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names a Node may have: they become part of paths."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name


@pytest.mark.parametrize("name", ["../npu-a", "a/b", "", "..", "-x", "NPU", "a b", "a\n", "x" * 254])
def test_a_node_whose_name_is_none(name):
    with pytest.raises(NpuError, match="npu_node_name"):
        node_name.check(name)


@pytest.mark.parametrize("name", ["npu-a", "a", "0", "npu-a.example.com", "x" * 253])
def test_the_name_of_a_node(name):
    node_name.check(name)
