# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references such as ``registry.example.com/mlops/ascend-driver:25.5.0@sha256:...``: parse, print, suggest tags."""

from __future__ import annotations

import collections
import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import is_digest

_MAX_NEAR_TAGS = 8

# Of registry, slash and repository together: clients refuse longer ones
# (https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests).
_MAX_NAME = 255

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])"
_REGISTRY = re.compile(_HOST + r"(?::[0-9]{1,5})?\Z")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


class Reference(collections.namedtuple("Reference", "registry repository tag digest")):
    """A parsed image reference; ``tag`` or ``digest`` may be None, but not both."""

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
    """The ``Reference`` in ``text``, with the defaults of container engines; raises NpuError if it is not valid.

    The default registry is docker.io. The default tag is "latest", unless there is a digest.
    """
    rest, at, digest = text.partition("@")
    if at and not is_digest(digest):
        raise NpuError("%r is not a valid image reference: @ must be followed by sha256: and 64 hexadecimal digits" % text)
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
        raise NpuError("%r is not a valid image reference: %r is not a host name with an optional port" % (text, registry))
    if not _REPOSITORY.match(repository):
        raise NpuError(
            "%r is not a valid image reference: %r is not a repository name (lower-case letters, digits, . _ - and /)"
            % (text, repository)
        )
    if len(registry) + 1 + len(repository) > _MAX_NAME:
        raise NpuError(
            "%s is not a valid image reference: registry and repository have more than %d characters" % (printable(text), _MAX_NAME)
        )
    if colon and not is_tag(tag):
        raise NpuError("%r is not a valid image reference: %r is not a tag" % (text, tag))
    if not colon:
        tag = None if digest else "latest"
    return Reference(registry, repository, tag, digest or None)


def is_registry(text):
    """Whether ``text`` can be the registry of a reference: a host name with an optional port."""
    return isinstance(text, str) and bool(_REGISTRY.match(text)) and parse_reference(text + "/x").registry == text


def is_tag(text):
    """Whether ``text`` can be a tag."""
    return isinstance(text, str) and bool(_TAG.match(text))


def near_tags(tag, tags):
    """At most eight of ``tags`` that the user may have meant by the driver image tag ``tag``, best first.

    Tags of driver images are <version>-<chip>-<kernel>-<os>. Tags with the same version and chip come first, then those with
    the same version.
    """
    parts = tag.split("-")
    chip = [other for other in tags if other.split("-")[:2] == parts[:2]]
    version = [other for other in tags if other.split("-")[0] == parts[0] and other not in chip]
    return (sorted(chip) + sorted(version))[:_MAX_NEAR_TAGS]
