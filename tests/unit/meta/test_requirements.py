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


def text(name):
    return (CHECKOUT / name).read_text(encoding="utf-8")


def support():
    """What support.yml says of the controller."""
    return yaml.safe_load(text("plugins/plugin_utils/_mindcluster/support.yml"))["ansible"]


def bounds(page):
    return [bound.replace(" ", "") for bound in SAID.findall(page)]


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


def test_the_controllers_versions_are_the_same_everywhere():
    said = support()
    lowest, *_others = said["tested"]
    assert yaml.safe_load(text("meta/runtime.yml"))["requires_ansible"] == f">={said['minimum']}.0"
    assert yaml.safe_load(text("galaxy.yml"))["dependencies"]["kubernetes.core"] == said["kubernetes_core"]
    assert f"kubernetes>={said['kubernetes']['minimum']}\n" in text("meta/ee-requirements.txt")
    needed = f"Python {said['python']['minimum']} or newer"
    assert needed in text("README.md") and f"{needed} and ansible-core {said['minimum']} or newer" in text("docs/install.md")
    # The lowest of everything is tested together.
    assert lowest["core"].startswith(f"{said['minimum']}.") and lowest["python"] == said["python"]["minimum"]
    assert said["kubernetes_core"].startswith(f">={lowest['kubernetes_core']},")
    assert lowest["kubernetes"] == said["kubernetes"]["minimum"]


def test_every_release_of_ansible_core_is_tested():
    said = support()
    tested = list(dict.fromkeys(row["core"].rpartition(".")[0] for row in said["tested"]))
    assert tested == [row["version"] for row in said["releases"]]
    minors = [int(release.partition(".")[2]) for release in tested]
    assert minors == list(range(minors[0], minors[-1] + 1)), "none is left out"


def test_the_checks_and_the_execution_environment_use_a_tested_one():
    said = support()
    required = dict(re.findall(r"^(ansible-core|kubernetes)==(.+)$", text("requirements-dev.txt"), re.M))
    assert {**required, "python": said["python"]["minimum"]} in [
        {"ansible-core": row["core"], "kubernetes": row["kubernetes"], "python": row["python"]} for row in said["tested"]
    ]
    environment = yaml.safe_load(text("execution-environment.yml"))["dependencies"]
    assert environment["python_interpreter"]["package_system"].removeprefix("python") in {row["python"] for row in said["tested"]}
    matrix = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["checks"]["strategy"]["matrix"]
    assert {*matrix["python"], *(entry["python"] for entry in matrix["include"])} <= {row["python"] for row in said["tested"]}


def test_the_version_that_the_tests_use_is_within_them():
    manifest = pathlib.Path(next(iter(kubernetes_core.__path__))) / "MANIFEST.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"].startswith("6.")
