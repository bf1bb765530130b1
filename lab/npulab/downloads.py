# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' programs as upstream has built them, for machines that reach its download site.

It saves minutes of compilation, so whatever goes wrong is no error: the reason is shown, and the programs are compiled. Only an
archive with the checksum in versions.toml is used.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import platform
import shutil
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path

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
PIECE = 1 << 20


class Unusable(Exception):
    """Why there is no archive."""


def site() -> str:
    """Where downloads come from; empty: nothing is downloaded."""
    text = os.environ.get(VARIABLE, SITE).rstrip("/")
    if text in ("", "off"):
        return ""
    if urllib.parse.urlsplit(text).scheme not in ("http", "https"):
        raise LabError(f"{VARIABLE} is '{text}': it must be a URL that begins with https:// or http://, or 'off'")
    return text


def fetch(release: Release, wanted: Iterable[str], target: Path, step: Step) -> set[str]:
    """Put those of the `wanted` programs that upstream's archive has into `target`; returns their names."""
    base = site()
    if not base:
        return set()
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    expected = release.sha512.get(architecture)
    if not expected:
        step.tell(f"compiling: versions.toml has no checksum of Kubernetes {release.version} for {architecture}")
        return set()
    url = f"{base}/{release.version}/kubernetes-server-linux-{architecture}.tar.gz"
    archive = target / "archive.tar.gz"
    try:
        step.say(f"downloading {url}")
        found = _download(url, archive, step)
        if found != expected:
            raise Unusable(f"REFUSED {url}: its SHA-512 is {found}, and versions.toml says {expected}")
        step.say("unpacking")
        return _unpack(archive, wanted, target)
    except Unusable as reason:
        step.tell(f"compiling: {reason}")
        return set()
    finally:
        archive.unlink(missing_ok=True)


def _download(url: str, archive: Path, step: Step) -> str:
    """Download a file; returns its SHA-512. Bounded in size, in time, and in the time without progress."""
    end = time.monotonic() + MOST_SECONDS
    total, checksum = 0, hashlib.sha512()
    try:
        with urllib.request.urlopen(url, timeout=SILENCE) as response, archive.open("wb") as file:
            length = int(response.headers.get("Content-Length") or 0)
            while piece := response.read1(PIECE):
                step.check()
                total += len(piece)
                if max(total, length) > MOST_BYTES:
                    raise Unusable(f"{url} is larger than {MOST_BYTES >> 20} MiB")
                if time.monotonic() > end:
                    raise Unusable(f"{url} takes longer than {MOST_SECONDS} s")
                checksum.update(piece)
                file.write(piece)
                step.note = f"downloading Kubernetes {total >> 20} of {length >> 20} MiB"
    except urllib.error.HTTPError as error:
        raise Unusable(f"{url}: HTTP status {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:  # URLError is an OSError
        raise Unusable(f"{url}: {getattr(error, 'reason', None) or error or type(error).__name__}") from None
    if total < length:
        raise Unusable(f"{url} ended after {total} of {length} bytes")
    return checksum.hexdigest()


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
