# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-builder makes of the execution environment's files. dev/ee proves that it suffices."""

from __future__ import annotations

import ast
import configparser
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
# What every Ansible has.
BY_ANSIBLE_CORE = {"cryptography", "ansible", "ansible_collections", "yaml", "jinja2", "packaging"}


def builder(*arguments):
    command = [sys.executable, "-c", "from ansible_builder.cli import run; run()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout


def names(lines):
    """The package's name in each line that is no comment."""
    return {re.match(r"[A-Za-z0-9._-]+", line).group() for line in lines if line.strip() and not line.startswith("#")}


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The build context that ansible-builder creates of the file in the checkout."""
    directory = tmp_path_factory.mktemp("context")
    builder("create", "--file", "execution-environment.yml", "--context", str(directory), "--output-filename", "Containerfile")
    return directory


@pytest.fixture(scope="module")
def introspected(tmp_path_factory):
    """(lines for pip, lines for bindep) that ansible-builder finds in the collection."""
    root = tmp_path_factory.mktemp("installed")
    (root / "ansible_collections" / "npuops").mkdir(parents=True)
    (root / "ansible_collections" / "npuops" / "ascend").symlink_to(CHECKOUT)
    builder("introspect", "--write-pip", str(root / "pip"), "--write-bindep", str(root / "bindep"), str(root))
    return [(root / name).read_text(encoding="utf-8").splitlines() for name in ("pip", "bindep")]


def test_the_base_image_is_a_build_argument(context):
    steps = (context / "Containerfile").read_text(encoding="utf-8").splitlines()
    base = yaml.safe_load((CHECKOUT / "execution-environment.yml").read_text(encoding="utf-8"))["images"]["base_image"]["name"]
    assert 'ARG EE_BASE_IMAGE="%s"' % base in steps
    assert "FROM $EE_BASE_IMAGE AS base" in steps
    # Nothing else is pulled.
    assert {step.split()[1] for step in steps if step.startswith("FROM ")} == {"$EE_BASE_IMAGE", "base"}


def test_ansible_is_one_that_the_collection_works_with(context):
    text = (context / "Containerfile").read_text(encoding="utf-8")
    floor, ceiling = re.search(r"ansible-core>=2\.(\d+),<2\.(\d+)", text).groups()
    tested = re.search(r"^ansible-core==2\.(\d+)", (CHECKOUT / "requirements-dev.txt").read_text(encoding="utf-8"), re.M).group(1)
    required = yaml.safe_load((CHECKOUT / "meta" / "runtime.yml").read_text(encoding="utf-8"))["requires_ansible"]
    assert int(floor) <= int(tested) < int(ceiling)
    assert int(re.search(r">=2\.(\d+)", required).group(1)) <= int(floor)
    assert "ansible-runner>=" in text


def test_its_collections(context):
    wanted = yaml.safe_load((context / "_build" / "requirements.yml").read_text(encoding="utf-8"))["collections"]
    versions = {entry["name"]: entry["version"] for entry in wanted}
    galaxy = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))
    assert set(versions) == {"npuops.ascend", "awx.awx", *galaxy["dependencies"]}
    for name, version in galaxy["dependencies"].items():
        assert versions[name] == version
    # Exactly: the playbooks come from the project, at that version, and the modules from here.
    assert versions["npuops.ascend"] == galaxy["version"]


def test_what_is_found_in_the_collection(introspected):
    pip, bindep = introspected
    assert names(pip) == {"jmespath", "kubernetes", "urllib3"}
    # Lower bounds only: the environment has other collections too.
    for line in pip:
        if line.strip() and not line.startswith("#"):
            assert re.match(r"[a-z0-9-]+>=[0-9.]+\s+# from collection npuops\.ascend", line), line
    assert names(bindep) == {"openssh-clients", "openssh-client", "sshpass", "tar", "gzip"}


def test_the_dependencies_are_in_the_archive():
    """build_ignore must not leave out what ansible-builder reads."""
    ignored = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))["build_ignore"]
    assert not [pattern for pattern in ignored if pathlib.PurePath("meta").match(pattern)]
    listed = yaml.safe_load((CHECKOUT / "meta" / "execution-environment.yml").read_text(encoding="utf-8"))["dependencies"]
    assert all((CHECKOUT / file).is_file() for file in listed.values())


def test_every_import_is_provided(introspected):
    """Of any file that the controller runs; what kubernetes.core imports is its own to tell."""
    provided = BY_ANSIBLE_CORE | names(introspected[0]) | set(sys.stdlib_module_names)
    missing = {}
    for path in sorted((CHECKOUT / "plugins").rglob("*.py")):
        for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.Import):
                imported = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom) and not statement.level:
                imported = [statement.module]
            else:
                continue
            for name in imported:
                if name.split(".")[0] not in provided:
                    missing.setdefault(name, []).append(path.name)
    assert missing == {}


KEEPALIVE = "-o ServerAliveInterval=15 -o ServerAliveCountMax=3"


def ssh_args(text):
    settings = configparser.ConfigParser()
    settings.read_string(text)
    return settings["ssh_connection"]["ssh_args"]


def test_a_frozen_host_ends_a_job_everywhere(context):
    """In the environment, in the checkout, as the guide says, and with the example inventory."""
    steps = (context / "Containerfile").read_text(encoding="utf-8").splitlines()
    source = next(step.split()[1] for step in steps if step.startswith("COPY") and step.endswith(" /etc/ansible/ansible.cfg"))
    assert ssh_args((context / source).read_text(encoding="utf-8")).endswith(KEEPALIVE)
    assert ssh_args((CHECKOUT / "ansible.cfg").read_text(encoding="utf-8")).endswith(KEEPALIVE)
    guide = (CHECKOUT / "docs" / "install.md").read_text(encoding="utf-8")
    assert ssh_args(re.search(r"```ini\n(\[defaults\].*?)```", guide, re.S).group(1)).endswith(KEEPALIVE)
    example = yaml.safe_load((CHECKOUT / "inventory" / "group_vars" / "npu_nodes.yml").read_text(encoding="utf-8"))
    assert example["ansible_ssh_extra_args"] == KEEPALIVE
