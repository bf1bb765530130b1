# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A playbook as AWX runs it: through ansible-runner, with AWX's files, command line, environment and credentials.

What AWX does is in its awx/main/tasks/jobs.py (24.6.1): RunJob.build_args, build_env, build_inventory, build_extra_vars_file. Only its
container is missing. In its place is the environment that dev/ee makes: what execution-environment.yml lists, and nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import yaml

from support.lab.lab import Lab
from support.paths import CHECKOUT
from support.patience import PATIENCE, RUN_PATIENCE

URL = "https://awx.example.com"
# A job in the process that AWX has for it: everything beside the project is in the private data directory.
_WORKER = """
import json, sys, ansible_runner
given = json.load(open(sys.argv[1]))
result = ansible_runner.interface.run(**given)
answer = {"status": result.status, "rc": result.rc}
json.dump(answer, open(sys.argv[2], "w"))
"""


class Answer(str):
    """What a person typed into a survey: AWX marks it !unsafe, so that nothing in it is a template."""


class _Dumper(yaml.SafeDumper):
    """YAML as AWX writes extra variables."""


_Dumper.add_representer(Answer, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


class Awx:
    """A controller with one inventory.

    :param lab: where the nodes are
    :param directory: its disk
    :param variables: of the inventory, as a platform team keeps them in AWX
    """

    def __init__(self, lab: Lab, directory: pathlib.Path, variables: dict) -> None:
        assert (CHECKOUT / ".cache" / "ee" / "venv").exists(), "there is no execution environment: make ee"
        self.lab, self.directory, self.variables = lab, directory, variables
        self._numbers = iter(range(101, 1000))
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        # Of the repository at one commit, as a project sync leaves it: no .cache, no .venv.
        self.project = directory / "project"
        self.project.mkdir()
        archive = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=CHECKOUT, capture_output=True, check=True
        ).stdout
        subprocess.run(
            ["tar", "--null", "--files-from=-", "--create", "--file", str(directory / "project.tar")],
            cwd=CHECKOUT,
            input=archive,
            check=True,
        )
        subprocess.run(["tar", "--extract", "--file", str(directory / "project.tar")], cwd=self.project, check=True)

    def credential(self, private: pathlib.Path) -> dict[str, str]:
        """What AWX's type "OpenShift or Kubernetes API Bearer Token" puts into the environment."""
        config = json.loads(self.lab.controller_kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        authority = private / "env" / "ca.crt"
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        return {
            "K8S_AUTH_HOST": cluster["server"],
            "K8S_AUTH_API_KEY": config["users"][0]["user"]["token"],
            "K8S_AUTH_VERIFY_SSL": "True",
            "K8S_AUTH_SSL_CA_CERT": str(authority),
        }

    def sync_inventory(self, source: str = "extensions/awx/npu_nodes.yml") -> dict:
        """What an inventory update does: hosts and groups from the source file in the project. Returns them."""
        private = self._private(f"inventory-{next(self._numbers)}")
        command = ["ansible-inventory", "-i", str(self.project / source), "--list", "--export"]
        result = subprocess.run(
            command,
            cwd=self.project,
            env=self._environment(private),
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def keep(self, hosts: dict) -> None:
        """Have these hosts and groups in the inventory, from now on."""
        hosts.setdefault("all", {})["vars"] = self.variables
        (self.directory / "inventory.json").write_text(json.dumps(hosts), encoding="utf-8")

    def launch(
        self,
        playbook: str,
        answers: dict[str, str] | None = None,
        limit: str = "",
        user: str = "chen.wei",
        extra_vars: dict | None = None,
    ) -> Job:
        """Start a job of the template of that playbook.

        :param answers: of the survey; AWX gives texts as texts, also numbers and yes or no of a choice
        :param extra_vars: of the template, or of a workflow
        """
        number = next(self._numbers)
        private = self._private(str(number))
        inventory = private / "inventory" / "hosts"
        content = (self.directory / "inventory.json").read_text(encoding="utf-8")
        inventory.write_text(f"#! /usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint({content!r})\n", encoding="utf-8")
        inventory.chmod(0o700)
        meta = {
            "awx_job_id": number,
            "awx_job_template_name": f"NPU {playbook}",
            "awx_user_name": Answer(user),
            "tower_job_id": number,
        }
        variables = {
            **(extra_vars or {}),
            **meta,
            **{name: Answer(value) if isinstance(value, str) else value for name, value in (answers or {}).items()},
        }
        (private / "env" / "extravars").write_text(yaml.dump(variables, Dumper=_Dumper), encoding="utf-8")
        words = ["-u", "root", "--forks=5"] + (["-l", limit] if limit else [])
        (private / "env" / "cmdline").write_text(" ".join([*words, "-e", f"@{private}/env/extravars"]), encoding="utf-8")
        environment = {
            **self._environment(private),
            "JOB_ID": str(number),
            "AWX_HOST": URL,
            "ANSIBLE_RETRY_FILES_ENABLED": "False",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(private / "cp"),
        }
        return Job(
            number,
            private,
            {
                "ident": str(number),
                "private_data_dir": str(private),
                "playbook": f"playbooks/{playbook}.yml",
                "inventory": str(inventory),
                "envvars": environment,
                "suppress_env_files": True,
                "ssh_key": (self.lab.state / "pki" / "ssh").read_text(encoding="utf-8"),
            },
        )

    def _private(self, name: str) -> pathlib.Path:
        private = self.directory / name
        for part in ("env", "inventory", "cp"):
            (private / part).mkdir(parents=True)
        private.chmod(0o700)
        (private / "project").symlink_to(self.project)
        return private

    def _environment(self, private: pathlib.Path) -> dict[str, str]:
        made = CHECKOUT / ".cache" / "ee"
        collections = f"{CHECKOUT}/.cache/collections:{made}/collections"
        system = ":".join(part for part in os.environ["PATH"].split(":") if not part.startswith(str(CHECKOUT)))
        return {
            **self.credential(private),
            "PATH": f"{made}/venv/bin:{system}",
            "HOME": os.environ["HOME"],
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_HOST_KEY_CHECKING": "False",
            "ANSIBLE_FORCE_COLOR": "True",
            "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
            "ANSIBLE_PARAMIKO_RECORD_HOST_KEYS": "False",
            # In a container nothing outlives the job.
            "ANSIBLE_SSH_ARGS": "-C -o ControlMaster=auto -o ControlPersist=20s",
            "AWX_PRIVATE_DATA_DIR": str(private),
        }


class Job:
    """One that runs, or has run."""

    def __init__(self, number: int, private: pathlib.Path, given: dict) -> None:
        self.number, self.private = number, private
        self._given, self._answer = private / "given.json", private / "answer.json"
        self._given.write_text(json.dumps(given), encoding="utf-8")
        self._given.chmod(0o600)
        with (private / "worker.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WORKER, str(self._given), str(self._answer)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """What people see of it in AWX."""
        file = self.private / "artifacts" / str(self.number) / "stdout"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    @property
    def artifacts(self) -> dict:
        """What it handed on to the jobs after it in a workflow."""
        found = {}
        for file in sorted((self.private / "artifacts" / str(self.number) / "job_events").glob("*.json")):
            event = json.loads(file.read_text(encoding="utf-8"))
            found.update(event.get("event_data", {}).get("artifact_data") or {})
        return found

    def wait(self) -> Job:
        """Wait for its end; it is the same job, with `status` and `rc`."""
        self._process.wait(RUN_PATIENCE)
        log = (self.private / "worker.log").read_text(encoding="utf-8", errors="replace")
        assert self._answer.exists(), log[-4000:]
        answer = json.loads(self._answer.read_text(encoding="utf-8"))
        self.status, self.rc = answer["status"], answer["rc"]
        return self

    def successful(self) -> Job:
        self.wait()
        assert (self.status, self.rc) == ("successful", 0), self.output[-6000:]
        return self

    def kill(self) -> None:
        """As when the pod of the job goes: every process at once, and no last word of any."""
        doomed = [self._process.pid]
        for pid in doomed:
            doomed += _children(pid)
        for pid in doomed:
            os.kill(pid, signal.SIGSTOP)  # or one would start another while they die
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE)


def _children(pid: int) -> list[int]:
    found = []
    for task in pathlib.Path("/proc", str(pid), "task").glob("*/children"):
        found += [int(word) for word in task.read_text(encoding="ascii").split()]
    return found
