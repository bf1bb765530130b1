# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks are the same wherever they are run: by nox, make, dev/test, GitHub and pre-commit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.paths import CHECKOUT

BIN = Path(sys.executable).parent


def text(name):
    return (CHECKOUT / name).read_text(encoding="utf-8")


@pytest.fixture(name="sessions", scope="module")
def _sessions():
    # A nox that runs this test says so to every other one.
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOX")}
    listed = subprocess.run([BIN / "nox", "--list", "--json"], cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(listed)


def test_each_session_is_a_script_of_its_name(sessions):
    assert all(os.access(CHECKOUT / "dev" / session["session"], os.X_OK) for session in sessions)
    assert all(session["description"] for session in sessions)


def test_make_has_them(sessions):
    (checks,) = re.findall(r"^CHECKS := (.*)$", text("Makefile"), re.MULTILINE)
    assert checks.split() == [session["session"] for session in sessions]


def test_make_help_lists_every_target():
    shown = subprocess.run(["make", "-s", "help"], cwd=CHECKOUT, stdout=subprocess.PIPE, check=True, text=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", text("Makefile"), re.MULTILINE)[1].replace("$(CHECKS)", "")
    checks = re.search(r"^CHECKS := (.*)$", text("Makefile"), re.MULTILINE)[1]
    assert {line.split()[1] for line in shown.splitlines()} == {*phony.split(), *checks.split()}


def test_github_has_them(sessions):
    matrix = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["checks"]["strategy"]["matrix"]
    assert matrix["session"] == [session["session"] for session in sessions]
    assert {entry["session"] for entry in matrix["include"]} <= set(matrix["session"])


def test_pre_commit_uses_what_is_pinned():
    subprocess.run([BIN / "pre-commit", "validate-config"], cwd=CHECKOUT, check=True)
    pinned = {line.partition("==")[0].removesuffix("-py") for line in text("requirements-dev.txt").splitlines() if "==" in line}
    (repository,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        program = Path(hook["entry"].split()[0])
        assert str(program.parent) == ".venv/bin" and program.name in pinned


def test_what_is_required_is_locked():
    locked = text("requirements-dev.lock").lower().replace("_", "-").splitlines()
    required = [line.lower().replace("_", "-") for line in text("requirements-dev.txt").splitlines() if "==" in line]
    assert set(required) <= set(locked)
