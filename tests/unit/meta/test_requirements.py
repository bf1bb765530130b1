# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection needs is said in several places, and the same in each."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

import ansible_collections.kubernetes.core as kubernetes_core
import yaml

from support.paths import CHECKOUT

# A version of kubernetes.core that is named, in whatever words.
SAID = re.compile(r"kubernetes\.core[`\"]?:?\s+(?:version:\s*)?[`\"]?((?:[<>=]=?|[0-9])[^|`\";\n]*)")


def bounds(text):
    return [bound.replace(" ", "") for bound in SAID.findall(text)]


def test_the_bounds_of_kubernetes_core_are_the_same_everywhere():
    wanted = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))["dependencies"]["kubernetes.core"]
    assert re.fullmatch(r">=6\.\d+\.\d+,<7\.0\.0", wanted), "the next major version may break what we use"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.split("\0")
    said = {}
    for name in filter(None, listed):
        path = pathlib.PurePath(name)
        if path.suffix in (".md", ".yml", ".txt", ".py") and path.parts[0] not in ("lab", "tests"):
            for bound in bounds((CHECKOUT / name).read_text(encoding="utf-8")):
                said.setdefault(name, set()).add(bound)
    assert said == dict.fromkeys(said, {wanted})
    assert {"galaxy.yml", "execution-environment.yml", "README.md", "docs/install.md", "plugins/inventory/npu_nodes.py"} <= set(
        said
    )


def test_the_version_that_the_tests_use_is_within_them():
    manifest = pathlib.Path(next(iter(kubernetes_core.__path__))) / "MANIFEST.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"].startswith("6.")
