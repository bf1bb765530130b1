# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes from a download site, and from sites that do not deliver it."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import io
import platform
import socket
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from support.patience import PATIENCE

LAB_SOURCE = Path(__file__).resolve().parents[3] / "lab"
sys.path.insert(0, str(LAB_SOURCE))

from npulab import binaries, downloads, settings, versions  # noqa: E402
from npulab.tasks import Step  # noqa: E402

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


def release(data=ARCHIVE):
    return versions.Release("kubernetes", "1.2", "v1.2.3", {ARCHITECTURE: hashlib.sha512(data).hexdigest()})


class Site(http.server.BaseHTTPRequestHandler):
    """What `server.behaviour` says."""

    def do_GET(self):
        behaviour = self.server.behaviour
        self.server.asked.append(self.path)
        if behaviour == "hangs before the answer":
            self.server.end.wait(PATIENCE)
            return
        if self.path != PATH:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(ARCHIVE)))
        self.end_headers()
        if behaviour == "hangs in the middle":
            self.wfile.write(ARCHIVE[:100])
            self.wfile.flush()
            self.server.end.wait(PATIENCE)
        elif behaviour == "drips":
            for byte in ARCHIVE:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if self.server.end.wait(0.05):
                    return
        else:
            self.wfile.write(ARCHIVE[: len(ARCHIVE) // 2] if behaviour == "truncated" else ARCHIVE)

    def log_message(self, *_arguments):
        pass


@pytest.fixture(name="site")
def _site(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.behaviour, server.asked, server.end = "good", [], threading.Event()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(downloads, "SILENCE", 0.3)
    yield server
    server.end.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(name="step")
def _step(tmp_path):
    with Step("kubernetes-1.2", tmp_path / "log") as step:
        yield step


@pytest.fixture(name="target")
def _target(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def fetched(target):
    return {file.name for file in target.iterdir()}


def test_good_archive(site, target, step, capsys):
    assert downloads.fetch(release(), WANTED, target, step) == set(PROGRAMS)
    assert fetched(target) == set(PROGRAMS)  # nor kubeadm, nor the archive
    assert (target / "kubelet").read_text().startswith("kubernetes/server/bin/kubelet of upstream")
    assert (target / "kubelet").stat().st_mode & 0o777 == 0o755
    assert site.asked == [PATH]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ("truncated", "ended after"),
        ("hangs before the answer", "timed out"),
        ("hangs in the middle", "timed out"),
    ],
)
def test_site_that_does_not_deliver(site, target, step, capsys, behaviour, told):
    site.behaviour = behaviour
    begun = time.monotonic()
    assert downloads.fetch(release(), WANTED, target, step) == set()
    assert time.monotonic() - begun < PATIENCE / 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("kubernetes-1.2: compiling: http://127.0.0.1:") and told in line
    assert fetched(target) == set()


def test_wrong_checksum_is_refused_loudly(site, target, step, capsys):
    other = release(b"other")
    assert downloads.fetch(other, WANTED, target, step) == set()
    (line,) = capsys.readouterr().out.splitlines()
    assert "REFUSED" in line and hashlib.sha512(ARCHIVE).hexdigest() in line and other.sha512[ARCHITECTURE] in line
    assert fetched(target) == set()


def test_no_such_version(site, target, step, capsys):
    assert downloads.fetch(dataclasses.replace(release(), version="v1.2.4"), WANTED, target, step) == set()
    assert "HTTP status 404" in capsys.readouterr().out


def test_unreachable(target, step, capsys, monkeypatch):
    with socket.socket() as taken:  # a port on which nobody listens
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("NPU_LAB_DOWNLOADS", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert downloads.fetch(release(), WANTED, target, step) == set()
    (line,) = capsys.readouterr().out.splitlines()
    assert "refused" in line


def test_too_slow_and_too_large(site, target, step, capsys, monkeypatch):
    site.behaviour = "drips"
    monkeypatch.setattr(downloads, "MOST_SECONDS", 0.5)
    assert downloads.fetch(release(), WANTED, target, step) == set()
    monkeypatch.setattr(downloads, "MOST_BYTES", len(ARCHIVE) - 1)
    assert downloads.fetch(release(), WANTED, target, step) == set()
    slow, large = capsys.readouterr().out.splitlines()
    assert "takes longer than" in slow and "is larger than" in large


def test_archive_that_is_none(site, target, step, capsys, monkeypatch):
    monkeypatch.setitem(globals(), "ARCHIVE", b"<html>sign in</html>")
    assert downloads.fetch(release(b"<html>sign in</html>"), WANTED, target, step) == set()
    assert "cannot be unpacked" in capsys.readouterr().out


def test_without_a_checksum_nothing_is_asked(site, target, step, capsys):
    assert downloads.fetch(dataclasses.replace(release(), sha512={}), WANTED, target, step) == set()
    assert "no checksum of Kubernetes v1.2.3" in capsys.readouterr().out
    assert site.asked == []


@pytest.mark.parametrize("value", ["", "off"])
def test_downloads_that_are_off(target, step, capsys, monkeypatch, value):
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", value)
    assert downloads.fetch(release(), WANTED, target, step) == set()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", ["file:///etc", "dl.example.org", "ftp://dl.example.org"])
def test_site_that_is_no_site(target, step, monkeypatch, value):
    monkeypatch.setenv("NPU_LAB_DOWNLOADS", value)
    with pytest.raises(settings.LabError, match="NPU_LAB_DOWNLOADS"):
        downloads.fetch(release(), WANTED, target, step)


def test_what_was_downloaded_is_not_compiled(site, step, tmp_path, monkeypatch):
    """etcd is not in the archive; a compiler stands by that writes down what it is to build."""
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
    monkeypatch.setitem(globals(), "PATH", f"/{newest.kubernetes.version}/kubernetes-server-linux-{ARCHITECTURE}.tar.gz")
    lab = dataclasses.replace(newest, kubernetes=dataclasses.replace(newest.kubernetes, sha512=release().sha512))
    binaries.build(lab, binaries.kubernetes(lab), step)
    assert fetched(binaries.programs(lab, binaries.kubernetes(lab))) == set(WANTED)
    (built,) = (tmp_path / "built").read_text().splitlines()
    assert built.endswith("/ go.etcd.io/etcd/server/v3")


def test_checksums_are_of_sha512():
    for known in versions.releases():
        assert all(len(bytes.fromhex(checksum)) == 64 for checksum in known.sha512.values()), known.name
        assert set(known.sha512) in (set(), {"amd64", "arm64"}), known.name
