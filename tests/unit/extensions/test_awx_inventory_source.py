# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory source for AWX is one that the plugin takes, also with everything in it that is commented out."""

from __future__ import annotations

import pathlib
import re

import yaml
from ansible_collections.npuops.ascend.plugins.doc_fragments.kubernetes_auth import ModuleDocFragment
from ansible_collections.npuops.ascend.plugins.inventory import npu_nodes

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "awx" / "npu_nodes.yml"
CONSTRUCTED = {"compose", "groups", "keyed_groups", "strict", "leading_separator", "use_extra_vars"}


def test_the_options_are_the_plugins():
    text = SOURCE.read_text(encoding="utf-8")
    assert yaml.safe_load(text) == {"plugin": "npuops.ascend.npu_nodes"}
    everything = yaml.safe_load(re.sub(r"^# ((?:  - \{|[a-z_]+: ?(?![A-Z])).*)$", r"\1", text, flags=re.MULTILINE))
    known = set(yaml.safe_load(npu_nodes.DOCUMENTATION)["options"]) | CONSTRUCTED
    known |= set(yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"])
    assert set(everything) <= known and len(everything) == 7, everything


def test_the_plugin_takes_its_name():
    assert npu_nodes.InventoryModule().verify_file(str(SOURCE))
