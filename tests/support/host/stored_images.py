# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images in a test's registry: whatever has manifests and layers is one."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._image import index, manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import Descriptor


def put_image(registry, repository, tag, *layers, note=""):
    """Store an image with the layers (bytes) and return its digest; ``note`` makes another one of the same layers."""
    config = manifests.encode({"os": "linux", "architecture": "amd64", "note": note})
    registry.put_blob(config)
    document = {
        "schemaVersion": 2,
        "mediaType": manifests.OCI_MANIFEST,
        "config": {"mediaType": manifests.OCI_CONFIG, "digest": manifests.sha256(config), "size": len(config)},
        "layers": [
            {"mediaType": manifests.OCI_LAYER, "digest": registry.put_blob(content), "size": len(content)} for content in layers
        ],
    }
    return registry.put_manifest(repository, tag, document)


def put_index(registry, repository, tag, images):
    """Store an index of ``images``, architecture -> layers (bytes); returns its digest."""
    entries = []
    for architecture, layers in images.items():
        digest = put_image(registry, repository, tag, *layers, note=architecture)
        size = len(registry.manifests[(repository, digest)][0])
        platform = {"os": "linux", "architecture": architecture}
        entries.append(index.entry(Descriptor(digest, manifests.OCI_MANIFEST, size), platform))
    return registry.put_manifest(repository, tag, index.content(entries), manifests.OCI_INDEX)


def put_signature(registry, repository, digest, *signatures):
    """Store what cosign would: a layer for each of the signatures (texts). Returns the digest of their manifest."""
    config = registry.put_blob(b"{}")
    document = {
        "schemaVersion": 2,
        "mediaType": manifests.OCI_MANIFEST,
        "config": {"mediaType": manifests.OCI_CONFIG, "digest": config, "size": 2},
        "layers": [
            {
                "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
                "digest": registry.put_blob(("about %s" % digest).encode()),
                "size": len("about %s" % digest),
                "annotations": {"dev.cosignproject.cosign/signature": text},
            }
            for text in signatures
        ],
    }
    return registry.put_manifest(repository, digest.replace(":", "-") + ".sig", document)
