# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of an image in a registry mirror: the setting npu_registry_mirror.

A mirror is one prefix for the images of all registries, or a mapping from prefixes of names to prefixes of names. A prefix takes
the place of the registry, as a proxy cache of Harbor and the ``override_path`` of containerd's hosts.toml expect it:
``swr.example.com/ascendhub/npu-exporter:v1`` is ``registry.example.com/mirror/ascendhub/npu-exporter:v1``.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference

VARIABLE = "npu_registry_mirror"


def mirrored(text, mirror, variable=VARIABLE):
    """The reference ``text`` as it is in the ``mirror``: a prefix, a dict of prefixes, or nothing. Raises NpuError.

    An image that is in the mirror already keeps its name, so a second call changes nothing. ``variable``: for messages.
    """
    rules = _rules(mirror, variable)
    if not text or not rules:
        return text
    reference = parse_reference(text)
    if _is_in(rules, reference):
        return text
    for upstream, prefix in rules:
        rest = reference.repository if upstream is None else _below(reference.name, upstream)
        if rest is not None:
            tail = str(reference)[len(reference.name) :]
            # As a check: a long name may become too long.
            return str(parse_reference(prefix + "/" + rest + tail))
    return text


def is_in_mirror(text, mirror, variable=VARIABLE):
    """Whether the reference ``text`` names an image of the ``mirror`` itself, not one upstream. Raises NpuError."""
    return _is_in(_rules(mirror, variable), parse_reference(text))


def _is_in(rules, reference):
    return any(_below(reference.name, prefix) is not None for _upstream, prefix in rules)


def _rules(mirror, variable):
    """(prefix of names or None for all, prefix in the mirror), the longest first."""
    if not mirror:
        return []
    if isinstance(mirror, str):
        return [(None, _prefix(mirror, variable))]
    if not isinstance(mirror, dict):
        raise NpuError(
            "%s is %r; it must be a prefix, such as registry.example.com/mirror, or a mapping of prefixes to prefixes"
            % (variable, mirror)
        )
    rules = [(_prefix(upstream, variable), _prefix(prefix, variable)) for upstream, prefix in mirror.items()]
    return sorted(rules, key=lambda rule: (-len(rule[0]), rule[0]))


def _prefix(text, variable):
    """A registry, perhaps with the beginning of a repository's name, without the last slash."""
    problem = NpuError(
        "%s names %r; a prefix is a registry, perhaps with a path, such as registry.example.com/mirror: no https://, no tag"
        % (variable, text)
    )
    if not isinstance(text, str):
        raise problem
    prefix = text.strip().rstrip("/")
    first = prefix.partition("/")[0]
    if not ("." in first or ":" in first or first == "localhost"):
        raise problem
    try:
        found = parse_reference(prefix + "/x:x")
    except NpuError:
        raise problem from None
    if not str(found).startswith(prefix + "/") or found.digest:
        raise problem
    return prefix


def _below(name, prefix):
    """What follows the prefix in the name of a repository, or None if it does not begin with it."""
    return name[len(prefix) + 1 :] if name.startswith(prefix + "/") else None
