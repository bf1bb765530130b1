# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that need no lab, each a script in dev/: nox -l lists them, nox -s unit -- -k registry passes arguments on."""

# All of them use one environment, .venv, which dev/venv makes once for each set of requirements: with the versions of
# requirements-dev.lock, and no network after that. antsibull-nox runs the same programs, but in an environment for each session,
# and fetches ansible-core and the collections that ours depends on.

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"
nox.options.envdir = ".cache/nox"

GRACE = 30  # seconds that a test has to put back what it changed
RESULTS = Path(__file__).resolve().parent / ".cache" / "results"


def run(session: nox.Session, *command: str) -> None:
    """Run a script of dev/ with the arguments that nox was given for it."""
    session.run_install("dev/venv")
    session.run(*command, *session.posargs, interrupt_timeout=GRACE, terminate_timeout=GRACE)


@nox.session
def unit(session: nox.Session) -> None:
    """The library and the boot scripts, without a lab."""
    run(session, "dev/unit", f"--junitxml={RESULTS}/unit.xml")


@nox.session
def sanity(session: nox.Session) -> None:
    """What ansible-test sanity says of what a user gets."""
    run(session, "dev/sanity")


@nox.session(name="node-agent")
def node_agent(session: nox.Session) -> None:
    """The tests of the node agent."""
    run(session, "dev/node-agent", f"--junitxml={RESULTS}/node-agent.xml")


@nox.session(name="lab-sim")
def lab_sim(session: nox.Session) -> None:
    """The tests of the lab's simulated hardware."""
    run(session, "dev/lab-sim")


@nox.session
def python38(session: nox.Session) -> None:
    """What runs on hosts, with Python 3.8."""
    run(session, "dev/python38")


@nox.session
def simulate(session: nox.Session) -> None:
    """Simulated fleets: the fixed schedules, and some fresh ones."""
    run(session, "dev/simulate")


@nox.session
def lint(session: nox.Session) -> None:
    """Linters for shell, Python, YAML and Ansible, and types."""
    run(session, "dev/lint")


@nox.session
def build(session: nox.Session) -> None:
    """The collection archive, and what Galaxy's importer says of it."""
    run(session, "dev/build")


@nox.session(name="docs-lint")
def docs_lint(session: nox.Session) -> None:
    """Documentation, changelog, links."""
    run(session, "dev/docs-lint")


@nox.session
def ee(session: nox.Session) -> None:
    """What the execution environment lists, and whether it suffices."""
    run(session, "dev/ee")


@nox.session(name="ansible-newest")
def ansible_newest(session: nox.Session) -> None:
    """The newest ansible-core that a Python of this machine runs."""
    run(session, "dev/ansible-newest")
