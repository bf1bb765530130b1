# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' programs as upstream has built them, for machines that reach its download site.

It saves minutes of compilation, so whatever goes wrong is no error: the reason is shown, and the programs are compiled. Only an
archive with a known checksum is used: that of versions.toml, or for a release without one, that which the site publishes beside the
archive, if it comes over HTTPS.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import io
import os
import platform
import re
import shutil
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .settings import LabError
from .tasks import Step
from .versions import Release

SITE = "https://dl.k8s.io"
VARIABLE = "NPU_LAB_DOWNLOADS"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAMS = "kubernetes/server/bin"  # in the archive
SILENCE = 5  # seconds that the site may take to accept a connection, or to send the next piece
MOST_SECONDS = 600  # compiling is faster then
MOST_BYTES = 1 << 30
CHECKSUM_SECONDS = 30
CHECKSUM_BYTES = 1 << 10
PIECE = 1 << 20


class Unusable(Exception):
    """Why there is no archive."""


def site() -> str:
    """Where downloads come from; empty: nothing is downloaded."""
    text = _setting()
    if text in ("", "off"):
        return ""
    if text == "pinned":
        return SITE
    if urllib.parse.urlsplit(text).scheme not in ("http", "https"):
        raise LabError(f"{VARIABLE} is '{text}': it must be a URL that begins with https:// or http://, or 'pinned', or 'off'")
    return text


def _setting() -> str:
    return os.environ.get(VARIABLE, SITE).rstrip("/")


def fetch(release: Release, wanted: Iterable[str], target: Path, step: Step) -> set[str]:
    """Put those of the `wanted` programs that upstream's archive has into `target`; returns their names."""
    base = site()
    if not base:
        return set()
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    pinned, host = release.sha512.get(architecture), urllib.parse.urlsplit(base).hostname
    url = f"{base}/{release.version}/kubernetes-server-linux-{architecture}.tar.gz"
    archive = target / "archive.tar.gz"
    try:
        if not pinned:
            _may_ask(base, f"lab/npulab/versions.toml has no checksum of Kubernetes {release.version} for {architecture}")
        expected = pinned or _published_checksum(url, target, step)
        step.say(f"downloading {url}")
        found = _download(url, archive, MOST_BYTES, MOST_SECONDS, step)
        if found != expected:
            raise Unusable(f"REFUSED {url}: its SHA-512 is {found}, and {'versions.toml' if pinned else host} says {expected}")
        if not pinned:
            step.tell(f"downloaded Kubernetes {release.version}: checksum from {host}, not pinned")
        step.say("unpacking")
        return _unpack(archive, wanted, target)
    except Unusable as reason:
        step.tell(f"not downloaded: {_printable(str(reason))}")
        return set()
    finally:
        archive.unlink(missing_ok=True)


def _may_ask(base: str, unpinned: str) -> None:
    """Raise Unusable unless the site may say what the checksum is. It is worth no more than the connection to the site."""
    if _setting() == "pinned":
        raise Unusable(f"{unpinned}, and {VARIABLE} is 'pinned'. To download it, add its checksum there, or unset {VARIABLE}")
    if urllib.parse.urlsplit(base).scheme != "https":
        raise Unusable(
            f"{unpinned}, and one that comes from {base}, over plain http, can be changed on its way, like the archive itself. Add"
            f" its checksum there, or set {VARIABLE} to a URL that begins with https://"
        )


def _published_checksum(url: str, target: Path, step: Step) -> str:
    """The SHA-512 that the site publishes for an archive."""
    url, name = f"{url}.sha512", url.rsplit("/", 1)[1]
    file = target / "archive.tar.gz.sha512"
    try:
        step.say(f"downloading {url}")
        _download(url, file, CHECKSUM_BYTES, CHECKSUM_SECONDS, step)
        content = file.read_bytes()
    finally:
        file.unlink(missing_ok=True)
    # As sha512sum writes it, or without the name, as Kubernetes does.
    match = re.fullmatch(rb"([0-9a-fA-F]{128})(?: [ *]%b)?\r?\n?" % re.escape(name.encode()), content)
    if not match:
        raise Unusable(f"{url} is no SHA-512 checksum of {name}: it begins with {content[:40]!r}")
    return match[1].decode().lower()


class _Checked(io.RawIOBase):
    """What a server sends; `check` is called before each read, as the timeout of a socket begins again with every byte."""

    def __init__(self, raw: io.RawIOBase, check: Callable[[], None]) -> None:
        self._raw = raw
        self._check = check

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._check()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Connections(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Both kinds of connections; `check` is called while they read, also for status lines and headers."""

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__()

        class Response(http.client.HTTPResponse):
            def __init__(self, *arguments: Any, **keywords: Any) -> None:
                super().__init__(*arguments, **keywords)
                self.fp = io.BufferedReader(_Checked(self.fp.detach(), check))

        self._response_class = Response

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(functools.partial(self._connect, http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(functools.partial(self._connect, http.client.HTTPSConnection), req)

    def _connect(self, kind: type[http.client.HTTPConnection], host: str, **keywords: Any) -> http.client.HTTPConnection:
        connection = kind(host, **keywords)
        connection.response_class = self._response_class
        return connection


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> urllib.request.Request | None:
        if urllib.parse.urlsplit(newurl).scheme not in ("https", urllib.parse.urlsplit(req.full_url).scheme):
            raise Unusable(f"{req.full_url} redirects to {newurl}, which is not https://. Set {VARIABLE} to a site that does not")
        fp.close()  # urllib would read the rest into memory, however large it is
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(url: str, target: Path, most_bytes: int, most_seconds: float, step: Step) -> str:
    """Download a file; returns its SHA-512. Bounded in size, in time, and in the time without progress."""
    end = time.monotonic() + most_seconds

    def check() -> None:
        step.check()
        if time.monotonic() > end:
            raise TimeoutError(f"takes longer than {most_seconds} s")

    total, checksum = 0, hashlib.sha512()
    opener = urllib.request.build_opener(_Connections(check), _Redirects)
    try:
        with opener.open(url, timeout=SILENCE) as response, target.open("wb") as file:
            length = int(response.headers.get("Content-Length") or 0)
            while piece := response.read1(PIECE):
                total += len(piece)
                if max(total, length) > most_bytes:
                    raise Unusable(f"{url} is larger than {most_bytes >> 10} KiB")
                checksum.update(piece)
                file.write(piece)
                step.note = f"downloading Kubernetes {total >> 20} of {length >> 20} MiB"
    except urllib.error.HTTPError as error:
        error.close()
        raise Unusable(f"{url}: HTTP status {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:  # URLError is an OSError
        raise Unusable(f"{url}: {getattr(error, 'reason', None) or error or type(error).__name__}") from None
    if total < length:
        raise Unusable(f"{url} ended after {total} of {length} bytes")
    return checksum.hexdigest()


def _printable(text: str) -> str:
    """On one line of a terminal: servers have a say in messages."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:600]


def _unpack(archive: Path, wanted: Iterable[str], target: Path) -> set[str]:
    names = {f"{PROGRAMS}/{name}": name for name in wanted}
    done = set()
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                if member.name in names and member.isfile():
                    source = tar.extractfile(member)
                    assert source is not None
                    with (target / names[member.name]).open("wb") as file:
                        shutil.copyfileobj(source, file)
                    (target / names[member.name]).chmod(0o755)
                    done.add(names[member.name])
    except (tarfile.TarError, EOFError, OSError) as error:
        for name in names.values():
            (target / name).unlink(missing_ok=True)
        raise Unusable(f"the archive of Kubernetes cannot be unpacked: {error}") from None
    return done
