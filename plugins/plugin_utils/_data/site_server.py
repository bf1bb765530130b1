# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of the site whose address is a setting: Prometheus, or a webhook. It is asked within limits of time and size."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_http

_BROKEN = (OSError, http.client.HTTPException, ValueError, registry_http.Refused)


class Address(NamedTuple):
    url: str
    host: str
    netloc: str  # the host, and the port if the URL has one


class Unanswered(NpuError):
    """There is no answer, or one that is an error. ``body``: what the server says about it."""

    def __init__(self, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.body = body


def address(setting: str, url: str) -> Address:
    """The checked value of the ``setting``. Raises NpuError, whose message does not show the URL: it may be a secret.

    Blanks and line ends around it are dropped, as a block of YAML has one. A user name or a password is refused: urllib does not
    send it, and shows it in its messages.
    """
    url = url.strip()
    try:
        registry_http.check_url(url, plain_http=True)
    except registry_http.Refused:
        raise NpuError("%s is not an address that begins with https:// or http://." % setting) from None
    parts = urllib.parse.urlsplit(url)
    if "@" in parts.netloc:
        raise NpuError("%s has a user name or a password before the name of the server, which is not supported." % setting)
    if not url.isascii() or not url.isprintable() or " " in url:
        raise NpuError(
            "%s has a space or another character that a URL cannot have; percent-encode it, as %%20 for example." % setting
        )
    return Address(url, parts.hostname or "", parts.netloc)


def ask(
    request: urllib.request.Request, seconds: float, longest: int, tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
) -> bytes:
    """Send the ``request``; of the answer, read one byte more than ``longest`` at most. Raises Unanswered."""
    opener = registry_http.Opener(tls, plain_http=True)
    too_late = "no answer within %g s" % seconds
    with registry_http.Watch(seconds) as watch:
        try:
            with opener.open(request, seconds, watch) as response:
                answer = response.read(longest + 1)
        except urllib.error.HTTPError as exc:
            with exc:
                if 300 <= exc.code < 400:
                    raise Unanswered("it redirects to another address, which is not followed") from None
                raise Unanswered("it answers %d" % exc.code, _body(exc, longest)) from None
        except _BROKEN as exc:
            raise Unanswered(too_late if watch.ran_out(exc) else one_line(getattr(exc, "reason", None) or exc)) from None
        if watch.is_over:  # what was read is not all
            raise Unanswered(too_late)
    return answer


def _body(error: urllib.error.HTTPError, longest: int) -> bytes:
    """It only explains, so one that breaks off is as good as none."""
    try:
        return error.read(longest)
    except _BROKEN:
        return b""
