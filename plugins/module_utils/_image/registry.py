# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of one registry (OCI distribution protocol): resolve, read and push images.

Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests, registry_errors, registry_http
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor, is_digest, sha256
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import is_tag, near_tags
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_authentication import Authentication
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_connection import Connection
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import (
    ImageNotFound,
    MethodRefused,
    RegistryBusy,
    RegistryError,
)

_ACCEPT = ", ".join(manifests.MANIFESTS + manifests.INDEXES)
_CHUNK = 1024 * 1024
_MAX_TAG_PAGES = 10
# Seconds in a row that a client waits at most for a registry that limits the rate of requests, and the first pause where that does
# not say how long.
_MAX_BUSY = 300
_FIRST_PAUSE = 2


class RegistryClient:
    """One registry, with the credentials for it.

    ``timeout``: seconds without a byte after which a request fails. ``ca_file``: PEM file of authorities to trust besides the
    system's. ``budget``: seconds that all requests together may take, with the pauses between them; None for no limit.
    """

    def __init__(self, registry, username=None, password=None, plain_http=False, ca_file=None, timeout=30, budget=None):
        self.registry = registry
        self.plain_http = plain_http
        self._end = None if budget is None else time.monotonic() + budget
        self._connection = Connection(registry, plain_http, ca_file, timeout, username)
        self.base = self._connection.base
        self._authentication = Authentication(self._connection, username, password)
        self._waited = 0  # seconds since the last answer
        self._tags = {}  # (repository, digest) -> the tag by which it was found

    _sleep = staticmethod(time.sleep)

    # Reading

    def resolve(self, repository, reference):
        """The ``Descriptor`` of the manifest or index that ``reference`` (tag or digest) names now."""
        found = self.find(repository, reference)
        if found is None:
            raise self._not_found(repository, reference)
        return found

    def find(self, repository, reference):
        """The same, or None if the registry does not have it."""
        found = self._find(repository, reference)
        if found is not None and not is_digest(reference):
            self._tags[(repository, found.digest)] = reference
        return found

    def _find(self, repository, reference):
        path = "/v2/%s/manifests/%s" % (repository, reference)
        try:
            with self._request("HEAD", path, repository, headers={"Accept": _ACCEPT}) as response:
                digest = response.headers.get("Docker-Content-Digest")
                size = manifests.number(response.headers.get("Content-Length"))
                media_type = (response.headers.get("Content-Type") or "").partition(";")[0]
            if is_digest(digest) and size is not None and (not is_digest(reference) or digest == reference):
                return Descriptor(digest, media_type, size)
        except ImageNotFound:
            return None
        except MethodRefused:
            pass
        try:
            return self._manifest(repository, reference)[0]
        except ImageNotFound:
            return None

    def for_machine(self, repository, named, machine):
        """The ``Descriptor`` of the image for Linux on ``machine`` in the index that the ``Descriptor`` ``named`` is of.

        ``named`` itself if it is that of an image.
        """
        if named.media_type in manifests.MANIFESTS:
            return named
        return self.image(repository, named.digest, machine)[0]

    def image(self, repository, reference, machine=None):
        """Descriptor and content (dict) of the image manifest that ``reference`` names.

        From an index, it is the manifest for Linux on ``machine`` (``uname -m``; default: this machine's).
        """
        descriptor, document = self.manifest(repository, reference)
        if not manifests.is_index(document):
            return descriptor, document
        wanted = manifests.architecture(machine)
        found = manifests.image_for(document, wanted)
        if not found:
            raise ImageNotFound(
                "%s has no image for linux/%s, only %s"
                % (self._spell(repository, reference), wanted, printable(", ".join(manifests.offers(document))) or "an empty list")
            )
        return self._image_in_index(repository, reference, found["digest"])

    def _image_in_index(self, repository, reference, digest):
        descriptor, document = self.manifest(repository, digest)
        if manifests.is_index(document):
            raise RegistryError("%s is an index of indexes, not an index of images" % self._spell(repository, reference))
        return descriptor, document

    def manifest(self, repository, reference):
        """Descriptor and content (dict) of the manifest or index that ``reference`` names."""
        descriptor, content = self.manifest_content(repository, reference)
        return descriptor, manifests.parse(content)

    def manifest_content(self, repository, reference):
        """Descriptor and content of the manifest or index that ``reference`` names, as the bytes that its digest is of."""
        try:
            return self._manifest(repository, reference)
        except ImageNotFound:
            raise self._not_found(repository, reference) from None

    def _manifest(self, repository, reference):
        try:
            return self._get_manifest(repository, reference)
        except ImageNotFound:
            # A registry that only passes images on may know them by their tags.
            tag = self._tags.get((repository, reference))
            found = self._get_manifest(repository, tag) if tag else None
            if found is None or found[0].digest != reference:
                raise
            return found

    def _get_manifest(self, repository, reference):
        path = "/v2/%s/manifests/%s" % (repository, reference)
        with self._request("GET", path, repository, headers={"Accept": _ACCEPT}) as response:
            content = self._connection.read(response)
            media_type = (response.headers.get("Content-Type") or "").partition(";")[0]
        digest = sha256(content)
        if is_digest(reference) and digest != reference:
            raise RegistryError(
                "Registry %s sent a manifest that does not match %s: repair the registry or push the image again"
                % (self.registry, self._spell(repository, reference))
            )
        document = self._connection.document(content, "manifest of %s" % self._spell(repository, reference))
        media_type = manifests.media_type(document, media_type)
        problem = manifests.problem(document)
        if problem:
            raise RegistryError(
                "%s is not an image that this collection can read (media type %s): %s"
                % (self._spell(repository, reference), printable(media_type) or "unknown", problem)
            )
        return Descriptor(digest, media_type, len(content)), content

    def blob(self, repository, digest):
        """The content (bytes) of a small blob, such as an image's configuration. Verifies the digest."""
        with self._request("GET", "/v2/%s/blobs/%s" % (repository, digest), repository) as response:
            content = self._connection.read(response)
        if sha256(content) != digest:
            raise self._mismatch(digest)
        return content

    def download(self, repository, digest, path, size=None, seconds=None):
        """Write the blob ``digest`` to the file ``path``. Verifies the digest.

        ``size``: the bytes that it has at most; ``seconds``: how long it may take. None: no limit.
        """
        with open(path, "wb") as target:
            if not self._receive(repository, digest, target, size, seconds):
                raise self._mismatch(digest)

    def resume(self, repository, digest, path, size, seconds=None):
        """The same for a file that may have the beginning of the blob, of ``size`` bytes. It is empty if the digest is wrong."""
        with open(path, "a+b") as target:
            if target.tell() >= size:
                target.truncate(0)
            continued = target.tell() > 0
            try:
                right = self._receive(repository, digest, target, size, seconds)
            except RegistryError as exc:
                # Another status than those that have a class: it may refuse the range.
                if not continued or exc.__class__ is not RegistryError:
                    raise
                right = False
            if not right and continued:
                # The beginning may have been of another file.
                target.truncate(0)
                right = self._receive(repository, digest, target, size, seconds)
            if not right:
                target.truncate(0)
                raise self._mismatch(digest)

    def _receive(self, repository, digest, target, size, seconds):
        """Write the blob, from where the file ``target`` ends; whether the file has the ``digest`` then."""
        found = hashlib.sha256()
        start = target.seek(0, os.SEEK_END)
        if start:
            target.seek(0)
            for chunk in iter(functools.partial(target.read, _CHUNK), b""):
                found.update(chunk)
        url = "/v2/%s/blobs/%s" % (repository, digest)
        headers = {"Range": "bytes=%d-" % start} if start else None
        with self._request("GET", url, repository, headers=headers, limited=False, seconds=seconds) as response:
            if start and not registry_http.continues(response, start):
                target.truncate(0)
                start, found = 0, hashlib.sha256()
            for chunk in self._connection.chunks(response):
                start += len(chunk)
                if size is not None and start > size:
                    return False
                found.update(chunk)
                target.write(chunk)
        target.flush()
        right = "sha256:" + found.hexdigest() == digest
        unseen = None if right or start == size else self._connection.unseen_end(response, digest)
        if unseen:
            raise unseen
        return right

    def tags(self, repository):
        """The tags of ``repository``, at most the first 10,000."""
        tags = []
        path = "/v2/%s/tags/list?n=1000" % repository
        for dummy in range(_MAX_TAG_PAGES):
            with self._request("GET", path, repository) as response:
                document = self._connection.document(self._connection.read(response), "list of tags")
                link = re.match(r'\s*<([^>]+)>\s*;\s*rel="?next"?', response.headers.get("Link") or "")
            found = document.get("tags")
            tags.extend(tag for tag in (found if isinstance(found, list) else []) if is_tag(tag))
            if not link:
                break
            try:
                path = urllib.parse.urljoin(urllib.parse.urljoin(self.base, path), link.group(1))
            except ValueError:
                break
            if not self._connection.is_own(path):
                break
        return tags

    def authorization(self, repository, actions="pull"):
        """The Authorization header that permits ``actions`` in ``repository``, or None. A token in it is fresh."""
        self._authentication.forget(repository, actions)
        with self._request("GET", "/v2/", repository, actions=actions):
            pass
        # A registry may require credentials for the repository, but not for /v2/.
        return self._authentication.header(repository, actions) or self._authentication.basic()

    # Writing

    def has_blob(self, repository, digest):
        """Whether ``repository`` is known to have the blob ``digest``. Not where HEAD is refused: GET would send all of it."""
        try:
            with self._request("HEAD", "/v2/%s/blobs/%s" % (repository, digest), repository, actions="pull,push"):
                return True
        except (ImageNotFound, MethodRefused):
            return False

    def push_blob(self, repository, digest, size, stream, seconds=None):
        """Upload the ``size`` bytes of the file ``stream`` as blob ``digest``; False if the registry is known to have it.

        ``seconds``: how long the upload may take. None: no limit. Raises RegistryError, before the upload is complete, if the file
        has other content than ``digest`` says.
        """
        if self.has_blob(repository, digest):
            return False
        path = "/v2/%s/blobs/uploads/" % repository
        with self._request("POST", path, repository, actions="pull,push", data=b"") as response:
            location = response.headers.get("Location")
        if not location:
            raise RegistryError("Registry %s accepted an upload without naming its URL" % self.registry)
        try:
            url = urllib.parse.urljoin(self.base + path, location)
            url += ("&" if urllib.parse.urlsplit(url).query else "?") + urllib.parse.urlencode({"digest": digest})
        except ValueError:
            raise RegistryError("Registry %s accepted an upload with an invalid URL" % self.registry) from None
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        data = _Verified(stream, digest, size, self.registry)
        with self._request("PUT", url, repository, headers=headers, actions="pull,push", data=data, seconds=seconds):
            return True

    def push_manifest(self, repository, reference, content, media_type=manifests.OCI_MANIFEST):
        """Upload the manifest ``content`` (bytes) under ``reference``; returns its digest."""
        path = "/v2/%s/manifests/%s" % (repository, reference)
        headers = {"Content-Type": media_type}
        with self._request("PUT", path, repository, headers=headers, actions="pull,push", data=content):
            return sha256(content)

    # Internal

    def _mismatch(self, digest):
        """The RegistryError for a blob with other content than ``digest`` says."""
        return RegistryError(
            "Registry %s sent a blob that does not match the digest %s: repair the registry or push the image again"
            % (self.registry, digest)
        )

    def _not_found(self, repository, reference):
        """The ImageNotFound for ``reference``, with the tags that the user may have meant."""
        message = "%s does not exist" % self._spell(repository, reference)
        near = []
        if not is_digest(reference):
            try:
                tags = self.tags(repository)
                near = near_tags(reference, tags)
                if near:
                    message += ". For the same version, the registry has: %s" % ", ".join(near)
                elif tags:
                    message += ". The repository exists (%d tags), but has none for that version" % len(tags)
            except ImageNotFound:
                message += ": the registry has no repository %s" % repository
            except RegistryError:
                pass  # not every registry lets every user list tags
        return ImageNotFound(message, reference=self._spell(repository, reference), near_tags=near)

    def _spell(self, repository, reference):
        return "%s/%s%s%s" % (self.registry, repository, "@" if is_digest(reference) else ":", reference)

    @contextlib.contextmanager
    def _request(self, method, path, repository, headers=None, actions="pull", data=None, limited=True, seconds=None):
        """The open response to one request. Answers at most one authentication challenge.

        ``limited``: whether the whole of it has the time limit of small requests. If not, or with ``data``, it
        may take ``seconds``, None for no limit. A registry that limits the rate of requests is waited for.
        """
        pause = _FIRST_PAUSE
        with contextlib.ExitStack() as stack:
            while True:
                watch = stack.enter_context(self._connection.watch(limited and not data, self._within_budget(seconds)))
                try:
                    response = self._response(watch, method, path, repository, headers or {}, actions, data)
                    break
                except RegistryBusy as exc:
                    stack.close()
                    pause = pause if exc.retry_after is None else max(exc.retry_after, 1)
                    if pause > self._within_budget(_MAX_BUSY - self._waited):
                        raise
                    self._sleep(pause)
                    self._waited += pause
                    pause *= 2
            self._waited = 0
            yield stack.enter_context(response)

    def _within_budget(self, seconds):
        """``seconds``, None for no limit, or what is left of the budget if that is less."""
        if self._end is None:
            return seconds
        left = max(self._end - time.monotonic(), 0.1)
        return left if seconds is None else min(seconds, left)

    def _response(self, watch, method, path, repository, headers, actions, data):
        for attempt in (1, 2):
            header = self._authentication.header(repository, actions)
            if hasattr(data, "seek"):
                data.seek(0)
            try:
                return self._open(watch, method, urllib.parse.urljoin(self.base, path), headers, header, data)
            except urllib.error.HTTPError as exc:
                with exc:
                    challenge = exc.headers.get_all("WWW-Authenticate") or []
                    if exc.code in (401, 403) and not self._connection.is_own(exc.url):
                        # A blob store, for example. Its challenge is not answered: that would give it the password.
                        raise registry_errors.denied_elsewhere(exc, self.registry, method, repository) from None
                    if exc.code == 401 and attempt == 1:
                        self._authentication.answer(challenge, repository, actions, watch)
                        continue
                    raise self._connection.error(exc, method, repository) from None

    def _open(self, watch, method, url, headers, authorization, data):
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        if authorization and self._connection.is_own(url):
            # Unredirected: the store that a blob request may be redirected to must not see the credentials.
            request.add_unredirected_header("Authorization", authorization)
        return self._connection.send(request, watch)


class _Verified:
    """The file ``stream`` as it is sent: its last bytes are not if it has another digest. Registries may check nothing."""

    def __init__(self, stream, digest, size, registry):
        self._stream = stream
        self._digest = digest
        self._size = size
        self._registry = registry
        self.seek(0)

    def seek(self, position):
        self._stream.seek(position)
        self._left = self._size
        self._found = hashlib.sha256()

    def read(self, size):
        content = self._stream.read(min(size, self._left))
        self._left -= len(content)
        self._found.update(content)
        if not content and self._left or not self._left and "sha256:" + self._found.hexdigest() != self._digest:
            raise RegistryError(
                "The file of the blob %s changed while it was sent to registry %s, which did not get all of it: run again"
                % (self._digest, self._registry)
            )
        return content
