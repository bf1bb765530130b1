# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python packages that the node agent needs, as wheels: found, compared with the checksums in the lock file, unpacked.

A wheel for another architecture than the controller's is unpacked as any other; nothing of it runs here.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import program

# In the names of wheels. What pip calls a platform: glibc 2.28 is older than that of any base image with this Python.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PLATFORMS = ("manylinux_2_28", "manylinux2014", "manylinux_2_17")
_SECONDS = 900


class Requirement(NamedTuple):
    """A line of the lock file."""

    name: str
    version: str
    sha256: frozenset[str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def requirements(lock: Path) -> list[Requirement]:
    """What the lock file names."""
    found = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        match = re.match(r"([\w.-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)$", line)
        if match:
            found.append(Requirement(match[1], match[2], frozenset(re.findall(r"sha256:(\w+)", match[3]))))
        elif line and not line.startswith("#"):
            raise NpuError(f"{lock}: this line is not a package with its version and its checksums: {printable(line)}")
    return found


def download(lock: Path, architecture: str, directory: Path) -> None:
    """Let pip download the wheels for ``architecture``, from the package index that it is configured for."""
    machine = MACHINES[architecture]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q", "download"]
    command += ["--no-deps", "--only-binary=:all:", "--require-hashes", "--implementation=cp", f"--python-version={program.PYTHON}"]
    command += [f"--platform={name}_{machine}" for name in _PLATFORMS]
    command += [f"--dest={directory}", f"--requirement={lock}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise NpuError(f"pip did not download the wheels for linux/{architecture} within {_SECONDS} s. {_INSTEAD}") from None
    if done.returncode:
        raise NpuError(_failure(done.stderr, lock, architecture))


_INSTEAD = "Or download them on another machine, and set wheels to their directory (images/node-agent/README.md says how)"


def _failure(said: str, lock: Path, architecture: str) -> str:
    """The message for a pip that failed and said that."""
    where = f"for linux/{architecture} and Python {program.PYTHON}"
    if "No module named pip" in said:
        return (
            f"The Python that runs Ansible ({sys.executable}) has no pip, which downloads the node agent's requirements. "
            f"Install it there. {_INSTEAD}"
        )
    errors = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.startswith("ERROR: ")]
    if "DO NOT MATCH THE HASHES" in said:
        got = re.search(r"Got\s+([0-9a-f]{64})", said)
        named = re.search(r"^\s+(\S+==\S+|\S+) from ", said, re.MULTILINE)
        return (
            f"The package index has another wheel of {printable(named[1]) if named else 'a package'} {where} than {lock} "
            f"names: its SHA-256 checksum is {got[1] if got else 'different'}. Use an index with the original files (PIP_INDEX_URL)"
        )
    if "Retrying (Retry(" in said:
        reason = printable(_reason(said))
        return f"pip does not reach its package index: {reason}. Set PIP_INDEX_URL to one that it reaches. {_INSTEAD}"
    missing = re.search(r"No matching distribution found for (\S+)", said)
    if missing:
        package = printable(missing[1])
        return f"The package index has no wheel of {package} {where}. Use an index that has it (PIP_INDEX_URL). {_INSTEAD}"
    last = errors[-1] if errors else (said.strip().splitlines() or ["no message"])[-1]
    return f"pip could not download the wheels {where}: {printable(last)}. {_INSTEAD}"


def _reason(said: str) -> str:
    """Why pip tries again, of what it said."""
    found = re.search(r"after connection broken by '(.*)': /", said)
    return found[1] if found else "no connection"


def select(wanted: Iterable[Requirement], architecture: str, directory: Path) -> list[Path]:
    """The wheel of each requirement in ``directory``, for ``architecture``. Raises NpuError without one that can be used."""
    try:
        files = sorted(path for path in directory.iterdir() if path.suffix == ".whl")
    except OSError as exc:
        raise NpuError(f"The directory with wheels, {directory}, cannot be read: {exc.strerror}") from None
    return [_select(one, architecture, directory, files) for one in wanted]


def _select(requirement: Requirement, architecture: str, directory: Path, files: Iterable[Path]) -> Path:
    others = []
    for path in files:
        if _fits(path.name, requirement, architecture):
            try:
                checksum = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as exc:
                raise NpuError(f"{path} cannot be read: {exc.strerror}. Make it a file that the user of Ansible can read") from None
            if checksum in requirement.sha256:
                return path
            others.append((path, checksum))
    if others:
        path, checksum = others[0]
        raise NpuError(
            f"{path} is not the wheel that {program.REQUIREMENTS} names: its SHA-256 checksum is {checksum}. "
            "Remove it, and download the original file"
        )
    raise NpuError(
        f"{directory} has no wheel of {requirement} for linux/{architecture} and Python {program.PYTHON}. Download it to that "
        "directory (images/node-agent/README.md says how)"
    )


def _fits(file: str, requirement: Requirement, architecture: str) -> bool:
    """Whether a file with that name is a wheel of the requirement, for the architecture."""
    parts = file.removesuffix(".whl").split("-")
    if len(parts) not in (5, 6):  # name, version, perhaps the number of the build, and three kinds of tags
        return False
    if (_canonical(parts[0]), parts[1]) != (_canonical(requirement.name), requirement.version):
        return False
    own = "cp" + program.PYTHON.replace(".", "")
    interpreters, abis, platforms = (set(part.split(".")) for part in parts[-3:])
    if not interpreters & {"py3", own} or not abis & {"none", "abi3", own}:
        return False
    native = re.compile(rf"(many)?linux.*_{MACHINES[architecture]}\Z")
    return "any" in platforms or any(map(native.match, platforms))


def _canonical(name: str) -> str:
    """A package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def unpack(wheel: Path, target: Path) -> None:
    """Unpack the modules of a wheel into ``target``. Its scripts and headers are left out: the agent does not use any."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                inside = _inside(PurePosixPath(entry.filename))
                if inside is not None and not entry.is_dir():
                    program.write_file(target / inside, archive.read(entry), 0o755 if ".so" in inside.suffixes else 0o644)
    except (zipfile.BadZipFile, OSError) as exc:
        raise NpuError(f"{wheel} cannot be unpacked: {exc}") from None


def _inside(path: PurePosixPath) -> PurePosixPath | None:
    """Where a file of a wheel goes, or None."""
    if path.is_absolute() or ".." in path.parts:
        return None
    if path.parts and path.parts[0].endswith(".data"):
        return PurePosixPath(*path.parts[2:]) if path.parts[1:2] in (("purelib",), ("platlib",)) else None
    return path
