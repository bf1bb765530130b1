# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/features.md: each feature that we claim to have is one that a test proves, with settings and playbooks that exist."""

from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (CHECKOUT / "docs" / "features.md").read_text(encoding="utf-8")


def rows(part):
    """The cells of each row of the table in a part of the page."""
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


HEAD, *PARTS = PAGE.split("\n## ")
PRODUCTS = [name for name, _product, _pages in rows(HEAD)]
FEATURES = [row for part in PARTS for row in rows(part)]


def test_the_page_is_read():
    assert len(PRODUCTS) == 5 and len(FEATURES) >= 30 and len(PARTS) == 4


def test_every_product_has_its_pages():
    assert all("](https://" in pages for _name, _product, pages in rows(HEAD))


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row[0])
def test_a_feature(row):
    _feature, sources, here, proofs = row
    assert all(name.partition(",")[0] in [*PRODUCTS, "by hand"] for name in sources.split(", ") if name)
    tests = re.findall(r"`([a-z/_0-9-]+\.py)::(test_\w+)`", proofs)
    assert len(tests) == proofs.count("::")
    assert tests or here == "no" or here.startswith(("no;", "no:")), "what we have is proven"
    for path, name in tests:
        assert re.search(r"^def %s\(" % name, (CHECKOUT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)
    for variable in re.findall(r"`(npu_\w+)(?:\.\w+)?`", here):
        assert variable in spec_defaults.known_variables(), variable
    for name in re.findall(r"`npuops\.ascend\.(\w+)`", here):
        places = ("playbooks/%s.yml" % name, "plugins/modules/%s.py" % name)
        assert any((CHECKOUT / place).exists() for place in places), name
