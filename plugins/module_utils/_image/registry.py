# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references and a small client of the registry protocol (OCI distribution): resolve, read, push.

Speaks Basic and Bearer (token service) authentication. Credentials are never part of a message.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import hashlib
import http.client
import os
import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_documents, registry_http
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_documents import is_digest

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
INDEXES = (OCI_INDEX, DOCKER_LIST)
MANIFESTS = (OCI_MANIFEST, DOCKER_MANIFEST)

# What a manifest or a token answer may have at most; a larger one is no such thing.
_MAX_DOCUMENT = 4 * 1024 * 1024
_MAX_TOKEN = 64 * 1024
# Seconds for a request and its answer, whatever comes in between. What is uploaded takes as long as it takes.
_MAX_SECONDS = 120
_MAX_TAG_PAGES = 10
_MAX_NEAR_TAGS = 8

# uname -m -> the architecture's name in image indexes.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64", "loongarch64": "loong64"}

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])"
_REGISTRY = re.compile(_HOST + r"(?::[0-9]{1,5})?\Z")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


class RegistryError(NpuError):
    """The registry's answer makes no sense, or it refused for a reason that is none of the below."""


class ImageNotFound(RegistryError):
    """The registry works and has no such image."""


class RegistryDenied(RegistryError):
    """The registry wants other credentials."""


class RegistryUnreachable(RegistryError):
    """No answer, or none that a registry in order would give."""


Descriptor = collections.namedtuple("Descriptor", "digest media_type size")


class Reference(collections.namedtuple("Reference", "registry repository tag digest")):
    """A parsed image reference; ``tag`` or ``digest`` may be None, not both."""

    __slots__ = ()

    @property
    def name(self):
        """Registry and repository, without tag and digest."""
        return "%s/%s" % (self.registry, self.repository)

    def __str__(self):
        text = self.name
        if self.tag:
            text += ":" + self.tag
        if self.digest:
            text += "@" + self.digest
        return text


def parse_reference(text):
    """The ``Reference`` that container engines read in ``text``; raises NpuError when it is none.

    Without a registry it is docker.io's, without tag and digest it is the tag "latest".
    """
    rest, at, digest = text.partition("@")
    if at and not is_digest(digest):
        raise NpuError("%r is no image reference: after @ there must be sha256: and 64 hexadecimal digits" % text)
    first, slash, remainder = rest.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        registry, path = first, remainder
    else:
        registry, path = "docker.io", rest
    head, colon, tag = path.rpartition(":")
    repository = head if colon else path
    if registry in ("docker.io", "index.docker.io"):
        registry = "docker.io"
        if "/" not in repository:
            repository = "library/" + repository
    if not _REGISTRY.match(registry):
        raise NpuError("%r is no image reference: %r is not a registry's host name and port" % (text, registry))
    if not _REPOSITORY.match(repository):
        raise NpuError(
            "%r is no image reference: %r is not a repository name (lower case, digits, . _ - and /)" % (text, repository)
        )
    if colon and not _TAG.match(tag):
        raise NpuError("%r is no image reference: %r is not a tag" % (text, tag))
    if not colon:
        tag = None if digest else "latest"
    return Reference(registry, repository, tag, digest or None)


def architecture(machine=None):
    """The name that image indexes use for ``machine`` (``uname -m``; default: this one)."""
    machine = machine or os.uname().machine
    return ARCHITECTURES.get(machine, machine)


class RegistryClient:
    """One registry, with the credentials for it.

    ``timeout``: seconds without any byte before a request is given up. ``ca_file``: PEM file of authorities
    to trust besides the system's.
    """

    def __init__(self, registry, username=None, password=None, plain_http=False, ca_file=None, timeout=30):
        self.registry = registry
        self.base = "%s://%s" % (
            "http" if plain_http else "https",
            "registry-1.docker.io" if registry == "docker.io" else registry,
        )
        self.plain_http = plain_http
        self.timeout = timeout
        self._username = username
        self._password = password
        self._headers = {}
        self._ca_file = ca_file
        self._context = None
        self._opener = registry_http.Opener(self._tls_context, plain_http)

    # Reading

    def resolve(self, repository, reference):
        """The ``Descriptor`` of the manifest or index that ``reference`` (tag or digest) names now."""
        path = "/v2/%s/manifests/%s" % (repository, reference)
        headers = {"Accept": ", ".join(MANIFESTS + INDEXES)}
        try:
            with self._request("HEAD", path, repository, headers=headers) as response:
                digest = response.headers.get("Docker-Content-Digest")
                size = registry_documents.number(response.headers.get("Content-Length"))
                media_type = (response.headers.get("Content-Type") or "").partition(";")[0]
            if is_digest(digest) and size is not None and (not is_digest(reference) or digest == reference):
                return Descriptor(digest, media_type, size)
        except ImageNotFound:
            raise self._not_found(repository, reference) from None
        except _MethodRefused:
            pass
        return self._get_manifest(repository, reference)[0]

    def image(self, repository, reference, machine=None):
        """Descriptor and content (dict) of the image manifest behind ``reference``.

        From an index the manifest for Linux on ``machine`` (``uname -m``; default: this one) is taken.
        """
        descriptor, document = self._get_manifest(repository, reference)
        if not registry_documents.is_index(document):
            return descriptor, document
        wanted = architecture(machine)
        seen = []
        for entry in document["manifests"]:
            platform = registry_documents.platform(entry)
            seen.append("%s/%s" % platform)
            if platform == ("linux", wanted):
                return self._image_in_index(repository, reference, entry["digest"])
        raise ImageNotFound(
            "%s has no image for linux/%s, only %s"
            % (self._spell(repository, reference), wanted, printable(", ".join(seen)) or "an empty list")
        )

    def _image_in_index(self, repository, reference, digest):
        descriptor, document = self._get_manifest(repository, digest)
        if registry_documents.is_index(document):
            raise RegistryError("%s is an index of indexes, not of images" % self._spell(repository, reference))
        return descriptor, document

    def blob(self, repository, digest):
        """The content (bytes) of a small blob, an image's configuration for instance; its digest is checked."""
        with self._request("GET", "/v2/%s/blobs/%s" % (repository, digest), repository) as response:
            content = self._read(response)
        if _sha256(content) != digest:
            raise RegistryError(
                "Registry %s delivered something else than %s: repair it there or push the image again" % (self.registry, digest)
            )
        return content

    def tags(self, repository):
        """The tags of ``repository`` as far as the registry lists them (the first few thousand)."""
        tags = []
        path = "/v2/%s/tags/list?n=1000" % repository
        for dummy in range(_MAX_TAG_PAGES):
            with self._request("GET", path, repository) as response:
                document = self._json(self._read(response), "list of tags")
                link = re.match(r'\s*<([^>]+)>\s*;\s*rel="?next"?', response.headers.get("Link") or "")
            found = document.get("tags")
            tags.extend(tag for tag in (found if isinstance(found, list) else []) if isinstance(tag, str) and _TAG.match(tag))
            if not link:
                break
            try:
                path = urllib.parse.urljoin(self.base + path, link.group(1))
            except ValueError:
                break
            if not path.startswith(self.base + "/"):
                break
            path = path[len(self.base) :]
        return tags

    def authorization(self, repository, actions="pull"):
        """The value of the Authorization header that lets ``actions`` be done in ``repository``, or None.

        For a registry that asks for Bearer it is a fresh token.
        """
        self._headers.pop((repository, actions), None)
        with self._request("GET", "/v2/", repository, actions=actions):
            pass
        header = self._headers.get((repository, actions))
        if header is None and self._username:
            # The front page is open, the repository need not be.
            header = self._basic()
        return header

    # Writing

    def has_blob(self, repository, digest):
        """Whether ``repository`` has the blob ``digest``."""
        try:
            with self._request("HEAD", "/v2/%s/blobs/%s" % (repository, digest), repository, actions="pull,push"):
                return True
        except ImageNotFound:
            return False

    def push_blob(self, repository, digest, size, stream):
        """Upload the ``size`` bytes of the file ``stream`` as ``digest`` unless that is there; True when it was not."""
        if self.has_blob(repository, digest):
            return False
        path = "/v2/%s/blobs/uploads/" % repository
        with self._request("POST", path, repository, actions="pull,push", data=b"") as response:
            location = response.headers.get("Location")
        if not location:
            raise RegistryError("Registry %s began an upload without saying where to" % self.registry)
        try:
            url = urllib.parse.urljoin(self.base + path, location)
            url += ("&" if urllib.parse.urlsplit(url).query else "?") + urllib.parse.urlencode({"digest": digest})
        except ValueError:
            raise RegistryError("Registry %s began an upload to a URL that is none" % self.registry) from None
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        with self._request("PUT", url, repository, headers=headers, actions="pull,push", data=stream):
            return True

    def push_manifest(self, repository, reference, content, media_type=OCI_MANIFEST):
        """Upload the manifest ``content`` (bytes) under ``reference``; returns its digest."""
        path = "/v2/%s/manifests/%s" % (repository, reference)
        headers = {"Content-Type": media_type}
        with self._request("PUT", path, repository, headers=headers, actions="pull,push", data=content):
            return _sha256(content)

    # Inside

    def _call(self, request, watch):
        """Send the request."""
        try:
            return self._opener.open(request, self.timeout, watch)
        except urllib.error.HTTPError:
            raise
        except registry_http.Refused as exc:
            raise RegistryError("Registry %s sends its clients to %s; refused" % (self.registry, printable(str(exc)))) from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise RegistryUnreachable(self._why(exc, request.full_url, watch)) from None

    def _tls_context(self):
        """The authorities to trust are read when there is something to ask: it takes its time."""
        if self._context is None:
            context = ssl.create_default_context()
            if self._ca_file:
                try:
                    context.load_verify_locations(self._ca_file)
                except (OSError, ssl.SSLError) as exc:
                    raise NpuError("The registry's CA file %s cannot be used: %s" % (self._ca_file, exc)) from None
            self._context = context
        return self._context

    def _get_manifest(self, repository, reference):
        headers = {"Accept": ", ".join(MANIFESTS + INDEXES)}
        path = "/v2/%s/manifests/%s" % (repository, reference)
        try:
            with self._request("GET", path, repository, headers=headers) as response:
                content = self._read(response)
                media_type = (response.headers.get("Content-Type") or "").partition(";")[0]
        except ImageNotFound:
            raise self._not_found(repository, reference) from None
        digest = _sha256(content)
        if is_digest(reference) and digest != reference:
            raise RegistryError(
                "Registry %s delivered another manifest than %s: repair it there or push the image again"
                % (self.registry, self._spell(repository, reference))
            )
        document = self._json(content, "manifest of %s" % self._spell(repository, reference))
        media_type = registry_documents.media_type(document, media_type)
        problem = registry_documents.problem(document)
        if problem:
            raise RegistryError(
                "%s is no image that this collection can read (media type %s): %s"
                % (self._spell(repository, reference), printable(media_type) or "unknown", problem)
            )
        return Descriptor(digest, media_type, len(content)), document

    def _not_found(self, repository, reference):
        """The ImageNotFound for ``reference``, with the tags a person may have meant."""
        message = "%s does not exist" % self._spell(repository, reference)
        near = []
        if not is_digest(reference):
            try:
                tags = self.tags(repository)
                near = near_tags(reference, tags)
                if near:
                    message += ". The registry has for the same version: %s" % ", ".join(near)
                elif tags:
                    message += ". The repository exists (%d tags), but has none for that version" % len(tags)
            except ImageNotFound:
                message += ": the registry has no repository %s" % repository
            except RegistryError:
                # Not every registry lists tags for everybody; the first answer stands on its own.
                pass
        return ImageNotFound(message, reference=self._spell(repository, reference), near_tags=near)

    def _spell(self, repository, reference):
        return "%s/%s%s%s" % (self.registry, repository, "@" if is_digest(reference) else ":", reference)

    @contextlib.contextmanager
    def _request(self, method, path, repository, headers=None, actions="pull", data=None):
        """One request, with one answer to an authentication challenge; the open response as long as the context lasts."""
        with registry_http.Watch(None if data else _MAX_SECONDS) as watch:
            with self._response(watch, method, path, repository, headers or {}, actions, data) as response:
                response.watch = watch
                yield response

    def _response(self, watch, method, path, repository, headers, actions, data):
        for attempt in (1, 2):
            header = self._headers.get((repository, actions))
            if attempt == 2 and hasattr(data, "seek"):
                data.seek(0)
            try:
                return self._open(watch, method, urllib.parse.urljoin(self.base, path), headers, header, data)
            except urllib.error.HTTPError as exc:
                with exc:
                    challenge = exc.headers.get_all("WWW-Authenticate") or []
                    if exc.code == 401 and attempt == 1:
                        self._headers[(repository, actions)] = self._answer(challenge, repository, actions, watch)
                        continue
                    raise self._error(exc, method, repository) from None

    def _open(self, watch, method, url, headers, authorization, data):
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        if authorization and url.startswith(self.base + "/"):
            # Unredirected: a blob may be delivered by a store that must not see our credentials.
            request.add_unredirected_header("Authorization", authorization)
        return self._call(request, watch)

    def _why(self, exc, url, watch):
        """A sentence about a request that got no answer."""
        reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
        where = "Registry %s" % self.registry
        host = printable(urllib.parse.urlsplit(url).netloc)
        if watch.is_over:
            return "%s did not come to the end of its answer within %d seconds" % (where, watch.seconds)
        if not url.startswith(self.base + "/"):
            where += " (its %s)" % host
        if isinstance(reason, ssl.SSLCertVerificationError):
            return "%s has a certificate that is not trusted (%s); give its authority with npu_registry_ca_file" % (
                where,
                reason.verify_message or reason,
            )
        if isinstance(reason, ssl.SSLError):
            return "%s does not speak TLS as it should (%s); if it has none, set npu_registry_plain_http" % (
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
        return "%s gave no proper answer at %s (%s)" % (where, host, type(reason).__name__)

    def _error(self, exc, method, repository):
        """The NpuError for an HTTP status that means no."""
        detail = self._detail(exc)
        where = "%s/%s" % (self.registry, repository)
        if exc.code == 401 or exc.code == 403:
            who = "user %r" % self._username if self._username else "an anonymous user"
            what = "push to" if method in ("POST", "PUT", "PATCH") else "read"
            return RegistryDenied(
                "Registry %s does not let %s %s %s%s. Check npu_registry_username and npu_registry_password"
                % (self.registry, who, what, repository, detail)
            )
        if exc.code == 404:
            return ImageNotFound("%s: not found%s" % (where, detail))
        if exc.code == 405 and method == "HEAD":
            return _MethodRefused("HEAD")
        if exc.code == 429:
            return RegistryUnreachable("Registry %s limits the rate of requests%s; try later" % (self.registry, detail))
        if exc.code >= 500:
            return RegistryUnreachable("Registry %s is out of order: it answered %d%s" % (where, exc.code, detail))
        if exc.code == 400 and self.plain_http and "HTTPS" in detail:
            return RegistryUnreachable("Registry %s speaks TLS; do not set npu_registry_plain_http" % self.registry)
        return RegistryError("Registry %s answered %d to %s%s" % (where, exc.code, method, detail))

    @staticmethod
    def _detail(exc):
        """What the registry itself says about the error, shortened, as ": text" or nothing."""
        try:
            content = exc.read(10000).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            return ""
        errors = (registry_documents.parse(content.encode("utf-8")) or {}).get("errors")
        if isinstance(errors, list):
            said = [error.get("message") or error.get("code") or "" for error in errors if isinstance(error, dict)]
            text = "; ".join(str(words)[:200] for words in said)
        else:
            text = content if "<" not in content else ""
        text = printable(" ".join(text.split()), 200)
        return " (%s)" % text if text else ""

    def _read(self, response):
        try:
            content = response.read(_MAX_DOCUMENT + 1)
        # A chunk's size that is no number is a ValueError.
        except (OSError, http.client.HTTPException, ValueError) as exc:
            if response.watch.is_over:
                raise RegistryUnreachable(self._why(exc, self.base, response.watch)) from None
            raise RegistryUnreachable(
                "Registry %s broke off in the middle of an answer (%s)" % (self.registry, type(exc).__name__)
            ) from None
        if len(content) > _MAX_DOCUMENT:
            raise RegistryError("Registry %s sent a document of more than %d bytes" % (self.registry, _MAX_DOCUMENT))
        if response.watch.is_over:
            # What was cut off looks like an end where nothing says how long it is.
            raise RegistryUnreachable(self._why(None, self.base, response.watch))
        return content

    def _json(self, content, what):
        document = registry_documents.parse(content)
        if document is not None:
            return document
        raise RegistryError(
            "Registry %s sent a %s that is not a JSON object; is there a proxy or a web page in its place?" % (self.registry, what)
        )

    def _basic(self):
        pair = "%s:%s" % (self._username, self._password or "")
        return "Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii")

    def _answer(self, challenges, repository, actions, watch):
        """The Authorization header that answers a 401, or None when there is nothing to answer with."""
        bearer = next((text for text in challenges if text.lower().startswith("bearer ")), None)
        if bearer is None:
            return self._basic() if self._username else None
        fields = {
            name.lower(): quoted or plain
            for name, quoted, plain in re.findall(r'([A-Za-z_]+)=(?:"([^"]*)"|([^\s,"]+))', bearer[7:])
        }
        realm = fields.get("realm", "")
        try:
            registry_http.check_url(realm, plain_http=True)
            service = urllib.parse.urlsplit(realm).netloc
        except (registry_http.Refused, ValueError):
            raise RegistryError("Registry %s asks for a token without naming a token service" % self.registry) from None
        if realm.startswith("http://") and not self.plain_http and self._username:
            raise RegistryError(
                "Registry %s wants the password sent to %s, which is not encrypted; refused" % (self.registry, printable(service))
            )
        query = {"scope": "repository:%s:%s" % (repository, actions)}
        if fields.get("service"):
            query["service"] = fields["service"]
        url = realm + ("&" if "?" in realm else "?") + urllib.parse.urlencode(query)
        try:
            request = urllib.request.Request(url)
            if self._username:
                request.add_unredirected_header("Authorization", self._basic())
            with self._call(request, watch) as response:
                response.watch = watch
                document = self._json(self._read(response), "token")
        except urllib.error.HTTPError as exc:
            with exc:
                raise self._error(exc, "GET", repository) from None
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or len(token) > _MAX_TOKEN or not re.match(r"[!-~]+\Z", token):
            raise RegistryError("The token service of registry %s sent no token" % self.registry)
        return "Bearer " + token


class _MethodRefused(Exception):
    """The registry knows no HEAD; GET says the same at the price of a body."""


def near_tags(tag, tags):
    """Of ``tags`` those a person may have meant by the driver image tag ``tag``, best first, at most eight.

    Tags of driver images are <version>-<chip>-<kernel>-<os>: the same version and chip first, then the same version.
    """
    parts = tag.split("-")
    chip = [other for other in tags if other.split("-")[:2] == parts[:2]]
    version = [other for other in tags if other.split("-")[0] == parts[0] and other not in chip]
    return (sorted(chip) + sorted(version))[:_MAX_NEAR_TAGS]


def _sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()
