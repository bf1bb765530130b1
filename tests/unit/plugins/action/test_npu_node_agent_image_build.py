# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with real registries."""

from __future__ import annotations

import tempfile
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_node_agent_image_build import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._agent_image import program

from support.host import agent_images, registry_server


@pytest.fixture
def registry():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def mirror():
    with registry_server.Registry(auth="token", username="reader", password="another") as server:
        yield server


@pytest.fixture
def run(registry, tmp_path, monkeypatch):
    """Run the module; returns its result."""
    packages = agent_images.write_packages(tmp_path / "packages")
    lock = tmp_path / "requirements.lock"
    agent_images.write_lock(lock, packages)
    monkeypatch.setattr(program, "REQUIREMENTS", lock)

    def act(check_mode=False, **options):
        action = ActionModule.__new__(ActionModule)
        action._task = types.SimpleNamespace(check_mode=check_mode)
        options = {
            "image": registry.address + "/npuops/node-agent:0.1.0",
            "base": registry.address + "/mirror/python:3.11",
            "wheels": str(packages),
            "registry_username": registry.username,
            "registry_password": registry.password,
            "registry_plain_http": True,
            **options,
        }
        checked = ArgumentSpecValidator(ActionModule.ARGUMENTS).validate(options)
        assert not checked.error_messages
        return action.act(checked.validated_parameters)

    return act


def test_build_and_again(run, registry):
    digest = agent_images.put_base(registry)
    name = registry.address + "/npuops/node-agent:0.1.0"
    before = dict(registry.manifests), dict(registry.blobs)
    planned = run(check_mode=True)
    assert planned["changed"] and planned["msg"] == name + " does not exist"
    assert (registry.manifests, registry.blobs) == before
    built = run()
    assert built == planned
    assert built["base"] == "%s/mirror/python:3.11@%s" % (registry.address, digest)
    assert [one["platform"] for one in built["platforms"]] == ["linux/amd64", "linux/arm64"]
    assert built["digest"] == registry_server.sha256(registry.manifests[("npuops/node-agent", "0.1.0")][0])
    again = run()
    assert again == dict(built, changed=False, msg=name + " is up to date")


def test_the_base_image_in_another_registry(run, registry, mirror):
    agent_images.put_base(mirror)
    base = {"base": mirror.address + "/mirror/python:3.11", "base_plain_http": True}
    with pytest.raises(
        NpuError, match="The base image %s/mirror/python:3.11 cannot be read: .* an anonymous user .*base_username" % mirror.address
    ):
        run(**base)
    built = run(**base, base_username="reader", base_password="another")
    assert not run(**base, base_username="reader", base_password="another")["changed"]
    # The same base image from a mirror gives the same image.
    agent_images.put_base(registry)
    assert run()["digest"] == built["digest"]
    # Neither registry sees the credentials of the other.
    sent = {header for _method, _path, header in mirror.requests if header and header.startswith("Basic ")}
    assert len(sent) == 1 and not sent & {header for _method, _path, header in registry.requests}


def test_a_registry_that_is_not_there(run, registry):
    agent_images.put_base(registry)
    with pytest.raises(NpuError, match="The base image 127.0.0.1:1/python:3.11 cannot be read: .*127.0.0.1:1 refused"):
        run(base="127.0.0.1:1/python:3.11", base_plain_http=True)
    with pytest.raises(NpuError, match="^Registry 127.0.0.1:1 cannot be reached: connection to 127.0.0.1:1 refused"):
        run(
            image="127.0.0.1:1/node-agent:1", base_username=registry.username, base_password=registry.password, base_plain_http=True
        )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"registry_password": "wrong"}, "does not let user 'alice' read mirror/python. Check npu_registry_username"),
        ({"image": "r.example/agent@sha256:" + "a" * 64}, "it must be registry, repository and tag"),
        ({"image": "r.example/Agent:1"}, "not a valid"),
        ({"architectures": []}, "architectures is empty"),
    ],
)
def test_bad_input(run, registry, options, message):
    agent_images.put_base(registry)
    with pytest.raises(NpuError, match=message):
        run(**options)
    assert ("npuops/node-agent", "0.1.0") not in registry.manifests


def test_no_directory_for_the_files(run, registry, tmp_path, monkeypatch):
    agent_images.put_base(registry)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(NpuError, match=r"cannot be built in \$TMPDIR on the controller: No such file .*%s/none" % tmp_path):
        run()
