# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP with a server that is not trusted: limits the total time, and follows redirects of GET and HEAD to HTTP(S) URLs only.

The timeout of a socket counts from byte to byte, so a server that sends one byte every now and then never reaches it. Hence the
watch.
"""

from __future__ import annotations

import functools
import http.client
import re
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request

_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/(?:[0-9]{1,15}|\*)\Z", re.ASCII)


class Refused(Exception):
    """The URL is not allowed; the text says which one and why."""


class Watch:
    """``with Watch(seconds) as watch:`` shuts down every connection made with it after that many seconds. None: never."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.is_over = False
        self._sockets = []
        self._timer = None

    def __enter__(self):
        if self.seconds is not None:
            self._timer = threading.Timer(self.seconds, self._end)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exc):
        if self._timer is not None:
            self._timer.cancel()
        for connection in self._sockets:
            connection.close()

    def connect(self, *arguments, **keywords):
        connection = socket.create_connection(*arguments, **keywords)
        # TLS detaches the socket; the duplicate stays valid.
        self._sockets.append(connection.dup())
        if self.is_over:
            self._end()
        return connection

    def ran_out(self, exc):
        """Whether the time ran out, here or in the socket, whose own timeout may be as long and end a moment earlier."""
        return self.is_over or isinstance(getattr(exc, "reason", exc), socket.timeout)

    def _end(self):
        self.is_over = True
        for connection in list(self._sockets):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed


def continues(response, start):
    """Whether the ``response`` to a request for the range from ``start`` is that range. Servers may send the whole file instead."""
    match = _RANGE.match(response.headers.get("Content-Range") or "")
    return response.status == 206 and match is not None and int(match.group(1)) == start


def check_url(url, plain_http):
    """Raise Refused unless ``url`` is HTTPS, or HTTP if ``plain_http`` allows it."""
    try:
        parts = urllib.parse.urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Refused("an invalid URL")
    if parts.scheme != "https" and not (parts.scheme == "http" and plain_http):
        if parts.scheme == "http":
            raise Refused("%s, which is not encrypted" % parts.netloc)
        raise Refused("a URL that is not HTTPS")


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, plain_http):
        self._plain_http = plain_http

    def http_error_302(self, req, fp, code, msg, headers):
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (Refused, ValueError):
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        check_url(newurl, self._plain_http)
        method = req.get_method()
        if method not in ("GET", "HEAD"):
            # urllib would make a GET of a POST, which leaves its content behind.
            raise urllib.error.HTTPError(req.full_url, code, msg, headers, fp)
        # 308 is 307 for ever. urllib knows it since Python 3.11 only.
        known = 307 if code == 308 else code
        redirected = super().redirect_request(req, fp, known, msg, headers, newurl)
        if method == "HEAD":
            # Up to Python 3.12, urllib makes it a GET, for which a blob store did not sign the URL.
            redirected.method = method
        # ProxyHandler adds it again if the new server needs the proxy.
        redirected.remove_header("Proxy-authorization")
        return redirected


class _Connecting:
    """A connection whose socket is registered with the watch."""

    def __init__(self, *arguments, watch, **keywords):
        super().__init__(*arguments, **keywords)
        self._create_connection = watch.connect


class _HTTP(_Connecting, http.client.HTTPConnection):
    pass


class _HTTPS(_Connecting, http.client.HTTPSConnection):
    pass


class _HTTPHandler(urllib.request.HTTPHandler):
    watch = None

    def http_open(self, req):
        return self.do_open(functools.partial(_HTTP, watch=self.watch), req)


class _HTTPSHandler(urllib.request.HTTPSHandler):
    watch = None

    def __init__(self, tls):
        super().__init__()
        self._tls = tls

    def https_open(self, req):
        return self.do_open(functools.partial(_HTTPS, watch=self.watch), req, context=self._tls())


class Opener:
    """Opens requests. ``tls``: returns the SSLContext, called when one is needed; ``plain_http``: whether HTTP is allowed."""

    def __init__(self, tls, plain_http):
        self._plain_http = plain_http
        self._handlers: list = [_HTTPHandler(), _HTTPSHandler(tls)]
        self._opener = urllib.request.OpenerDirector()
        # No handlers for file:, ftp: and data:.
        for handler in self._handlers + [
            urllib.request.ProxyHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Redirects(plain_http),
        ]:
            self._opener.add_handler(handler)

    def open(self, request, timeout, watch):
        """The response. Raises what urllib raises (ValueError for an invalid URL), and Refused."""
        check_url(request.full_url, self._plain_http)
        for handler in self._handlers:
            handler.watch = watch
        return self._opener.open(request, timeout=timeout)
