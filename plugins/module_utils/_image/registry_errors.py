# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with a registry: the exceptions, and the message for an HTTP status. No message contains credentials."""

from __future__ import annotations

import http.client
import urllib.parse

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests


class RegistryError(NpuError):
    """The registry's answer is invalid, or the registry refused for a reason that has no class of its own."""


class ImageNotFound(RegistryError):
    """The registry works, but does not have the image."""


class RegistryDenied(RegistryError):
    """The registry does not accept the credentials."""


class RegistryUnreachable(RegistryError):
    """The registry did not answer, or is out of order."""


class RegistryBusy(RegistryUnreachable):
    """The registry limits the rate of requests. ``retry_after``: seconds that it asks to wait, or None."""

    def __init__(self, message, retry_after=None):
        super().__init__(message)
        self.retry_after = retry_after


class MethodRefused(Exception):
    """The registry does not implement HEAD. GET gives the same answer, with a body."""


def from_status(exc, registry, method, repository, username, plain_http):
    """The exception to raise for the HTTPError ``exc``."""
    detail = _detail(exc)
    where = "%s/%s" % (registry, repository)
    if exc.code == 401 or exc.code == 403:
        who = "user %r" % username if username else "an anonymous user"
        what = "push to" if method in ("POST", "PUT", "PATCH") else "read"
        return RegistryDenied(
            "Registry %s does not let %s %s %s%s. Check npu_registry_username and npu_registry_password"
            % (registry, who, what, repository, detail)
        )
    if exc.code == 404:
        return ImageNotFound("%s: not found%s" % (where, detail))
    if exc.code == 405 and method == "HEAD":
        return MethodRefused("HEAD")
    if exc.code == 429:
        return RegistryBusy(
            "Registry %s limits the rate of requests%s; try again later" % (registry, detail),
            manifests.number(exc.headers.get("Retry-After")),
        )
    if exc.code in (301, 302, 303, 307, 308) and method in ("POST", "PUT", "PATCH"):
        target = _target(exc)
        encrypted = plain_http and target.startswith("https:")
        return RegistryError(
            "Registry %s redirects uploads to %s (HTTP status %d), which is not followed: %s"
            % (where, target, exc.code, "do not set npu_registry_plain_http" if encrypted else "name the registry by that address")
        )
    if exc.code >= 500:
        return RegistryUnreachable("Registry %s is out of order: it answered %d%s" % (where, exc.code, detail))
    if exc.code == 400 and plain_http and "HTTPS" in detail:
        return RegistryUnreachable("Registry %s requires TLS; do not set npu_registry_plain_http" % registry)
    return RegistryError("Registry %s answered %d to %s%s" % (where, exc.code, method, detail))


def denied_elsewhere(exc, registry, method, repository):
    """The exception to raise for a 401 or 403 of another server than the registry, which gets no credentials."""
    return RegistryDenied(
        "Registry %s sends its clients to %s, which does not let them %s %s (HTTP status %d)%s. That server gets no credentials of"
        " the registry: configure it to accept the URLs of the registry, or the registry to serve its content itself"
        % (
            registry,
            printable(urllib.parse.urlsplit(exc.url).netloc.rpartition("@")[2]),
            "write" if method in ("POST", "PUT", "PATCH") else "read",
            repository,
            exc.code,
            _detail(exc),
        )
    )


def _target(exc):
    """The server to which the HTTPError ``exc`` redirects. The rest of the URL may be a signature."""
    try:
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(exc.url, exc.headers.get("Location") or ""))
    except ValueError:
        return "an invalid URL"
    return printable("%s://%s" % (parts.scheme, parts.netloc.rpartition("@")[2]))


def _detail(exc):
    """What the registry says about the error, shortened, as " (text)"; empty if it says nothing."""
    try:
        content = exc.read(10000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    errors = (manifests.parse(content.encode("utf-8")) or {}).get("errors")
    if isinstance(errors, list):
        said = [error.get("message") or error.get("code") or "" for error in errors if isinstance(error, dict)]
        text = "; ".join(str(words)[:200] for words in said)
    else:
        text = content if "<" not in content else ""
    text = printable(" ".join(text.split()), 200)
    return " (%s)" % text if text else ""
