# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The play of a rollout that stages, by itself, with the plan given: what is damaged on a host is found before any drain."""

from __future__ import annotations

import json
import os

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases

from support import controller
from support.host import driver_images, registry_server
from support.paths import CHECKOUT

REPOSITORY = "mlops/ascend-driver"
KERNEL = os.uname().release


@pytest.fixture
def registry():
    with registry_server.Registry() as server:
        yield server


@pytest.fixture
def release(tmp_path, registry):
    """(layout, name) of a release on this machine, as it was staged from the registry."""
    tree = driver_images.write_tree(tmp_path / "image" / "driver", kernel=KERNEL)
    digest = driver_images.push(registry, REPOSITORY, "t", tmp_path / "image")
    layout = releases.Layout(str(tmp_path / "Ascend"))
    name = layout.release_name("25.5.0", KERNEL, digest)
    files = {str(path.relative_to(tree)): path for path in tree.rglob("*") if path.is_file()}
    manifest = {
        "version": "25.5.0",
        "kernel": KERNEL,
        "digest": digest,
        "image": "%s/%s:t" % (registry.address, REPOSITORY),
        "modules": [],
        "files": {inside: releases.file_digest(str(path)) for inside, path in files.items()},
        "sizes": {inside: path.stat().st_size for inside, path in files.items()},
    }
    with layout.lock():
        directory = layout.new_directory()
        os.rename(str(tree), directory + "/driver")
        layout.commit(directory, name, manifest)
    return layout, name


def stage(tmp_path, layout, target, verdict="ready"):
    """What the play says, in check mode: this machine has no containerd. The host is this machine."""
    plays = yaml.safe_load((CHECKOUT / "playbooks" / "_rollout.yml").read_text(encoding="utf-8"))
    play = next(play for play in plays if play.get("name") == "Stage the driver on all hosts")
    play["hosts"] = "localhost"
    play["vars"] = {
        "__npu_plan": {"hosts": {"localhost": {"to": target, "upstream": target["image"], "verdict": verdict}}},
        "__npu_facts": {"npu": {"upgrade": {"staged": {name: {} for name in layout.releases()}}}},
        "__npu_upgrade": {"stage_parallel": 1},
        "npu_driver_root": layout.root,
        "npu_registry_plain_http": True,
    }
    play["tasks"].append({"ansible.builtin.debug": {"var": "__npu_staged"}})
    path = tmp_path / "playbook.json"
    path.write_text(json.dumps([play]).replace("../roles/", "%s/roles/" % CHECKOUT), encoding="utf-8")
    done = controller.run(["ansible-playbook", "-i", "localhost,", "-c", "local", "--check", str(path)], tmp_path, localhost=True)
    return " ".join(done.stdout.split()) + done.stderr


def to(name, image=None, digest=None):
    return {"version": "25.5.0", "release": name, "image": image, "digest": digest}


def flip(layout, name):
    path = layout.tree(name) + "/lib64/driver/libdcmi.so"
    os.chmod(path, 0o644)
    with open(path, "r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"X")


@pytest.mark.parametrize("named", ["by its image", "by its release"])
def test_a_flipped_byte_is_found_and_staged_again(tmp_path, registry, release, named):
    layout, name = release
    manifest = layout.manifest(name)
    target = to(name, manifest["image"], manifest["digest"]) if named == "by its image" else to(name)
    text = stage(tmp_path, layout, target)
    assert '"msg": "%s is staged"' % name in text, text
    flip(layout, name)
    text = stage(tmp_path, layout, target)
    assert "The staged driver is damaged: lib64/driver/libdcmi.so of release %s was changed" % name in text, text
    assert '"changed": true' in text and '"failed": false' in text, text


def test_a_previous_release_that_is_gone_is_found(tmp_path, release):
    layout, name = release
    os.unlink(layout.release_path(name) + "/manifest.json")
    text = stage(tmp_path, layout, to(name))
    assert "is incomplete on this host" in text and '"failed": true' in text, text


def test_a_reboot_that_is_certain_is_let_alone(tmp_path, release):
    layout, name = release
    flip(layout, name)
    assert '"skipped": true' in stage(tmp_path, layout, to(name), verdict="in-flight")
