# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide for AWX lists what each job hands on: every artifact that a playbook publishes, and every key of it."""

from __future__ import annotations

import re

import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._awx import stats as awx_stats

from support.fleet import reports
from support.paths import CHECKOUT

NAME = re.compile(r"npu_stats\('(\w+)'\)")
FILES = ("import_playbook", "import_tasks", "include_tasks")
ROLES = ("import_role", "include_role")
# By kind, a result that npu_stats takes.
SAMPLES = {
    "install": {"ready": [], "no_chip": []},
    "plan": {"hosts": {}, "green": True, "summary": "", "counts": {}, "estimate_seconds": None, "halted": None, "order": []},
    "rollout": reports.halted(),
    "recovery": reports.halted(),
    "validation": {"fleet": []},
    "status": {"fleet": []},
}


class Loader(yaml.SafeLoader):
    """Any tag is a text."""


Loader.add_multi_constructor("!", lambda loader, _suffix, node: loader.construct_scalar(node))


def mappings(value):
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from mappings(inner)


def followed(path, part):
    """The files that an entry of a playbook or of tasks brings in."""
    for key, value in part.items():
        word = key.rpartition(".")[2]
        if word in FILES and isinstance(value, str) and "{{" not in value:
            yield path.parent / value
        elif word in ROLES:
            tasks = CHECKOUT / "roles" / value["name"].rpartition(".")[2] / "tasks"
            yield tasks / (value.get("tasks_from", "main").removesuffix(".yml") + ".yml")


def published(path, seen):
    """{artifact: kind} of a file and of those that it brings in."""
    path = path.resolve()
    if path in seen or not path.exists():
        return {}
    seen.add(path)
    found = {}
    for part in mappings(yaml.load(path.read_text(encoding="utf-8"), Loader)):
        for artifact, value in (part.get("ansible.builtin.set_stats") or {}).get("data", {}).items():
            found[artifact] = NAME.search(value).group(1)
        for other in followed(path, part):
            found.update(published(other, seen))
    return found


def of_playbooks():
    """{playbook: {artifact: kind}} of those that AWX has templates for."""
    variables = yaml.load((CHECKOUT / "roles/npu_awx/vars/main.yml").read_text(encoding="utf-8"), Loader)
    names = {entry.get("playbook", entry["name"]) for entry in variables["__npu_awx_job_templates"]}
    return {name: published(CHECKOUT / "playbooks" / (name + ".yml"), set()) for name in names}


def of_the_guide():
    """{artifact: (playbooks, keys)} of its table."""
    text = (CHECKOUT / "docs" / "awx.md").read_text(encoding="utf-8").partition("\n## Artifacts\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(npuops_\w+)` \| ([^|]*) \| ([^|]*) \|$", text, re.M)
    return {name: tuple(set(re.findall("`([a-z_]+)`", cell)) for cell in cells) for name, *cells in rows}


def test_the_guide_has_every_artifact_of_every_job():
    playbooks, kinds = {}, {}
    for playbook, artifacts in of_playbooks().items():
        for artifact, kind in artifacts.items():
            playbooks.setdefault(artifact, set()).add(playbook)
            kinds[artifact] = kind
    guide = of_the_guide()
    assert {name: cells[0] for name, cells in guide.items()} == playbooks
    assert {name: cells[1] for name, cells in guide.items()} == {
        name: set(awx_stats.KINDS[kind](SAMPLES[kind])) for name, kind in kinds.items()
    }


def test_nothing_else_publishes_artifacts():
    """What no playbook of a template reaches, this test would not see."""
    found = {
        path.relative_to(CHECKOUT)
        for pattern in ("playbooks/*.yml", "roles/*/tasks/*.yml")
        for path in CHECKOUT.glob(pattern)
        if "set_stats:" in path.read_text(encoding="utf-8")
    }
    seen = set()
    for name in of_playbooks():
        published(CHECKOUT / "playbooks" / (name + ".yml"), seen)
    assert found <= {path.relative_to(CHECKOUT.resolve()) for path in seen}
    assert set(SAMPLES) == set(awx_stats.KINDS)
