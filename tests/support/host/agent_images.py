# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base images and wheels for tests of the node agent's image. Nothing in them runs."""

from __future__ import annotations

import hashlib
import json
import zipfile

from ansible_collections.npuops.ascend.plugins.module_utils._image import index, manifests

from support.host import registry_server

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def put_base(registry, architectures=tuple(MACHINES), tag="3.11", layer_type=manifests.OCI_LAYER, python="3.11.14", variant=None):
    """A base image in the registry, as an index; returns its digest."""
    entries = []
    for architecture in architectures:
        layer = ("the Python of %s" % architecture).encode("ascii")
        platform = {"architecture": architecture, "os": "linux"}
        if variant:
            platform["variant"] = variant
        config = {
            **platform,
            "config": {
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHON_VERSION=" + python, "PYTHONUNBUFFERED=0"],
                "Cmd": ["python3"],
                "Labels": {"of": "base"},
            },
            "rootfs": {"type": "layers", "diff_ids": [registry_server.sha256(b"unpacked " + layer)]},
            "history": [{"created_by": "debootstrap"}],
        }
        config = json.dumps(config).encode("ascii")
        manifest = {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_MANIFEST,
            "config": {"mediaType": manifests.OCI_CONFIG, "digest": registry.put_blob(config), "size": len(config)},
            "layers": [{"mediaType": layer_type, "digest": registry.put_blob(layer), "size": len(layer)}],
        }
        digest = registry.put_manifest("mirror/python", tag, manifest)
        entries.append(index.entry(manifests.Descriptor(digest, manifests.OCI_MANIFEST, 1), platform))
    return registry.put_manifest("mirror/python", tag, index.content(entries), manifests.OCI_INDEX)


def wheel(directory, name, version, tags, files):
    """A wheel, as pip reads it."""
    path = directory / ("%s-%s-%s.whl" % (name, version, tags))
    info = "%s-%s.dist-info" % (name, version)
    content = {
        **files,
        info + "/METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version),
        info + "/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: %s\n" % tags,
        info + "/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in content.items():
            archive.writestr(zipfile.ZipInfo(inside), text)
    return path


def write_packages(directory):
    """Wheels of two packages, one of them with a program for each architecture; returns the directory."""
    directory.mkdir()
    wheel(directory, "grpclib", "0.4.9", "py3-none-any", {"grpclib/__init__.py": "", "grpclib-0.4.9.data/scripts/x": "#!python"})
    for machine in MACHINES.values():
        tags = "cp311-cp311-manylinux2014_%s.manylinux_2_17_%s" % (machine, machine)
        wheel(directory, "multidict", "7.2.1", tags, {"multidict/fast.so": machine, "../outside": "x"})
    # Not asked for: another version, other platforms.
    wheel(directory, "multidict", "7.2.2", "py3-none-any", {"multidict/__init__.py": ""})
    wheel(directory, "multidict", "7.2.1", "cp311-cp311-musllinux_1_2_x86_64", {"multidict/fast.so": "musl"})
    return directory


def write_lock(lock, packages):
    lines = ["# a comment"]
    for start in ("grpclib-0.4.9", "multidict-7.2.1"):
        hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(packages.glob(start + "*"))]
        lines.append(start.replace("-", "==") + "".join(" --hash=sha256:" + one for one in hashes))
    lock.write_text("\n".join(lines) + "\n")
