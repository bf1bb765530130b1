# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running lab as tests see it: kubectl, SSH and playbooks, as a user has them. Nothing here starts or ends the lab."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import threading
import time
import urllib.parse

import pytest
import yaml

from support.kube.api import KubeApi
from support.paths import CHECKOUT
from support.patience import PATIENCE, RUN_PATIENCE
from support.preloaded import Preloaded

# kubectl is a program in Go that ends before it pays to clean up or to use a second core: this saves two fifths of its CPU time.
SHORT_LIVED = {"GOMAXPROCS": "1", "GOGC": "off"}
# Ansible's results as JSON on standard output.
AS_JSON = {"ANSIBLE_LOAD_CALLBACK_PLUGINS": "1", "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"}


class Lab:
    """What tests may ask of a lab whose state directory is `state` (default: NPU_LAB_STATE, else .lab of the checkout)."""

    def __init__(self, state: pathlib.Path) -> None:
        self.state = state
        self.inventory = state / "inventory.yml"
        self.kubeconfig = state / "kubeconfig"
        self.controller_kubeconfig = state / "controller.kubeconfig"
        self._api: KubeApi | None = None
        self._lock = threading.Lock()
        self._preloaded: dict[frozenset, Preloaded] = {}
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        """End what works for it."""
        self._open.close()

    def variable(self, name: str) -> object:
        """Return a variable of the group npu_nodes as the lab's inventory has it."""
        return yaml.safe_load(self.inventory.read_text(encoding="utf-8"))["npu_nodes"]["vars"][name]

    def variables(self) -> list[str]:
        """Return the names of these variables."""
        return list(yaml.safe_load(self.inventory.read_text(encoding="utf-8"))["npu_nodes"]["vars"])

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True, env: dict[str, str] | None = None) -> str:
        """Run kubectl and return what it prints. The test fails with kubectl's own words if it fails and `check` is set.

        :param env: environment variables to add
        """
        return self._run(
            [str(self.state / "bin" / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            stdin=stdin,
            check=check,
            env={**SHORT_LIVED, **(env or {})},
        ).stdout

    def get(self, *arguments: str) -> dict:
        """Return what `kubectl get ... -o json` prints, parsed."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    @property
    def api(self) -> KubeApi:
        """The API without a program for each question, for those that are asked again and again."""
        if self._api is None:
            self._api = KubeApi(self.kubeconfig)
        return self._api

    def node(self, name: str) -> dict:
        """Return the Node object."""
        return self.api.get(f"/api/v1/nodes/{name}")

    def pod(self, name: str, namespace: str = "default") -> dict:
        """Return the Pod object."""
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def last_log(self, name: str, namespace: str = "default") -> str:
        """What a pod that has ended has printed. On a busy machine it is there a moment later than the end."""
        return self.wait_for(lambda: self.kubectl("logs", name, "-n", namespace), 60, f"the log of {name}")

    def pods(self, namespace: str, **selectors: str) -> list[dict]:
        """Return the Pods of a namespace; selectors as in the API, labelSelector or fieldSelector."""
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods?{urllib.parse.urlencode(selectors)}")["items"]

    def ssh(self, host: str, command: str, check: bool = True) -> subprocess.CompletedProcess:
        """Run a shell command on a host as root."""
        return self._run(["ssh", "-F", str(self.state / "ssh_config"), "-o", "BatchMode=yes", host, command], check=check)

    def copy(self, file: pathlib.Path, host: str, place: str) -> None:
        """Copy a file of this machine to a path on a host."""
        self._run(["scp", "-F", str(self.state / "ssh_config"), "-o", "BatchMode=yes", str(file), f"{host}:{place}"])

    def playbook(
        self,
        name: str,
        *arguments: str,
        check: bool = True,
        timeout: float = RUN_PATIENCE,
        env: dict[str, str] | None = None,
        **variables: object,
    ) -> subprocess.CompletedProcess:
        """Run a playbook of the collection on the lab's inventory.

        :param name: for example "install"
        :param arguments: of ansible-playbook, for example "--limit=npu-a"
        :param env: environment variables to add
        :param variables: extra variables
        """
        command = ["ansible-playbook", "-i", str(self.inventory), f"npuops.ascend.{name}", *arguments]
        if variables:
            command += ["-e", json.dumps(variables)]
        return self.ansible(command, check, timeout, env)

    def ansible(
        self, command: list[str], check: bool = True, timeout: float = RUN_PATIENCE, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        """Run ansible-playbook or ansible.

        :param env: environment variables to add. With others than AS_JSON it is started in the usual way
        """
        if env not in (None, AS_JSON):
            return self._run(command, check=check, timeout=timeout, env=env)
        # What pytest says of the test at hand would make an environment of its own of each.
        environ = {name: value for name, value in {**self.environment(), **(env or {})}.items() if not name.startswith("PYTEST_")}
        with self._lock:
            key = frozenset(environ.items())
            if key not in self._preloaded:
                self._preloaded[key] = self._open.enter_context(contextlib.closing(Preloaded(environ)))
            preloaded = self._preloaded[key]
        return self._checked(preloaded.run(command, CHECKOUT, timeout), check)

    def module(self, host: str, name: str, *arguments: str, **options: object) -> dict:
        """Run one module of the collection on a host and return its result, failed or not.

        :param arguments: of ansible, for example "--check"
        """
        command = ["ansible", host, "-i", str(self.inventory), "-m", f"npuops.ascend.{name}", *arguments]
        command += ["-a", json.dumps(options)] if options else []  # an empty object is taken for free-form text
        result = self.ansible(command, check=False, env=AS_JSON)
        return json.loads(result.stdout)["plays"][0]["tasks"][0]["hosts"][host]

    def driver_package(self, chip: str, version: str) -> pathlib.Path:
        """Return the .run file that the lab's own driver images of that chip and version were built from."""
        builds = json.loads((self.state / "driver-images.json").read_text(encoding="utf-8"))["npu_driver_image_build"]
        return next(
            pathlib.Path(build["package"]) for build in builds if build["chip"] == chip and f"_{version}_" in build["package"]
        )

    def firmware_package(self, chip: str, version: str) -> pathlib.Path:
        """Return the simulated firmware package of that chip and version, as a user would have it from Huawei."""
        builds = json.loads((self.state / "driver-images.json").read_text(encoding="utf-8"))["npu_driver_image_build"]
        directory = pathlib.Path(builds[0]["package"]).parent
        return directory / f"Ascend-hdk-{chip}-npu-firmware_{version}.run"

    def flash(self, node: str, *arguments: str) -> list[dict]:
        """Return what is in the flash of each chip, as `npusim flash` on the node shows it; "factory" makes the chips new."""
        return json.loads(self.console(node, " ".join(["npusim flash", *arguments])) or "[]")

    def fault(self, node: str, *words: str) -> None:
        """Make the simulated hardware of a node misbehave, or "clear" it: lab/fault NODE WORD..."""
        self._run([str(CHECKOUT / "lab" / "fault"), node, *words])

    def kernel(self, node: str, *words: str) -> None:
        """Install a kernel on a node, which its next boot loads, or remove it: lab/kernel NODE WORD..."""
        self._run([str(CHECKOUT / "lab" / "kernel"), node, *words])

    def console(self, node: str, command: str) -> str:
        """What a shell command prints that runs on a node without its network, whatever hangs there; "" if the node is off."""
        return self._run([str(CHECKOUT / "lab" / "console"), node, command], check=False).stdout

    def environment(self) -> dict[str, str]:
        """Return the environment in which commands here run."""
        return {
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            **os.environ,
            "PATH": f"{CHECKOUT}/.venv/bin:{os.environ['PATH']}",
            "NPU_LAB_STATE": str(self.state),
        }

    @staticmethod
    def wait_for(condition, timeout: float, what: str, interval: float = 1.0):
        """Return the first true value of `condition()`; fail saying what was awaited and the last value seen.

        :param timeout: seconds that it may take; never less than PATIENCE, because a slow machine is no failure
        """
        timeout = max(timeout, PATIENCE)
        end = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                pytest.fail(f"{what}: not within {timeout:.0f} s, last seen {value!r}")
            time.sleep(interval)

    def _run(
        self,
        command: list[str],
        stdin: str | None = None,
        check: bool = True,
        timeout: float = PATIENCE,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        result = subprocess.run(
            command,
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env={**self.environment(), **(env or {})},
            cwd=CHECKOUT,
        )
        return self._checked(result, check)

    @staticmethod
    def _checked(result: subprocess.CompletedProcess, check: bool) -> subprocess.CompletedProcess:
        if check and result.returncode != 0:
            pytest.fail(
                f"{' '.join(result.args)}\nexit status {result.returncode}\n{result.stdout}\n{result.stderr}", pytrace=False
            )
        return result
