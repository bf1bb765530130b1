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
    """Each run compiles it on each host. Packages need compressions as well, which a small Python does not have."""
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


def test_no_import_leads_back_to_itself():
    graphlib.TopologicalSorter({name: imports(name)[0] for name in LIBRARY}).prepare()


def test_the_tests_stand_where_the_library_does():
    """tests/unit/plugins mirrors plugins/: who looks for the tests of a package looks in the folder of the same name."""
    packages = {name.rpartition("/")[0] for name in LIBRARY}
    tests = CHECKOUT / "tests" / "unit" / "plugins"
    for room in ("module_utils", "plugin_utils"):
        for path in (tests / room).rglob("test_*.py"):
            assert path.parent.relative_to(tests).as_posix() in packages
