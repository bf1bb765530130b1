# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of Kubernetes' own example of a DRA driver, for tests that ask for it: one static program."""

from __future__ import annotations

import json
import platform
import re
import shutil

from . import binaries
from .agent_image import ARCHITECTURES
from .collection import library
from .files import digest, new_directory, write
from .registry import credentials
from .settings import Lab
from .tasks import Step

MODULE = binaries.Module("dra-driver", "")
REPOSITORY = "lab/dra-driver"
PROGRAM = "test-driver"


def push_dra_driver(lab: Lab, step: Step) -> str:
    """Build the image unless the cache has it, push it unless the registry does; its reference."""
    binaries.build(lab, MODULE, step)
    programs = binaries.programs(lab, MODULE)
    directory = lab.cache / "dra-driver" / programs.name
    oci, registry = library("_image.oci"), library("_image.registry")
    if not directory.is_dir():
        with new_directory(directory) as target:
            step.say("packing the image")
            root = target / "root"
            for name in ("dev", "proc", "sys", "tmp", "var/run"):
                (root / name).mkdir(parents=True)
            shutil.copy2(programs / PROGRAM, root / PROGRAM)
            layer = oci.write_layer(str(root), "", str(target / "layer.tar.gz"))
            write(target / "layer.json", json.dumps({name: getattr(layer, name) for name in ("digest", "size", "diff_id")}))
            shutil.rmtree(root)
    layer = oci.Layer(str(directory / "layer.tar.gz"), **json.loads((directory / "layer.json").read_text(encoding="utf-8")))
    login, tag = credentials(lab), f"{version()}-{digest(layer.digest)}"
    client = registry.RegistryClient(login.address, login.username, login.password, plain_http=True)
    labels = {"org.opencontainers.image.title": "Kubernetes' DRA test driver", "org.opencontainers.image.version": version()}
    settings = {"Entrypoint": [f"/{PROGRAM}"]}
    image = oci.Image(client, REPOSITORY, tag, layer, ARCHITECTURES[platform.machine()], labels, settings)
    if image.reason():
        step.say(f"pushing {REPOSITORY}:{tag}")
        image.push()
    return f"{lab.registry}/{REPOSITORY}:{tag}"


def version() -> str:
    """Of the Kubernetes that it is a part of."""
    text = (MODULE.source / "go.mod").read_text(encoding="utf-8")
    match = re.search(r"^(?:require |\t)k8s\.io/kubernetes (v\S+)", text, re.MULTILINE)
    assert match
    return match[1]
