# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

from support.crash import frozen


def test_the_collection_that_gives_up_sooner(tmp_path):
    """What it changes is still said in the sources, once each; the tests that use it need a lab, and run for hours."""
    tree = (
        pathlib.Path(frozen.impatient(tmp_path)["ANSIBLE_COLLECTIONS_PATH"])
        / "ansible_collections/npuops/ascend/plugins/plugin_utils"
    )
    assert f"\nLIMIT = {frozen.LIMIT}\n" in (tree / "_action/host_call.py").read_text(encoding="utf-8")
    assert f"\nRETRY_SECONDS = {frozen.PATIENCE}  #" in (tree / "_maintenance/host_side.py").read_text(encoding="utf-8")
