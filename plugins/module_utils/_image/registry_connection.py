# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to one registry: TLS, limits on time and size, and a message for every failure."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
import urllib.parse

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests, registry_errors, registry_http
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import RegistryError, RegistryUnreachable

# Limit for manifests and answers of token services; valid ones are much smaller.
_MAX_DOCUMENT = 4 * 1024 * 1024
# Seconds for a request and its answer. Uploads and downloads of layers have no such limit.
_MAX_SECONDS = 120
_CHUNK = 1024 * 1024


class Connection:
    """``registry`` (host and optional port). ``timeout``: seconds without a byte after which a request fails.

    ``ca_file``: PEM file of authorities to trust besides the system's. ``username``: for messages only.
    """

    def __init__(self, registry, plain_http, ca_file, timeout, username):
        self.registry = registry
        self.base = "%s://%s" % (
            "http" if plain_http else "https",
            "registry-1.docker.io" if registry == "docker.io" else registry,
        )
        self.plain_http = plain_http
        self.timeout = timeout
        self._username = username
        self._ca_file = ca_file
        self._context = None
        self._opener = registry_http.Opener(self._tls_context, plain_http)

    @staticmethod
    def watch(limited=True, seconds=None):
        """The time limit for one request, which ends after ``seconds`` at the latest, None for no such limit; a context manager."""
        return registry_http.Watch(min(filter(None, (_MAX_SECONDS if limited else None, seconds)), default=None))

    def is_own(self, url):
        """Whether ``url`` is on the registry itself, not on its token service or blob store."""
        try:
            return _origin(url) == _origin(self.base)
        except ValueError:
            return False

    def send(self, request, watch):
        """Send the urllib request; the open response. Raises HTTPError for an error status, otherwise RegistryError."""
        try:
            response = self._opener.open(request, self.timeout, watch)
        except urllib.error.HTTPError:
            raise
        except registry_http.Refused as exc:
            raise RegistryError("Registry %s redirects its clients to %s; refused" % (self.registry, printable(str(exc)))) from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise RegistryUnreachable(self._no_answer(exc, request.full_url, watch)) from None
        response.watch = watch
        return response

    def read(self, response):
        """The body of the response (bytes)."""
        content = self._part(response, _MAX_DOCUMENT + 1)
        if len(content) > _MAX_DOCUMENT:
            raise RegistryError("Registry %s sent a document of more than %d bytes" % (self.registry, _MAX_DOCUMENT))
        if response.watch.is_over:
            # Without a Content-Length, a connection that the watch ended looks like the end of the answer.
            raise RegistryUnreachable(self._no_answer(None, self.base, response.watch))
        return content

    def chunks(self, response):
        """The body of the response, however long it is, in pieces."""
        while True:
            content = self._part(response, _CHUNK)
            if content:
                yield content
            elif response.length:
                raise self._cut_off("%d bytes are missing" % response.length)
            else:
                return

    def unseen_end(self, response, digest):
        """The exception to raise for a body that does not match the ``digest``, if nothing said where it ends, or None.

        Without a Content-Length, a connection that was ended looks like the end of the answer.
        """
        if response.chunked or response.length is not None:
            return None
        if response.watch.is_over:
            return RegistryUnreachable(self._no_answer(None, self.base, response.watch))
        return RegistryError(
            "Registry %s did not say how long its answer is, and what came does not match the digest %s: it may have broken off."
            " Run again; if that does not help, repair the registry or push the image again" % (self.registry, digest)
        )

    def _part(self, response, size):
        """At most ``size`` bytes of the body."""
        try:
            return response.read(size)
        # An invalid chunk size is a ValueError.
        except (OSError, http.client.HTTPException, ValueError) as exc:
            if response.watch.is_over:
                raise RegistryUnreachable(self._no_answer(exc, self.base, response.watch)) from None
            raise self._cut_off(type(exc).__name__) from None

    def _cut_off(self, how):
        return RegistryUnreachable("Registry %s closed the connection in the middle of an answer (%s)" % (self.registry, how))

    def document(self, content, what):
        """The JSON object in ``content``; ``what`` names it in messages."""
        document = manifests.parse(content)
        if document is not None:
            return document
        raise RegistryError(
            "Registry %s sent a %s that is not a JSON object; did a proxy or a web page answer?" % (self.registry, what)
        )

    def error(self, exc, method, repository):
        """The exception to raise for the HTTPError ``exc``."""
        return registry_errors.from_status(exc, self.registry, method, repository, self._username, self.plain_http)

    def _tls_context(self):
        """Loads the authorities on the first request, because that takes time."""
        if self._context is None:
            context = ssl.create_default_context()
            if self._ca_file:
                try:
                    context.load_verify_locations(self._ca_file)
                except (OSError, ssl.SSLError) as exc:
                    raise NpuError("The registry's CA file %s cannot be used: %s" % (self._ca_file, exc)) from None
            self._context = context
        return self._context

    def _no_answer(self, exc, url, watch):
        """The message for a request without an answer."""
        reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
        where = "Registry %s" % self.registry
        host = printable(urllib.parse.urlsplit(url).netloc)
        if watch.is_over:
            return "%s did not complete its answer within %d seconds" % (where, watch.seconds)
        if not self.is_own(url):
            where += " (its server %s)" % host
        if isinstance(reason, ssl.SSLCertVerificationError):
            return "%s has a certificate that is not trusted (%s); set npu_registry_ca_file to its authority" % (
                where,
                reason.verify_message or reason,
            )
        if isinstance(reason, ssl.SSLError):
            return "%s did not complete the TLS handshake (%s); if it does not use TLS, set npu_registry_plain_http" % (
                where,
                reason.reason or reason,
            )
        if isinstance(reason, socket.gaierror):
            return "%s cannot be reached: the name %s does not resolve" % (where, host)
        if isinstance(reason, (socket.timeout, TimeoutError)):
            return "%s did not answer within %d seconds" % (where, self.timeout)
        if isinstance(reason, ConnectionRefusedError):
            return "%s cannot be reached: connection to %s refused" % (where, host)
        if isinstance(reason, OSError) and reason.strerror:
            return "%s cannot be reached at %s: %s" % (where, host, reason.strerror)
        return "%s did not send a valid answer from %s (%s)" % (where, host, type(reason).__name__)


def _origin(url):
    """Scheme, host and port. With a user name in it, it equals no origin without one."""
    parts = urllib.parse.urlsplit(url)
    host, default = parts.netloc.lower(), {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return parts.scheme, host[: -len(default)] if default and host.endswith(default) else host
