# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's own device plugin and exporter instead of the simulated ones: built from their source, unmodified."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from . import addons, binaries
from .files import digest, new_directory, write
from .registry import credentials, push_archive
from .settings import LAB_SOURCE, Lab, LabError
from .tasks import Step

URL = "https://github.com/Ascend/mind-cluster.git"
VERSION_LINES = {version[1:].rpartition(".")[0]: version for version in addons.MINDCLUSTER_VERSIONS}
REPOSITORY = "upstream"  # in the lab's registry: upstream/npu-exporter
CLONE_SECONDS = 600
BUILD_SECONDS = 1800
PARTS = ("component/ascend-common", "component/ascend-device-plugin", "component/npu-exporter")


@dataclass(frozen=True)
class Program:
    """One of upstream's programs: where its source is, and the variable that its build script sets to the version."""

    name: str  # as in addons.MINDCLUSTER_REPOSITORIES
    binary: str
    module: str
    package: str
    variables: str


PROGRAMS = (
    Program("device-plugin", "device-plugin", "component/ascend-device-plugin", ".", "main"),
    Program("exporter", "npu-exporter", "component/npu-exporter", "./cmd/npu-exporter", "huawei.com/npu-exporter/v6/versions"),
)


def use(lab: Lab, step: Step, version_line: str) -> None:
    """Build the programs of a version line unless the cache has them, push their images, and remember that for the inventory."""
    version = VERSION_LINES[version_line]
    archives = _archives(lab, step, version)
    for program in PROGRAMS:
        step.tell(f"pushing {_repository(program.name)}:{version}")
        push_archive(credentials(lab), archives / f"{program.name}.tar", _repository(program.name), version)
    write(_choice(lab), json.dumps({"version_line": version_line}) + "\n")


def drop(lab: Lab) -> None:
    """The simulated programs again."""
    _choice(lab).unlink(missing_ok=True)


def version_line_of(lab: Lab) -> str | None:
    """The version line whose programs the lab uses; None: the simulated ones."""
    choice = _choice(lab)
    return json.loads(choice.read_text(encoding="utf-8"))["version_line"] if choice.exists() else None


def repository(lab: Lab, name: str) -> str:
    """The repository of a component's image: upstream's or the simulated one."""
    return _repository(name) if version_line_of(lab) else addons.MINDCLUSTER_REPOSITORIES[name]


def _repository(name: str) -> str:
    return f"{REPOSITORY}/{addons.MINDCLUSTER_REPOSITORIES[name].rpartition('/')[2]}"


def _choice(lab: Lab) -> Path:
    return lab.state / "upstream.json"


def _archives(lab: Lab, step: Step, version: str) -> Path:
    """Directory with the images of a release."""
    key = digest(Path(__file__), LAB_SOURCE / "sim" / "simbuild", LAB_SOURCE / "sim" / "images", version)
    final = lab.cache / "upstream" / f"{version}-{key}"
    if not final.is_dir():
        with new_directory(final) as target:
            source = target / "source"
            fetch(step, version, source)
            for program in PROGRAMS:
                build(lab, step, program, version, source, target)
            shutil.rmtree(source)
            script = LAB_SOURCE / "sim" / "build.py"
            for program in PROGRAMS:
                reference = f"localhost/{_repository(program.name)}:{version}"
                step.run(sys.executable, "-B", script, "--out", target / program.name, "--image", reference)
                shutil.rmtree(target / program.name)
            shutil.rmtree(target / "base", ignore_errors=True)
    return final


def fetch(step: Step, version: str, target: Path) -> None:
    """The parts of upstream's source that are needed, at the tag: from the clone that NPU_UPSTREAM names, else from its site."""
    given = os.environ.get("NPU_UPSTREAM")
    clone = Path(given or target.with_name("clone"))
    if not given:
        step.tell(f"getting {version} from {URL}")
        # Neither a question for a password nor a connection that delivers nothing may keep it waiting.
        slow = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30")
        command = ("git", *slow, "clone", "-q", "--bare", "--depth=1", f"--branch={version}", URL, clone)
        result = step.run("timeout", CLONE_SECONDS, *command, check=False, env={"GIT_TERMINAL_PROMPT": "0"})
        if result.returncode != 0:
            raise LabError(
                f"{URL} cannot be reached or has no {version}: set NPU_UPSTREAM to the path of a clone that has this tag"
            )
    target.mkdir()
    archive = target.with_name("source.tar")
    # A clone that belongs to another user needs no entry in git's configuration: it is only read.
    git = ("git", "-c", f"safe.directory={clone}", "-C", clone)
    result = step.run(*git, "archive", f"--output={archive}", version, *PARTS, check=False)
    if result.returncode != 0:
        raise LabError(
            f"{clone} is no clone of MindCluster with the tag {version}: set NPU_UPSTREAM to the path of one that has it"
        )
    step.run("tar", "-xf", archive, "-C", target)
    archive.unlink()
    if not given:
        shutil.rmtree(clone)


def build(lab: Lab, step: Step, program: Program, version: str, source: Path, target: Path) -> None:
    """Compile a program as its own build script does."""
    module = source / program.module
    match = re.search(r"^go ([0-9.]+)$", (module / "go.mod").read_text(encoding="utf-8"), re.M)
    minimum = tuple(int(part) for part in match[1].split(".")) if match else binaries.GO_MINIMUM
    step.tell(f"building {program.name} {version}")
    shutil.copytree(module / "build", target / program.name)
    values = {"BuildName": program.binary, "BuildVersion": f"{version}_linux-{os.uname().machine}", "BuildScene": "center"}
    flags = " ".join(f"-X {program.variables}.{name}={value}" for name, value in values.items())
    result = step.run(
        "timeout",
        BUILD_SECONDS,
        "nice",
        binaries.find_go(lab, step, max(minimum, binaries.GO_MINIMUM)),
        "build",
        "-mod=mod",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        f"-s -w {flags}",
        "-o",
        target / program.name / program.binary,
        program.package,
        check=False,
        cwd=module,
        env={"CGO_ENABLED": "1", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"},
    )
    if result.returncode != 0:
        raise LabError(
            f"{program.binary} {version} cannot be built: it needs gcc, and the Go modules from the proxy that GOPROXY names"
        )
