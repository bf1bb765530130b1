# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent's image, as a user builds it: with the playbook build_node_agent_image, on a base image of Debian's packages.

Needs neither a container engine nor an external registry; Debian's mirror and PyPI only the first time.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from .collection import TREE, library, run_playbook
from .files import digest, new_directory, write
from .registry import credentials
from .settings import CHECKOUT, Lab
from .tasks import Step

SOURCE = CHECKOUT / "images" / "node-agent"
REPOSITORY = "npuops/node-agent"
BASE_REPOSITORY = "lab/python"
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
    """Build the image unless the registry has it. What comes from the internet is kept in the cache."""
    login = credentials(lab)
    registry = library("_image.registry")
    client = registry.RegistryClient(login.address, login.username, login.password, plain_http=True)
    if _tag() in _tags(client):
        return
    request = {
        "npu_node_agent_image": reference(lab),
        "npu_node_agent_image_build": {
            "base": f"{lab.registry}/{BASE_REPOSITORY}:{_push_base(lab, client, step)}",
            "architectures": [ARCHITECTURES[platform.machine()]],
            "wheels": str(_wheels(lab, step)),
        },
        "npu_registry_username": login.username,
        "npu_registry_password": login.password,
        "npu_registry_plain_http": True,
    }
    step.say(f"building and pushing {REPOSITORY}:{_tag()}")
    variables = lab.state / "agent-image.json"
    write(variables, json.dumps(request, indent=2) + "\n", mode=0o600)
    run_playbook(lab, step, "build_node_agent_image", "-i", "localhost,", "-e", f"@{variables}")


def _tags(client: Any) -> list[str]:
    try:
        return client.tags(REPOSITORY)
    except library("_image.registry_errors").ImageNotFound:  # no repository yet
        return []


def _push_base(lab: Lab, client: Any, step: Step) -> str:
    """The tag of the base image, which is in the registry now."""
    tag = digest(Path(__file__))
    directory = lab.cache / "agent-base" / tag
    if not directory.is_dir():
        with new_directory(directory) as target:
            _build(target, step)
    oci = library("_image.oci")
    layer = oci.Layer(str(directory / "layer.tar.gz"), **json.loads((directory / "layer.json").read_text(encoding="utf-8")))
    settings = {"Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    image = oci.Image(client, BASE_REPOSITORY, tag, layer, ARCHITECTURES[platform.machine()], {}, settings)
    if image.reason():
        step.say(f"pushing {BASE_REPOSITORY}:{tag}")
        image.push()
    return tag


def _wheels(lab: Lab, step: Step) -> Path:
    """The directory in the cache with the agent's requirements."""
    lock = SOURCE / "requirements.lock"
    directory = lab.cache / "agent-wheels" / digest(lock)
    if not directory.is_dir():
        step.say("downloading the node agent's requirements")
        with new_directory(directory) as target:
            code = (
                "import pathlib, sys\n"
                "from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import wheels\n"
                "wheels.download(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))"
            )
            arguments = (lock, ARCHITECTURES[platform.machine()], target)
            step.run(CHECKOUT / ".venv" / "bin" / "python", "-c", code, *arguments, env={"PYTHONPATH": str(TREE)})
    return directory


def _tag() -> str:
    init = (SOURCE / "npu_node_agent" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.+)"', init)
    assert version
    builder = CHECKOUT / "plugins" / "plugin_utils" / "_agent_image"
    text = (SOURCE / "Containerfile").read_text(encoding="utf-8")
    own = [CHECKOUT / path for path in re.findall(r"plugins/module_utils/[\w/]+\.py", text)]
    parts = (SOURCE / "requirements.lock", SOURCE / "npuops-python", SOURCE / "npu_node_agent", *own, builder, Path(__file__))
    return f"{version[1]}-{digest(*parts)}"


def _build(target: Path, step: Step) -> None:
    root = target / "root"
    step.say("downloading packages of the base of the node agent's image")
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
    # Where the base image that users have has its Python.
    (root / "usr/local/bin").mkdir(parents=True)
    for name in (PYTHON, "python3", "python"):
        (root / "usr/local/bin" / name).symlink_to(f"../../bin/{PYTHON}")
    _compile(root, step)
    step.say("packing the base of the node agent's image")
    layer = library("_image.oci").write_layer(str(root), "", str(target / "layer.tar.gz"))
    write(target / "layer.json", json.dumps({name: getattr(layer, name) for name in ("digest", "size", "diff_id")}))
    shutil.rmtree(root)
    shutil.rmtree(debs)


def _compile(root: Path, step: Step) -> None:
    """Compile the standard library, with the Python that will run it; where the loader is, npuops-python knows."""
    runner = root / "usr/local/bin/npuops-python"
    shutil.copy2(SOURCE / "npuops-python", runner)
    # What is compiled says nothing of times: the same sources give the same image.
    step.run(
        runner,
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
        env={"PYTHONHASHSEED": "0"},
    )
    runner.unlink()
