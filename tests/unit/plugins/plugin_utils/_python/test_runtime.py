# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._python import runtime as python_runtime

from support.host.registry_server import Registry

IMAGE = "registry.example.com/npuops/node-agent:0.1.0"


def test_each_reference_has_a_name_of_its_own():
    digest = "registry.example.com/npuops/node-agent@sha256:" + "a" * 64
    names = {python_runtime.name_of(image) for image in (IMAGE, IMAGE + "1", "other.example.com/npuops/node-agent:0.1.0", digest)}
    assert len(names) == 4
    assert python_runtime.name_of(IMAGE) == python_runtime.name_of(IMAGE)
    assert python_runtime.name_of(IMAGE).startswith("0.1.0-")
    assert python_runtime.name_of(digest).startswith("a" * 12 + "-")


def test_whatever_the_variables_hold_the_shell_gets_it():
    nasty = "a'b\"c$(touch /x)`x`\nd\\"
    text = python_runtime.script_for('printf %s "$hosts_toml"', "bring", hosts_toml=nasty)
    assert subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=True).stdout == nasty


def test_what_the_host_says_is_found_among_other_words():
    host = python_runtime.PythonOnHost("Welcome\r\nnpuops-python: current=1-a\r\nnpuops-python: trace=/etc/cdi\n")
    assert (host.current, host.traces, host.answered) == ("1-a", ["/etc/cdi"], True)
    assert not python_runtime.PythonOnHost("Welcome\n").answered
    assert python_runtime.PythonOnHost("npuops-python: current=\n").current is None


@pytest.mark.parametrize(
    ("status", "output", "told"),
    [
        (10, "", "it has no ctr"),
        (11, "", "containerd is not running"),
        (12, "ctr: failed to resolve: r/a: not found", "The registry no longer has %s" % IMAGE),
        (12, "unexpected status: 401 Unauthorized", "The registry did not let containerd pull %s" % IMAGE),
        (13, "cp: write error: No space left on device", "is full"),
        (14, "Permission denied", "must not be mounted noexec"),
        (15, "another run has been installing it", "Wait until it ends"),
        (1, "sh: something", "sh: something"),
    ],
)
def test_failures_say_what_to_do(status, output, told):
    message = python_runtime.failure(status, output, IMAGE).message
    assert message.startswith("Python could not be installed on this host") and told in message


def test_a_failure_never_shows_the_credentials():
    toml = '  [host."http://r".header]\n    Authorization = "Basic c2VjcmV0"'
    secrets = python_runtime.secrets_of(toml)
    message = python_runtime.failure(12, "bad header: Basic c2VjcmV0 / c2VjcmV0", IMAGE, secrets).message
    assert "c2VjcmV0" not in message


def test_credentials_go_to_their_own_registry_only():
    with Registry(auth="basic") as registry:
        digest = registry.put_manifest("npuops/node-agent", "1", {"schemaVersion": 2})
        image = "%s/npuops/node-agent:1" % registry.address
        login = {"username": registry.username, "password": registry.password, "plain_http": True}
        found = python_runtime.pull_variables(image, meant_for="%s/drivers" % registry.address, **login)
        assert found["image"] == "%s/npuops/node-agent@%s" % (registry.address, digest)
        assert "Authorization" in found["hosts_toml"] and found["registry"] == registry.address
        with pytest.raises(NpuError):
            # Neither the password nor plain HTTP is meant for this one.
            python_runtime.pull_variables(image, meant_for="other.example.com/drivers", **login)
