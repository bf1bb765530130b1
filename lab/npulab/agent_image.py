# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent's image, as images/node-agent/Containerfile makes it, but of Debian's packages instead of a base image.

Needs neither a container engine nor somebody's registry; Debian's mirror and PyPI only the first time.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from pathlib import Path

from .collection import library
from .files import digest, new_directory, write
from .registry import credentials
from .settings import CHECKOUT, Lab
from .tasks import Step

SOURCE = CHECKOUT / "images" / "node-agent"
REPOSITORY = "npuops/node-agent"
PYTHON = "python3.11"
# The last two for the driver's libraries.
PACKAGES = (
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libc6",
    "zlib1g",
    "libexpat1",
    "libssl3",
    "libffi8",
    "liblzma5",
    "libbz2-1.0",
    "libcrypt1",
    "libuuid1",
    "libgcc-s1",
    "libstdc++6",
)
UNUSED = (
    "usr/share",
    "etc/ld.so.conf.d",
    "usr/lib/*/gconv",
    "usr/lib/*/audit",
    f"usr/lib/{PYTHON}/test",
    *(f"usr/lib/{PYTHON}/{name}" for name in ("idlelib", "lib2to3", "pydoc_data", "turtledemo", "unittest")),
    *(
        f"usr/lib/{PYTHON}/lib-dynload/{name}*"
        for name in ("_curses", "_dbm", "_sqlite3", "_test", "_xxtestfuzz", "_ctypes_test", "nis", "ossaudiodev", "readline")
    ),
)
DIRECTORIES = ("dev", "proc", "run", "sys", "tmp", "root", "var/log")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def reference(lab: Lab) -> str:
    """The image in the lab's registry. Other sources give another tag: no node keeps an old image under a known name."""
    return f"{lab.registry}/{REPOSITORY}:{_tag()}"


def push_agent_image(lab: Lab, step: Step) -> None:
    """Build the image unless the cache has it, push it unless the registry does."""
    directory = lab.cache / "agent-image" / _tag()
    if not directory.is_dir():
        with new_directory(directory) as target:
            _build(target, step)
    login = credentials(lab)
    oci, registry = library("_image.oci"), library("_image.registry")
    layer = oci.Layer(str(directory / "layer.tar.gz"), **json.loads((directory / "layer.json").read_text(encoding="utf-8")))
    client = registry.RegistryClient(login.address, login.username, login.password, plain_http=True)
    labels = {"org.opencontainers.image.title": "npuops node agent", "org.opencontainers.image.version": _tag()}
    image = oci.Image(client, REPOSITORY, _tag(), layer, ARCHITECTURES[platform.machine()], labels, _settings())
    if image.reason():
        step.say(f"pushing {REPOSITORY}:{_tag()}")
        image.push()


def _settings() -> dict:
    """What the Containerfile says with ENV, WORKDIR and ENTRYPOINT."""
    text = (SOURCE / "Containerfile").read_text(encoding="utf-8")
    environment = re.search(r"^ENV (.+)$", text, re.MULTILINE)
    entrypoint = re.search(r'^ENTRYPOINT \["python", (.+)\]$', text, re.MULTILINE)
    assert environment and entrypoint
    return {
        "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", *environment[1].split()],
        "WorkingDir": "/opt/npuops",
        "Entrypoint": [f"/usr/bin/{PYTHON}", *re.findall(r'"([^"]+)"', entrypoint[1])],
    }


def _library_files() -> list[Path]:
    """The collection's own files that the Containerfile copies."""
    text = (SOURCE / "Containerfile").read_text(encoding="utf-8")
    return [CHECKOUT / path for path in re.findall(r"plugins/module_utils/[\w/]+\.py", text)]


def _tag() -> str:
    init = (SOURCE / "npu_node_agent" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.+)"', init)
    assert version
    parts = (
        SOURCE / "Containerfile",
        SOURCE / "requirements.txt",
        SOURCE / "npuops-python",
        SOURCE / "npu_node_agent",
        *_library_files(),
        Path(__file__),
    )
    return f"{version[1]}-{digest(*parts)}"


def _build(target: Path, step: Step) -> None:
    root = target / "root"
    step.say("downloading packages of the node agent's image")
    debs = target / "debs"
    debs.mkdir()
    debs.chmod(0o777)  # noqa: S103  apt downloads as its own user
    step.run("apt-get", "-q", "download", *PACKAGES, cwd=debs)
    for package in sorted(debs.glob("*.deb")):
        step.run("dpkg-deb", "-x", package, root)
    for pattern in UNUSED:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    write(root / "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    write(root / "etc/group", "root:x:0:\n")
    (root / "usr/bin/python3").symlink_to(PYTHON)
    shutil.copy2(SOURCE / "npuops-python", root / "usr/bin/npuops-python")
    _add_program(root, step)
    step.say("packing the node agent's image")
    layer = library("_image.oci").write_layer(str(root), "", str(target / "layer.tar.gz"))
    write(target / "layer.json", json.dumps({name: getattr(layer, name) for name in ("digest", "size", "diff_id")}))
    shutil.rmtree(root)
    shutil.rmtree(debs)


def _add_program(root: Path, step: Step) -> None:
    """The agent, the collection's files that it uses, and its requirements, compiled by the Python that will run them."""
    place = root / "opt/npuops"
    shutil.copytree(SOURCE / "npu_node_agent", place / "npu_node_agent", ignore=shutil.ignore_patterns("__pycache__"))
    for file in _library_files():
        copy = place / "ansible_collections/npuops/ascend" / file.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    step.run(
        CHECKOUT / ".venv" / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "-q",
        "install",
        "--target",
        place,
        "--only-binary=:all:",
        "--python-version",
        PYTHON.removeprefix("python"),
        "--no-deps",
        "--no-compile",
        "-r",
        SOURCE / "requirements.txt",
    )
    # What is compiled says nothing of times: the same sources give the same image.
    step.run(
        root / "usr/bin/npuops-python",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        root,
        "-p",
        "/",
        root / "usr/lib" / PYTHON,
        place,
        env={"PYTHONHASHSEED": "0"},
    )
