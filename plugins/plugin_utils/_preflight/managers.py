# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller that keeps an object of the cluster unchanged, by its marks on the object, which any client may have written."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

_LONGEST = 128
# Of Argo CD 3 and, where it tracks by annotation, 2; of Flux.
_ARGO = "argocd.argoproj.io/tracking-id"
_FLUX = (("kustomize.toolkit.fluxcd.io/name", "the Flux Kustomization"), ("helm.toolkit.fluxcd.io/name", "the Flux HelmRelease"))
# Kubernetes' addon manager, and those of k3s, RKE2 and Rancher's Fleet; the Operator Lifecycle Manager.
_ADDON_MODE = ("addonmanager.kubernetes.io/mode", "Reconcile")
_ADDON = "objectset.rio.cattle.io/owner-name"
_OLM = "olm.owner"
_HELM = "meta.helm.sh/release-name"


def keeper(item: Object) -> str | None:
    """The controller that undoes what others change in an object, such as ``NPUClusterPolicy cluster``; None when none is known."""
    for owner in item["metadata"].get("ownerReferences") or []:
        if owner.get("controller") is True:
            return _told("%s %s" % (owner.get("kind"), owner.get("name")))
    tracking = kube_client.annotations(item).get(_ARGO)
    if tracking:
        return "the Argo CD application " + _told(tracking.partition(":")[0])
    for label, what in _FLUX:
        name = kube_client.labels(item).get(label)
        if name:
            return "%s %s" % (what, _told(name))
    if kube_client.labels(item).get(_ADDON_MODE[0]) == _ADDON_MODE[1]:
        return "the addon manager of Kubernetes"
    addon, operator = kube_client.annotations(item).get(_ADDON), kube_client.labels(item).get(_OLM)
    if addon:
        return "the addon %s of k3s, RKE2 or Rancher" % _told(addon)
    return "the OLM operator %s" % _told(operator) if operator else None


def helm_release(item: Object) -> str | None:
    """The release that Helm has deployed an object with. Helm itself undoes nothing."""
    name = kube_client.annotations(item).get(_HELM)
    return _told(name) if name else None


def _told(text: Any) -> str:
    return one_line(text)[:_LONGEST]
