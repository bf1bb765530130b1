# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No diff and no complaint shows what is none of ours, however the file is laid out."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_secrets, containerd_config, containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.paths import UNIT

PROBE = UNIT / "fixtures" / "containerd" / "probes" / "j01-inline-password"
CRI = 'plugins."io.containerd.grpc.v1.cri"'
# In each a secret has this in it, wherever it stands.
SECRET = "s3cr"
LAYOUTS = [
    '[plugins]\n"io.containerd.grpc.v1.cri" = { enable_cdi = false, registry = { auth = { password = "s3cret" } } }\n',
    '[plugins]\n"io.containerd.grpc.v1.cri" = { x = "s3cret, enable_cdi = false, s3cret", enable_cdi = false }\n',
    '[plugins]\n"io.containerd.grpc.v1.cri" = { auth = ["Basic s3cret",\n  "s3cret2",\n], enable_cdi = false, y = "s3cret" }\n',
    'plugins = { "io.containerd.grpc.v1.cri" = { identitytoken = """s3cret""", cdi_spec_dirs = [] } } # s3cret\n',
    "[%s]\n  password = 's3cret'\n  enable_cdi = false # password: s3cret\n  auth = 's3cret'\n" % CRI,
    "[%s]\r\n  enable_cdi = false\r\n  cdi_spec_dirs = [\r\n    # auth = s3cret\r\n  ] # token s3cret\r\n" % CRI,
    '%s = { enable_cdi = false, registry.headers.X-Meta-Auth = ["s3cret"] }\n' % CRI,
    '%s.enable_cdi = false\n%s.registry.auths."a".auth = "s3cret"\n' % (CRI, CRI),
    '[[x]]\n  password = "s3cret"\n[%s] # auth = "s3cret"\n' % CRI,
    '[%s]\n  x = "s3cret"\n' % CRI * 1 + "".join('[a%d]\n  x = "s3cret"\n' % number for number in range(400)),
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_diff_has_our_keys_and_nothing_else(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_bytes(("version = 2\n" + text if not text.startswith("version") else text).encode())
    files = containerd_config.load(str(path))
    for edit in containerd_config.proposals(str(path), files)[:1]:
        for shown in (edit.diff(), containerd_config.Edit(edit.path, edit.after, edit.before).diff()):
            assert "enable_cdi = true" in shown or "cdi_spec_dirs" in shown
            assert SECRET not in shown


def test_the_inline_table_of_the_probe():
    path = str(PROBE / "config.toml")
    edit = containerd_config.proposals(path, containerd_config.load(path))[0]
    name = '"io.containerd.grpc.v1.cri"'
    assert edit.diff() == (
        "--- %s\n+++ %s\n@@ -3 +3 @@\n-%s = { ... }\n+%s = { enable_cdi = true, ... }\n" % (path, path, name, name)
    )


def test_a_comment_of_ours_is_shown():
    diff = config_secrets.diff("x", "[a] # b\n", "[a] # b\n  enable_cdi = true # until the NPU nodes arrive\n", ("enable_cdi",))
    assert diff == "--- x\n+++ x\n@@ -1,0 +2 @@\n+  enable_cdi = true # until the NPU nodes arrive\n"


@pytest.mark.parametrize(
    "source, complaint",
    [
        ('auth.password = ["hunter2 secret", 3]\n', "(3, 1): Can't convert [hunter2 secret 3] to a slice"),
        ('password "hunter2secret"\n[x\n', 'expected =, but got "hunter2sec"... instead'),
        ("  token = hunter2\n", "invalid value hunter2"),
        ("headers = { Authorization = ['Basic hunter2='] }\n", "bad header hunter2="),
        ('x.identitytoken = """\nhunter2"""\n', "unexpected \nhunter2"),
        ('# auth = "hunter2\n', "hunter2"),
        ("password = [\n  # the new one\n  'hunter2',\n", "expected ], but got 'hunter2',"),
    ],
)
def test_a_complaint_quotes_no_secret(source, complaint):
    masked = config_secrets.mask(complaint, ["version = 2\n", source])
    assert "hunter2" not in masked and "***" in masked


def test_a_complaint_says_what_it_says():
    source = '[x]\n  key_file = "/etc/containerd/key.pem"\n  insecure_skip_verify = true\n  password = "true"\n'
    complaint = "load /etc/containerd/config.toml: key_file: (3, 4) is true, not a string"
    assert config_secrets.mask(complaint, [source]) == complaint


def test_what_containerd_says_of_its_file_is_masked(tmp_path):
    """containerd 1.7 quotes values that it cannot convert. Also where the secret stands in an imported file."""
    (tmp_path / "b.toml").write_text('password = ["hunter2secret"]\n')
    (tmp_path / "config.toml").write_text('imports = ["*.toml"]\n')
    program = tmp_path / "containerd"
    program.write_text('#!/bin/sh\necho "Can\'t convert $(cat %s/b.toml)" >&2\nexit 1\n' % tmp_path)
    program.chmod(0o755)
    daemon = containerd_runtime.Daemon(1, str(program), str(tmp_path / "config.toml"), True, None, None)
    with pytest.raises(NpuError, match=r"Can't convert .*\*\*\*") as caught:
        daemon.dump()
    assert "hunter2" not in caught.value.message
