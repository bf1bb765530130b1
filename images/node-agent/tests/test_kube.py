# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTPS to the API server: certificate, token, and what goes wrong."""

from __future__ import annotations

import ssl
import subprocess

import pytest
from api_server import ApiServer

from npu_node_agent.kube import Api, ApiError, in_cluster


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    key, crt = directory / "tls.key", directory / "tls.crt"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=test",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            crt,
        ],
        check=True,
        capture_output=True,
    )
    return key, crt


@pytest.fixture
def server(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    server = ApiServer(context)
    yield server
    server.stop()


def test_token_is_read_for_every_request(server, certificate, tmp_path):
    token = tmp_path / "token"
    token.write_text("first\n")
    api = Api(server.url, str(token), str(certificate[1]))
    assert api.request("GET", "/api/v1/nodes/node-1")["metadata"]["name"] == "node-1"
    token.write_text("second")
    api.request("GET", "/api/v1/nodes/node-1")
    assert [headers["Authorization"] for headers in server.headers] == ["Bearer first", "Bearer second"]


def test_no_token_without_encryption(tmp_path):
    (tmp_path / "token").write_text("secret")
    server = ApiServer()
    try:
        Api(server.url, str(tmp_path / "token"), "").request("GET", "/api/v1/nodes/node-1")
        assert "Authorization" not in server.headers[0]
    finally:
        server.stop()


def test_foreign_certificate(server, tmp_path):
    (tmp_path / "token").write_text("secret")
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        Api(server.url, str(tmp_path / "token"), None).request("GET", "/api/v1/nodes/node-1")
    assert not server.requests


def test_refusal_carries_the_servers_words(server, certificate, tmp_path):
    (tmp_path / "token").write_text("x")
    with pytest.raises(ApiError, match="404: not found") as raised:
        Api(server.url, str(tmp_path / "token"), str(certificate[1])).request("GET", "/api/v1/namespaces/default/events/no")
    assert raised.value.status == 404


def test_nobody_there(tmp_path):
    with pytest.raises(OSError):
        Api("http://127.0.0.1:1", "", "").request("GET", "/")


def test_in_cluster():
    assert in_cluster({}) == ""
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}) == "https://10.96.0.1:443"
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}) == "https://[fd00::1]:6443"
