# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes from a download site, and from sites that do not deliver it."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import http.server
import io
import ipaddress
import platform
import socket
import ssl
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.patience import PATIENCE

LAB_SOURCE = Path(__file__).resolve().parents[3] / "lab"
sys.path.insert(0, str(LAB_SOURCE))

from npulab import binaries, downloads, settings, versions  # noqa: E402
from npulab.tasks import Step, Stopped  # noqa: E402

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet")
WANTED = ("etcd", *PROGRAMS)
ARCHITECTURE = downloads.ARCHITECTURES[platform.machine()]
PATH = f"/v1.2.3/kubernetes-server-linux-{ARCHITECTURE}.tar.gz"


def make_archive():
    """As upstream's: programs, images and licences; and what no archive should have."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name in (*(f"kubernetes/server/bin/{program}" for program in PROGRAMS), "kubernetes/server/bin/kubeadm", "../etcd"):
            data = f"{name} of upstream".encode() * 1000
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return content.getvalue()


ARCHIVE = make_archive()


def checksum(data=ARCHIVE):
    return hashlib.sha512(data).hexdigest()


def release(data=ARCHIVE):
    return versions.Release("kubernetes", "1.2", "v1.2.3", {ARCHITECTURE: checksum(data)})


UNPINNED = dataclasses.replace(release(), sha512={})


class Site(http.server.BaseHTTPRequestHandler):
    """Each path of `server.files`: what a browser would get, or how the server misbehaves."""

    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.files.get(self.path)
        if answer is None:
            self.send_error(404)
        elif isinstance(answer, bytes):
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        else:
            answer(self)

    def redirect(self, url):
        self.send_response(302)
        self.send_header("Location", url)
        self.end_headers()

    def drip(self, before=b"HTTP/1.0 200 OK\r\n\r\n", byte=b"a"):
        """Never silent, and not done within a limit of one second."""
        self.wfile.write(before)
        for _unused in range(200):
            if not self.server.end.wait(0.05):
                self.wfile.write(byte)

    def pour(self):
        """Much, without saying how much."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(1 << 22))

    def hang(self, after=b""):
        self.wfile.write(after)
        self.server.end.wait(PATIENCE)

    def log_message(self, *_arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Site)
        self.files, self.asked, self.end = {PATH: ARCHIVE}, [], threading.Event()
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server_port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, *_arguments):
        """A client that leaves is what most tests are about."""

    def stop(self):
        self.end.set()
        self.shutdown()
        self.server_close()


@pytest.fixture(name="certificate", scope="module")
def _certificate(tmp_path_factory):
    """A file with a certificate for 127.0.0.1, which signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@pytest.fixture(name="site")
def _site(monkeypatch):
    """A mirror over http, which the lab uses."""
    server = Server()
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", f"{server.url}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.stop()


@pytest.fixture(name="secure")
def _secure(monkeypatch, certificate):
    """A site over https, which the lab uses and whose certificate this machine trusts. It publishes a checksum."""
    server = Server(certificate)
    server.files[f"{PATH}.sha512"] = checksum().encode()
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", server.url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.stop()


@pytest.fixture(name="step")
def _step(tmp_path):
    with Step("kubernetes-1.2", tmp_path / "log") as step:
        yield step


@pytest.fixture(name="target")
def _target(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def end_soon(monkeypatch, told):
    """A shorter limit for a server that reaches it, and for no other: the machine may be slow."""
    if told.startswith("timed out"):
        monkeypatch.setattr(downloads, "SILENCE", 0.3)
    if told.startswith("takes longer"):
        monkeypatch.setattr(downloads, "MOST_SECONDS", 1)
        monkeypatch.setattr(downloads, "CHECKSUM_SECONDS", 1)


def fetched(target):
    return {file.name for file in target.iterdir()}


def test_good_archive(site, target, step, capsys):
    assert downloads.fetch(release(), WANTED, target, step) == set(PROGRAMS)
    assert fetched(target) == set(PROGRAMS)  # nor kubeadm, nor the archive
    assert (target / "kubelet").read_text().startswith("kubernetes/server/bin/kubelet of upstream")
    assert (target / "kubelet").stat().st_mode & 0o777 == 0o755
    assert site.asked == [PATH]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda it: it.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\nhalf"), "ended after 4 of 1000 bytes"),
        (lambda it: it.wfile.write(b"\x1b[2J\r\n"), "?[2J"),
        (lambda it: it.hang(), "timed out"),
        (lambda it: it.hang(b"HTTP/1.0 200 OK\r\n\r\nsome"), "timed out"),
        (lambda it: it.drip(), "takes longer than 1 s"),
        (lambda it: it.drip(b""), "takes longer than 1 s"),
        (lambda it: it.drip(b"HTTP/1.0 302 Found\r\nLocation: "), "takes longer than 1 s"),
        (lambda it: it.drip(b"", b"HTTP/1.0 100 Continue\r\n\r\n"), "takes longer than 1 s"),
        (lambda it: it.pour(), "is larger than 64 KiB"),
        (lambda it: it.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 70000\r\n\r\nsome"), "is larger than 64 KiB"),
        (lambda it: it.redirect(PATH), "HTTP status 302"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_site_that_does_not_deliver(site, target, step, capsys, monkeypatch, answer, told):
    end_soon(monkeypatch, told)
    monkeypatch.setattr(downloads, "MOST_BYTES", 1 << 16)
    site.files[PATH] = answer
    begun = time.monotonic()
    assert downloads.fetch(release(), WANTED, target, step) == set()
    assert time.monotonic() - begun < PATIENCE / 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kubernetes-1.2: not downloaded: {site.url}{PATH}") and told in line
    assert fetched(target) == set()


def test_wrong_checksum_is_refused_loudly(site, target, step, capsys):
    other = release(b"other")
    assert downloads.fetch(other, WANTED, target, step) == set()
    (line,) = capsys.readouterr().err.splitlines()
    assert "REFUSED" in line and hashlib.sha512(ARCHIVE).hexdigest() in line and other.sha512[ARCHITECTURE] in line
    assert fetched(target) == set()


def test_no_such_version(site, target, step, capsys):
    assert downloads.fetch(dataclasses.replace(release(), version="v1.2.4"), WANTED, target, step) == set()
    assert "HTTP status 404" in capsys.readouterr().err


def test_unreachable(target, step, capsys, monkeypatch):
    with socket.socket() as taken:  # a port on which no process listens
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("NPU_LAB_DOWNLOADS", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert downloads.fetch(release(), WANTED, target, step) == set()
    (line,) = capsys.readouterr().err.splitlines()
    assert "refused" in line


def test_archive_that_is_none(site, target, step, capsys):
    site.files[PATH] = b"<html>sign in</html>"
    assert downloads.fetch(release(b"<html>sign in</html>"), WANTED, target, step) == set()
    assert "cannot be unpacked" in capsys.readouterr().err


@pytest.mark.parametrize("published", ["{}", "{}\n", "{}  {}\n", "{} *{}\r\n"])
def test_checksum_that_the_site_publishes(secure, target, step, capsys, published):
    secure.files[f"{PATH}.sha512"] = published.format(checksum(), PATH.rsplit("/", 1)[1]).encode()
    assert downloads.fetch(UNPINNED, WANTED, target, step) == set(PROGRAMS)
    assert fetched(target) == set(PROGRAMS)
    assert secure.asked == [f"{PATH}.sha512", PATH]
    assert capsys.readouterr().err == "kubernetes-1.2: downloaded Kubernetes v1.2.3: checksum from 127.0.0.1, not pinned\n"


def test_pinned_checksum_counts_more_than_the_site(secure, target, step, capsys):
    secure.files = {PATH: b"other", f"{PATH}.sha512": checksum(b"other").encode()}
    assert downloads.fetch(release(), WANTED, target, step) == set()
    assert secure.asked == [PATH]
    assert f"versions.toml says {checksum()}" in capsys.readouterr().err


def test_archive_that_is_not_what_its_site_says(secure, target, step, capsys):
    secure.files[f"{PATH}.sha512"] = checksum(b"other").encode()
    assert downloads.fetch(UNPINNED, WANTED, target, step) == set()
    (line,) = capsys.readouterr().err.splitlines()
    assert "REFUSED" in line and checksum() in line and f"127.0.0.1 says {checksum(b'other')}" in line
    assert fetched(target) == set()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "HTTP status 404"),
        (b"<html>sign in</html>", "is no SHA-512 checksum"),
        (b"", "is no SHA-512 checksum"),
        (checksum().encode()[1:], "is no SHA-512 checksum"),
        (checksum().encode() + b"0", "is no SHA-512 checksum"),
        (checksum().encode() + b"\n" + checksum(b"other").encode(), "is no SHA-512 checksum"),
        (checksum().encode() + b"  kubernetes-client-linux.tar.gz", "is no SHA-512 checksum"),
        (lambda it: it.hang(), "timed out"),
        (lambda it: it.drip(), "takes longer than 1 s"),
        (lambda it: it.pour(), "is larger than 1 KiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_site_without_a_usable_checksum(secure, target, step, capsys, monkeypatch, answer, told):
    end_soon(monkeypatch, told)
    secure.files[f"{PATH}.sha512"] = answer
    assert downloads.fetch(UNPINNED, WANTED, target, step) == set()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kubernetes-1.2: not downloaded: {secure.url}{PATH}.sha512") and told in line
    assert secure.asked == [f"{PATH}.sha512"]
    assert fetched(target) == set()


def test_certificate_that_is_not_trusted(secure, target, step, capsys, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    assert downloads.fetch(UNPINNED, WANTED, target, step) == set()
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err
    assert secure.asked == []


def test_http_mirror_says_no_checksum(site, target, step, capsys):
    site.files[f"{PATH}.sha512"] = checksum().encode()
    assert downloads.fetch(UNPINNED, WANTED, target, step) == set()
    (line,) = capsys.readouterr().err.splitlines()
    assert "no checksum of Kubernetes v1.2.3" in line and site.url in line and "begins with https://" in line
    assert site.asked == []


def test_only_pinned_releases(secure, target, step, capsys, monkeypatch):
    monkeypatch.setattr(downloads, "SITE", secure.url)
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", "pinned")
    assert downloads.fetch(UNPINNED, WANTED, target, step) == set()
    (line,) = capsys.readouterr().err.splitlines()
    assert "no checksum of Kubernetes v1.2.3" in line and "NPU_LAB_DOWNLOADS is 'pinned'" in line
    assert secure.asked == []
    assert downloads.fetch(release(), WANTED, target, step) == set(PROGRAMS)
    assert secure.asked == [PATH]


@pytest.mark.parametrize("redirected", [PATH, f"{PATH}.sha512"])
def test_redirect_from_https_to_http(secure, target, step, capsys, redirected):
    plain = Server()
    plain.files[f"{PATH}.sha512"] = checksum().encode()
    secure.files[redirected] = lambda it: it.redirect(f"{plain.url}{redirected}")
    try:
        assert downloads.fetch(UNPINNED, WANTED, target, step) == set()
    finally:
        plain.stop()
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{secure.url}{redirected} redirects to {plain.url}{redirected}" in line
    assert plain.asked == []
    assert fetched(target) == set()


def test_redirect_to_https(site, secure, target, step, monkeypatch):
    """As from Kubernetes' site to where its files are; also from http, with a pinned checksum."""
    for before in (site, secure):
        before.files["/mirror" + PATH] = lambda it: it.redirect(f"{secure.url}{PATH}")
        monkeypatch.setenv("NPU_LAB_DOWNLOADS", f"{before.url}/mirror")
        assert downloads.fetch(release(), WANTED, target, step) == set(PROGRAMS)


def test_step_that_is_stopped(site, target, step):
    site.files[PATH] = lambda it: (step.stop(), it.drip(b""))
    with pytest.raises(Stopped):
        downloads.fetch(release(), WANTED, target, step)
    assert fetched(target) == set()


def test_redirect_that_never_ends(site, target, step, monkeypatch):
    """What comes with a redirect is not read."""

    def redirect(it):
        it.wfile.write(b"HTTP/1.0 302 Found\r\nLocation: /real\r\n\r\n")
        it.hang()

    site.files.update({PATH: redirect, "/real": ARCHIVE})
    assert downloads.fetch(release(), WANTED, target, step) == set(PROGRAMS)


@pytest.mark.parametrize("value", ["", "off"])
def test_downloads_that_are_off(target, step, capsys, monkeypatch, value):
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", value)
    assert downloads.fetch(release(), WANTED, target, step) == set()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", ["file:///etc", "dl.example.org", "ftp://dl.example.org", "Pinned"])
def test_site_that_is_no_site(target, step, monkeypatch, value):
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", value)
    with pytest.raises(settings.LabError, match="NPU_LAB_DOWNLOADS"):
        downloads.fetch(release(), WANTED, target, step)


@pytest.fixture(name="lab")
def _lab(tmp_path, monkeypatch):
    """A lab with Kubernetes v1.2.3, and a compiler that writes to the file `built` what it is to build."""
    compiler = tmp_path / "bin" / "go"
    compiler.parent.mkdir()
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" != version ] || exec echo go version go1.99.0 linux/amd64\necho "$*" >>{tmp_path}/built\n'
        'while [ "$1" != -o ]; do shift; done\n: >"$2/server"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("NPU_LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NPU_LAB_CACHE", str(tmp_path / "cache"))
    newest = settings.current_lab()
    # What is compiled is that of the newest release.
    kubernetes = dataclasses.replace(newest.kubernetes, version="v1.2.3", sha512=release().sha512)
    return dataclasses.replace(newest, kubernetes=kubernetes)


def test_what_was_downloaded_is_not_compiled(site, lab, step, tmp_path, capsys):
    """etcd is not in the archive."""
    binaries.build(lab, binaries.kubernetes(lab), step)
    assert fetched(binaries.programs(lab, binaries.kubernetes(lab))) == set(WANTED)
    (built,) = (tmp_path / "built").read_text().splitlines()
    assert built.endswith("/ go.etcd.io/etcd/server/v3")
    told = f"kubernetes-1.2: compiling etcd: usually takes a minute on 2 cores; log: {tmp_path}/log\n"
    assert capsys.readouterr().err == told


def test_compiling_says_what_and_how_long(site, lab, step, tmp_path, capsys):
    site.files = {}
    for module in (binaries.REGISTRY, binaries.kubernetes(lab)):
        binaries.build(lab, module, step)
    registry, reason, kubernetes = capsys.readouterr().err.splitlines()
    assert registry == f"kubernetes-1.2: compiling registry: usually takes a minute on 2 cores; log: {tmp_path}/log"
    assert "not downloaded" in reason
    assert kubernetes == (
        f"kubernetes-1.2: compiling {', '.join(WANTED)}: usually takes {binaries.kubernetes(lab).usually} on 2 cores; log: {tmp_path}/log"
    )


def test_checksums_are_of_sha512():
    for known in versions.releases():
        assert all(len(bytes.fromhex(checksum)) == 64 for checksum in known.sha512.values()), known.name
        assert set(known.sha512) in (set(), {"amd64", "arm64"}), known.name
