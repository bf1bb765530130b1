# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What leaves a site in a bundle has no secret in it; everything else is still there to be read."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect.redaction import redact

S = "pl4nt3d-S3cret"

SECRETS = [
    "REGISTRY_PASSWORD=%s" % S,
    "Environment=\"A=b\" HUB_TOKEN=%s OTHER=seen" % S,
    "Environment=\"HUB_TOKEN=%s\"" % S,
    "export AWS_SECRET_ACCESS_KEY='%s x'" % S,
    "password: %s and more" % S,
    "password = \"%s\"" % S,
    "password = \"quoted \\\" %s\"" % S,
    "password = '''\nfirst %s\n'''" % S,
    'password = """\n%s"""' % S,
    "X-Auth-Token: %s" % S,
    "Authorization: Basic %s" % S,
    "authorization = [\"Basic x\", \"%s\"]" % S,
    "authorization = [\n\"x\",\n\"%s\",\n]" % S,
    "curl -H 'Authorization: Bearer %s' https://x" % S,
    "sent Bearer %s to the server" % S,
    "https://user:%s@registry.example.com/v2/" % S,
    "HTTPS_PROXY=http://proxy:%s@10.0.0.1:3128" % S,
    "HTTPS_PROXY=http://proxy:p@%s@10.0.0.1:3128" % S,
    json.dumps({"args": ["--token", S]}),
    json.dumps({"args": ["--v=2", "--client-secret", S, "--x"]}, indent=1),
    json.dumps({"data": json.dumps({"args": ["--api-key", S]})}),
    "kubelet --token %s --v=2" % S,
    "--client-secret=%s" % S,
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ%s.abc" % S,
    '{"auths": {"registry.example.com": {"auth": "%s"}}}' % S,
    json.dumps({"auths": {"a": {"x": S}, "b": {"y": S}}}, indent=1),
    json.dumps({"data": json.dumps({"token": S})}),
    json.dumps({"data": json.dumps({"data": json.dumps({"api_key": S})})}),
    json.dumps({"env": [{"name": "DB_PASSWORD", "value": S}]}),
    json.dumps({"env": [{"name": "DB_PASSWORD", "value": S}]}, indent=2),
    "env:\n- name: HUB_TOKEN\n  value: %s\n" % S,
    "token:\n  - %s\nother: seen" % S,
    "token: |\n  %s\n\n  %s\nother: seen" % (S, S),
    "credentials:\n- %s" % S,
    '[plugins."io.containerd.grpc.v1.cri".registry.configs."r".auth]\nusername = "u"\nidentity = "%s"\n' % S,
    '[host."https://r".header]\n  x-custom = ["%s"]\n' % S,
    "-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----" % S,
    "-----BEGIN PRIVATE KEY-----\n%s" % S,
    "pl4nt3dS3cret\npl4nt3dS3cret\n-----END PRIVATE KEY-----",
    "apiVersion: v1\nkind: Config\nusers:\n- user:\n    x: %s\n" % S,
    "kind: Secret\ndata:\n  x: %s\n" % S,
    json.dumps({"kind": "Secret", "data": {"x": S}}, indent=1),
    "client-key-data: %s" % S,
    "encryption_key = %s" % S,
    "&Container{Env:[]EnvVar{EnvVar{Name:DB_PASSWORD,Value:%s,ValueFrom:nil,},},}" % S,
    "EnvVar{Name:DB_PASSWORD,Value:\"a\" },} %s,ValueFrom:nil,}" % S,
    "EnvVar{Name:DB_PASSWORD,Value:first\n%s,ValueFrom:nil,}" % S,
    "HTTPHeader{Name:Authorization,Value:Basic %s,}" % S,
    "{Name:DB_PASSWORD Value:x %s ValueFrom:<nil>}" % S,
    "v1.EnvVar{Name:\"DB_PASSWORD\", Value:\"x %s\", ValueFrom:(*v1.EnvVarSource)(nil)}" % S,
    "password: \"first\n%s\"" % S,
    "password: \"first \\\" x\nsecond \\\" x\n%s\"" % S,
    "API_KEY='a\n%s'" % S,
    "token: \"a\nb\" other_token: \"c\n%s\"" % S,
    "password: 'it''s %s'" % S,
    json.dumps({"env": ["DB_PASSWORD=a %s" % S]}),
    "\"DB_PASSWORD='a' %s\"" % S,
    "[\"--password=%s\"]" % S,
    "[\"DB_PASSWORD=%s x\", \"x\"]" % S,
    "Environment=\"DB_PASSWORD=first\n%s\"" % S,
    "env:\n- name: HUB_TOKEN\n  value: |\n    %s\n" % S,
    "env:\n- name: HUB_TOKEN\n  value: \"first\n    %s\"\n" % S,
    "x-eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ%s.abc" % S,
]  # fmt: skip


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_removed(text):
    assert "pl4nt3d" in text and "pl4nt3d" not in redact(text) and "***" in redact(text)


KEPT = [
    "npu-smi info: 8 chips, health OK",
    "[  12.345678] hisi: davinci0 not ready, code=0x80E01801",
    "2026-11-26T12:00:00+0000 npu-a kubelet[1]: E1126 failed to get device: no such device",
    '{"automountServiceAccountToken": true, "node": "npu-a"}',
    "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token",
    'password_file = "/etc/npu/password"',
    "author: maintainers, keyboard=us, bypass=1",
    '[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n',
    "https://registry.example.com/v2/",
    "",
    "one\n\ntwo\n",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_is_kept(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('Environment="A=b" HUB_TOKEN=x OTHER=seen', "OTHER=seen"),
        ("token: |\n  x\nother: seen", "other: seen"),
        ("token:\n  - x\nother: seen", "other: seen"),
        ('[a.auth]\nx = "y"\n[b]\nz = "seen"', 'z = "seen"'),
        ("password = '''\nx\n'''\nz = 1", "z = 1"),
        ('{"token": "x", "node": "npu-a"}', '"node": "npu-a"'),
        ('"args": ["--token", "x", "--node", "npu-a"]', '"--node", "npu-a"'),
        ("2026-11-26T12:00:00+0000 a b: token: [cut off\n2026-11-26T12:00:01+0000 a b: seen", "b: seen"),
        ('I1126 12:00:00.1 secret="""cut off\nI1126 12:00:01.1 seen', "seen"),
        ("[   12.345678] token = {\n[   12.345679] seen", "seen"),
        ("[token]\n[INFO] HCCL: seen", "seen"),
        ('password = [\n"x"\n]\nz = 1', "z = 1"),
        ("EnvVar{Name:DB_PASSWORD,Value:x,ValueFrom:nil,},EnvVar{Name:A,Value:seen,ValueFrom:nil,}", "Name:A,Value:seen"),
        ("EnvVar{Name:DB_PASSWORD,Value:cut off\nI1126 12:00:01.1 seen", "seen"),
        ("HTTPHeader{Name:Authorization,Value:x,}\nseen", "seen"),
        ('password: "x\ny"\nz: 1', "z: 1"),
        ('password = "x\\\\"\nz = 1', "z = 1"),
        ('["DB_PASSWORD=x y", "OTHER=seen"]', '"OTHER=seen"'),
        ('["DB_PASSWORD=", "OTHER=seen"]\nz = 1', "z = 1"),
        ("- name: HUB_TOKEN\n  value: |\n    x\n- name: seen", "name: seen"),
        ('time="2026-11-26T12:00:00Z" token: "cut off\ntime="2026-11-26T12:00:01Z" msg=seen', "msg=seen"),
    ],
)
def test_what_follows_a_secret_is_kept(text, seen):
    assert seen in redact(text)


HOSTILE = [
    "token=" * 100000, "a" * 500000, "\\" * 500000, "name: x" + "\\" * 300000, 'name: "token"' * 40000, "[" * 500000,
    "token: [" * 60000, '"' * 500000, "://" * 200000, "x_token='" * 50000, "eyJ" * 150000, "-----BEGIN PRIVATE KEY-----" * 10000,
    "--x " * 100000, "token:\n" * 60000, "kind: Config " * 30000, "name: a " * 60000, "name: token" + " " * 400000, "a.-" * 150000,
    "token: [\"" + "\\" * 400000, "eyJaaaaaaaa-" * 40000, "token: [\"" + "\\\"" * 250000, "token: \"" + "\\\"" * 250000,
    "\"--token\", \"x\", " * 30000, "name: token, value: \"x\", " * 20000, "Name:TOKEN,Value:" * 30000, "token: \"\n" * 50000,
    "\"A_TOKEN=x" * 50000, ":" * 500000, "token: " + " " * 500000, "-----BEGIN " * 45000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_no_text_takes_long(text):
    """All of them are half a megabyte; a search that grows with the square of that takes hours."""
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 10
