# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Download one file from a web server that is not trusted: bounded in time and size, and continued where it broke off.

Whether it is the right file, its checksum says; the caller compares it.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import IO

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_http
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource

# Packages have some hundred MiB.
MAX_BYTES = 8 * 2**30
# Seconds without a byte.
_SILENCE = 30
# How often a transfer that broke off is continued, if nothing came in between.
_ATTEMPTS = 3
_CHUNK = 1024 * 1024


class _BrokeOff(Exception):
    """The transfer ended early; the text says how."""


def download(source: PackageSource, path: str, seconds: float, silence: float = _SILENCE) -> bool:
    """Write the file at the URL ``source.place`` to ``path``, from where it ends now. Raises NpuError.

    Returns whether the server said where it ends. ``seconds``: how long all of it may take; ``silence``: how long the server may
    send nothing.
    """
    opener = registry_http.Opener(lambda: _tls(source.ca_file), source.plain_http)
    with registry_http.Watch(seconds) as watch, open(path, "ab") as target:
        failures = 0
        while True:
            start = target.tell()
            try:
                return _continue(source, opener, watch, target, silence)
            except _BrokeOff as exc:
                if watch.is_over:
                    raise NpuError(
                        "%s was not downloaded within %d seconds; the next run continues" % (source.name, seconds)
                    ) from None
                failures = 1 if target.tell() > start else failures + 1
                if failures >= _ATTEMPTS:
                    raise NpuError(
                        "The download of %s ended early, also when repeated: %s; the next run continues" % (source.name, exc)
                    ) from None
                time.sleep(0.2 * failures)


def _continue(
    source: PackageSource, opener: registry_http.Opener, watch: registry_http.Watch, target: IO[bytes], silence: float
) -> bool:
    headers = {"Accept-Encoding": "identity", "User-Agent": "npuops.ascend"}
    request = urllib.request.Request(source.place, headers=headers)
    if target.tell():
        request.add_header("Range", "bytes=%d-" % target.tell())
    if source.username or source.password:
        login = base64.b64encode(("%s:%s" % (source.username or "", source.password or "")).encode("utf-8")).decode("ascii")
        # Unredirected: a server that this one redirects to must not see it.
        request.add_unredirected_header("Authorization", "Basic " + login)
    try:
        response = opener.open(request, silence, watch)
    except urllib.error.HTTPError as exc:
        with exc:
            if exc.code == 416 and target.tell():
                # It has become shorter than what is here, or is complete: from the start, then.
                _restart(target)
                raise _BrokeOff("the server has no more of it") from None
            raise _refused(source, exc.code, urllib.parse.urlsplit(exc.url).netloc) from None
    except registry_http.Refused as exc:
        raise NpuError("%s redirects to %s; refused" % (source.name, printable(str(exc)))) from None
    except (OSError, http.client.HTTPException, ValueError) as exc:
        raise _no_answer(source, exc, watch, silence) from None
    with response:
        if target.tell() and not registry_http.continues(response, target.tell()):
            _restart(target)
        _receive(source, response, target)
        has_end = response.chunked or response.length is not None
    if not has_end and watch.is_over:
        # What the watch ends looks like the end of the file then.
        raise _BrokeOff("the time is over")
    return has_end


def _receive(source: PackageSource, response: http.client.HTTPResponse, target: IO[bytes]) -> None:
    while True:
        try:
            content = response.read1(_CHUNK)
        except socket.timeout:
            raise _BrokeOff("the server stopped sending") from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise _BrokeOff(type(exc).__name__) from None
        if not content:
            if response.length:
                raise _BrokeOff("%d bytes are missing" % response.length)
            target.flush()
            return
        if target.tell() + len(content) > MAX_BYTES:
            # It is another file, then: nothing to continue.
            _restart(target)
            raise NpuError("%s has more than %d GiB, which no %s has" % (source.name, MAX_BYTES // 2**30, source.what))
        target.write(content)


def _restart(target: IO[bytes]) -> None:
    target.truncate(0)
    target.seek(0, os.SEEK_SET)


def _refused(source: PackageSource, status: int, server: str) -> NpuError:
    if status in (401, 403) and server != urllib.parse.urlsplit(source.place).netloc:
        return NpuError(
            "The server of %s redirects to %s, which does not let an anonymous user download it (HTTP status %d). The"
            " account is not sent there: check the URL that it redirects to"
            % (source.name, printable(server.rpartition("@")[2]), status)
        )
    if status in (401, 403):
        who = "user %r" % printable(source.username, 80) if source.username else "an anonymous user"
        account = source.variable("username"), source.variable("password")
        advice = "Check %s and %s, or the validity of a signed URL" % account
        return NpuError("The server does not let %s download %s (HTTP status %d). %s" % (who, source.name, status, advice))
    if status in (404, 410):
        return NpuError("%s does not exist on its server (HTTP status %d): check %s" % (source.name, status, source.variable()))
    return NpuError("The server did not send %s (HTTP status %d)" % (source.name, status))


def _no_answer(source: PackageSource, exc: Exception, watch: registry_http.Watch, silence: float) -> Exception:
    reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
    where = printable(urllib.parse.urlsplit(source.name).netloc)
    if watch.is_over or isinstance(reason, (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)):
        return _BrokeOff("the server closed the connection")
    if isinstance(reason, ssl.SSLCertVerificationError):
        told = "its certificate is not trusted (%s); set npu_registry_ca_file to its authority" % (reason.verify_message or reason)
    elif isinstance(reason, ssl.SSLError):
        told = "the TLS handshake failed (%s)" % reason.reason
    elif isinstance(reason, socket.gaierror):
        told = "the name does not resolve on the controller"
    elif isinstance(reason, (socket.timeout, TimeoutError)):
        told = "it did not answer within %d seconds" % silence
    elif isinstance(reason, OSError) and reason.strerror:
        told = reason.strerror
    else:
        told = "it did not send a valid answer (%s)" % type(reason).__name__
    return NpuError("%s cannot be downloaded from %s: %s" % (source.name, where, told))


def _tls(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as exc:
            raise NpuError("npu_registry_ca_file (%s) cannot be used: %s" % (ca_file, exc)) from None
    return context
