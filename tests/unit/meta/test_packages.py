# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder says where code runs: module_utils on hosts, plugin_utils on the controller (docs/architecture.md)."""

from __future__ import annotations

import ast
import functools
import graphlib
import sys

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import program

from support.paths import CHECKOUT

PLUGINS = CHECKOUT / "plugins"
OURS = "ansible_collections.npuops.ascend.plugins."
LIBRARY = sorted(
    path.relative_to(PLUGINS).with_suffix("").as_posix()
    for room in ("module_utils", "plugin_utils")
    for path in (PLUGINS / room).rglob("*.py")
    if path.name != "__init__.py"
)
HOST = [name for name in LIBRARY if name.startswith("module_utils/")]
MODULES = sorted(path.relative_to(PLUGINS).with_suffix("").as_posix() for path in (PLUGINS / "modules").glob("*.py"))


# From the ground to the roof, as in docs/architecture.md.
LAYERS = {
    "module_utils": (
        "_host _image _chips _vnpu _runtime _crio _kubelet _containerd _run_package _firmware _driver _ascend_runtime _activation _inspect _collect _acceptance"
    ).split(),
    "plugin_utils": (
        "_settings _kube _python _data _network _mindcluster _record _pods _nodes _components _drain _park _withdrawal _heal _maintenance _action"
        " _package _report _notify _awx _preflight _plan _adopt _agent_image _mirror _collect _acceptance"
    ).split(),
}


@functools.lru_cache(maxsize=None)
def imports(name):
    """(our own files, everything else) that a file imports, wherever in it."""
    ours, others = set(), set()
    for node in ast.walk(ast.parse((PLUGINS / (name + ".py")).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            others.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "%s: a relative import in line %d; name the whole path" % (name, node.lineno)
            if node.module.startswith(OURS):
                path = node.module[len(OURS) :].replace(".", "/")
                if (PLUGINS / (path + ".py")).exists():
                    ours.add(path)
                else:
                    ours.update("%s/%s" % (path, alias.name) for alias in node.names)
            else:
                others.add(node.module)
    return ours, others


def needed(names):
    """The files of the library that these need, directly or not."""
    found, todo = set(), list(names)
    while todo:
        for name in imports(todo.pop())[0] - found:
            found.add(name)
            todo.append(name)
    return found


@pytest.mark.parametrize("name", ["npu_facts", "npu_validate", "npu_cdi_spec", "npu_driver", "containerd_cdi"])
def test_what_runs_on_every_host_reads_no_packages(name):
    """Each run compiles it on each host. Packages also need compressions, which a small Python does not have."""
    assert "module_utils/_run_package/makeself" not in needed(["modules/" + name])


@pytest.mark.parametrize("name", HOST)
def test_what_hosts_run_needs_python_and_nothing_else(name):
    ours, others = imports(name)
    assert not [other for other in ours if not other.startswith("module_utils/")]
    assert not [other for other in others if other.split(".")[0] not in sys.stdlib_module_names]


@pytest.mark.parametrize("name", MODULES)
def test_modules_bring_nothing_of_the_controllers_to_hosts(name):
    assert not [other for other in needed([name]) if not other.startswith("module_utils/")]


def test_everything_in_module_utils_runs_on_hosts():
    assert sorted(needed(MODULES)) == HOST


def test_every_file_is_in_a_package():
    assert [name for name in LIBRARY if len(name.split("/")) != 3] == []
    for name in LIBRARY:
        assert (PLUGINS / name).with_name("__init__.py").read_bytes() == b""


def test_the_node_agent_has_all_that_its_part_of_the_library_imports():
    """A file that is missing in its image ends the agent of each node at once."""
    there = {name[len("plugins/") : -len(".py")] for name in program.LIBRARY}
    assert needed(there) <= there


@pytest.mark.parametrize("name", LIBRARY)
def test_imports_lead_downwards(name):
    room, package, _file = name.split("/")
    order = LAYERS[room]
    upwards = []
    for other in imports(name)[0]:
        where, its, _its_file = other.split("/")
        if where == room and order.index(its) > order.index(package):
            upwards.append(other)
    assert upwards == []


@pytest.mark.parametrize("room", LAYERS)
def test_every_package_has_its_layer_and_its_line_in_the_architecture(room):
    assert sorted(LAYERS[room]) == sorted({name.split("/")[1] for name in LIBRARY if name.startswith(room + "/")})
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("`plugins/%s`\n\n" % room)[2].partition("\n\n#")[0]
    assert [line.split("`")[1] for line in table.splitlines() if line.startswith("| `_")] == LAYERS[room]


@pytest.mark.parametrize("room", LAYERS)
def test_no_file_name_is_used_twice(room):
    names = [name.rpartition("/")[2] for name in LIBRARY if name.startswith(room + "/")]
    assert sorted(names) == sorted(set(names))


def test_no_import_leads_back_to_itself():
    graphlib.TopologicalSorter({name: imports(name)[0] for name in LIBRARY}).prepare()


def test_the_tests_stand_where_the_library_does():
    """tests/unit/plugins mirrors plugins/: who looks for the tests of a package looks in the folder of the same name."""
    packages = {name.rpartition("/")[0] for name in LIBRARY}
    tests = CHECKOUT / "tests" / "unit" / "plugins"
    for room in ("module_utils", "plugin_utils"):
        for path in (tests / room).rglob("test_*.py"):
            assert path.parent.relative_to(tests).as_posix() in packages


def test_the_files_to_look_at_are_there():
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("### Where to look")[2].partition("\n## ")[0]
    named = [line.split("`")[1] for line in table.splitlines() if line.startswith("| ") and line.endswith("` |")][1:]
    assert len(named) >= 20 and [name for name in named if not (PLUGINS / name).is_file()] == []
