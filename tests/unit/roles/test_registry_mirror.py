# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With npu_registry_mirror, no image is pulled from anywhere else: each place that names one, and that there is no other."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.modules import npu_driver_stage

from support.fleet.preflight import DIGEST, host, only
from support.kube.manifests import AGENT, CLUSTERD, EXPORTER, NODED, OPERATOR, PLUGIN, VOLCANO, render_all
from support.paths import CHECKOUT

MIRROR = "registry.site.example/npuops"
TEMPLATES = {
    "npu_ascend_operator/templates/ascend-operator.yaml.j2": OPERATOR,
    "npu_clusterd/templates/clusterd.yaml.j2": CLUSTERD,
    "npu_device_plugin/templates/device-plugin.yaml.j2": PLUGIN,
    "npu_exporter/templates/npu-exporter.yaml.j2": EXPORTER,
    "npu_node_agent/templates/node-agent.yaml.j2": AGENT,
    "npu_noded/templates/noded.yaml.j2": NODED,
    "npu_volcano/templates/volcano.yaml.j2": VOLCANO,
}
# Modules of the playbooks and roles that pull an image; npu_mirror also reads the registries that the names have.
PULLING = {"ascend_docker_runtime_package", "npu_accept_node", "npu_driver_stage", "npu_python", "npu_mirror"}
# They push, and are used where the Internet is.
PUSHING = {"npu_driver_image_build", "npu_node_agent_image_build"}


def test_these_are_all_templates_with_images():
    found = {
        path.relative_to(CHECKOUT / "roles").as_posix()
        for path in (CHECKOUT / "roles").glob("*/templates/**/*")
        if path.is_file() and re.search(r"^\s*-? *image:", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found == set(TEMPLATES)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("mirror", [MIRROR, {"registry.example": MIRROR}])
def test_each_container_comes_from_the_mirror(template, mirror):
    role, dummy, name = template.partition("/templates/")
    objects = render_all(role, name, dict(TEMPLATES[template], npu_registry_mirror=mirror))
    pods = [item["spec"]["template"]["spec"] for item in objects if item["kind"] in ("DaemonSet", "Deployment")]
    images = [container["image"] for pod in pods for container in pod["containers"] + pod.get("initContainers", [])]
    assert images and all(image.startswith(MIRROR + "/") for image in images), images


def tasks(found):
    """All tasks of a playbook or a task file, also those in blocks."""
    for item in found or []:
        yield item
        for key in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
            yield from tasks(item.get(key))


def test_each_task_that_pulls_an_image_has_the_mirror():
    seen = set()
    for path in [*(CHECKOUT / "playbooks").rglob("*.yml"), *(CHECKOUT / "roles").glob("*/tasks/*.yml")]:
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            for module in (key.rpartition(".")[2] for key in task if key.startswith("npuops.ascend.")):
                arguments = task["npuops.ascend." + module] or {}
                if "registry_username" in arguments and module not in PUSHING:
                    assert "npu_registry_mirror" in arguments.get("registry_mirror", ""), (path.name, task["name"])
                    seen.add(module)
    assert seen == PULLING


def test_preflight_asks_the_mirror():
    asked = []

    def resolve(reference, config, machine):
        asked.append(reference)
        return DIGEST

    verdict = only(host(driver_version="25.5.0", registry_mirror=MIRROR), resolve=resolve)
    assert asked == [MIRROR + "/mlops/ascend-driver:25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"]
    assert verdict.image == asked[0] and MIRROR in verdict.line()
    assert verdict.result()["upstream"].startswith("registry.example/mlops/ascend-driver:25.5.0-910b")
    wrong = only(host(driver_version="25.5.0", registry_mirror="https://x"), resolve=resolve)
    assert "npu_registry_mirror names 'https://x'" in "; ".join(wrong.reasons)


def test_a_release_is_staged_again_through_another_mirror(tmp_path):
    """It is recorded by its name upstream, whatever mirror it came through."""
    upstream = "registry.example/mlops/ascend-driver:25.5.0-910b"
    unset = ("registry_username", "registry_password", "registry_ca_file", "path", "containerd_address", "ctr", "package")
    options = dict.fromkeys(unset) | {
        "source": "image", "image": upstream, "digest": DIGEST, "version": "25.5.0", "root": str(tmp_path), "kernel": "6.6",
        "registry_plain_http": False, "registry_mirror": MIRROR, "timeout": 1, "verify": True,
    }  # fmt: skip
    first = npu_driver_stage.stager_of(options)
    assert str(first.reference) == MIRROR + "/mlops/ascend-driver:25.5.0-910b"
    release = tmp_path / "releases" / "25.5.0-6.6"
    (release / "driver").mkdir(parents=True)
    manifest = {"image": str(first.upstream), "digest": DIGEST, "version": "25.5.0", "kernel": "6.6", "files": {}, "sizes": {}}
    (release / "manifest.json").write_text(json.dumps(manifest))
    for mirror, name in ((None, upstream), ("other.example/x", "other.example/x/mlops/ascend-driver:25.5.0-910b")):
        again = npu_driver_stage.of_release(dict(options, image=None, release=release.name, registry_mirror=mirror))
        assert str(npu_driver_stage.stager_of(again).reference) == name
