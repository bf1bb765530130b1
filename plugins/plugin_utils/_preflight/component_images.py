# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes can pull the images of the components: the names, the tags in the fleet's own registry, the pull secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import Reference, parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster

# Of documentation, by RFC 2606: no registry has such a name.
_PLACEHOLDER = re.compile(r"(.*\.)?example\.(com|net|org)(:[0-9]+)?")


def look(images: Mapping[str, Iterable[str]], config: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(reasons, notes): why nodes cannot pull ``images``, {reference: the components that need it}, and what was not checked.

    ``config``: of a host, complete as _settings.host_config makes it: the mirror, and the account of the registry that the fleet
    pulls drivers from. Only that registry is asked: for others, the nodes have other ways and other accounts.
    """
    reasons: list[str] = []
    notes: list[str] = []
    own = _own_registry(config)
    client: RegistryClient | None = None
    for text, needed_by in images.items():
        what = "the image of the %s" % " and the ".join(needed_by)
        try:
            reference = parse_reference(mirrored(text, config["registry_mirror"]))
        except NpuError as exc:
            reasons.append("%s: %s" % (what, one_line(exc.message)))
            continue
        if _PLACEHOLDER.fullmatch(reference.registry):
            reasons.append("%s is a placeholder, %s: name it as it is in your registry" % (what, reference))
        elif own and reference.registry == own:
            client = client or _client(own, config)
            problem, known = _problem(client, reference)
            if problem and known:
                reasons.append("%s: %s" % (what, problem))
            elif problem:
                notes.append("%s was not checked: %s" % (what, problem))
                own = None  # its other images are not asked for either
    return reasons, notes


def _problem(client: RegistryClient, reference: Reference) -> tuple[str | None, bool]:
    """(what is wrong, whether that is about the image and not about the registry)."""
    try:
        client.resolve(reference.repository, reference.digest or reference.tag)
    except ImageNotFound as exc:
        return one_line(exc.message), True
    except NpuError as exc:
        return one_line(exc.message), False
    return None, True


def _own_registry(config: Mapping[str, Any]) -> str | None:
    """The registry that the account in ``config`` is for; None if the drivers come from none."""
    text = config["driver_image"] or config["driver_repository"]
    try:
        return parse_reference(mirrored(text, config["registry_mirror"])).registry if text else None
    except NpuError:
        return None  # told of the drivers


def _client(registry: str, config: Mapping[str, Any]) -> RegistryClient:
    return RegistryClient(
        registry,
        username=config["registry_username"],
        password=config["registry_password"],
        plain_http=config["registry_plain_http"],
        ca_file=config["registry_ca_file"],
    )


def look_at_secrets(cluster: AnyCluster, namespace: str, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """(reasons, notes): which of the pull secrets ``names`` are missing in the ``namespace``, and what was not checked."""
    reasons: list[str] = []
    for name in names:
        try:
            if cluster.get("/api/v1/namespaces/%s/secrets/%s" % (namespace, name)) is None:
                text = (
                    "npu_image_pull_secrets names %s, which does not exist in the namespace %s: kubectl create secret"
                    " docker-registry %s -n %s ..., or correct the name"
                )
                reasons.append(text % (name, namespace, name, namespace))
        except NpuError as exc:
            if "missing" not in exc.details:
                raise
            permission = kube_client.describe_permission("get", "secrets", "", namespace)
            return [], ["whether npu_image_pull_secrets exist was not checked: the Kubernetes user may not %s" % permission]
    return reasons, []
