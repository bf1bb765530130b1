# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write image indexes: one name for the images of several architectures.

Source: https://github.com/opencontainers/image-spec/blob/main/image-index.md
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests


def entry(descriptor, platform):
    """The entry for the image with that ``manifests.Descriptor``. ``platform``: dict with os, architecture and perhaps variant."""
    return {
        "mediaType": descriptor.media_type,
        "digest": descriptor.digest,
        "size": descriptor.size,
        "platform": {name: platform[name] for name in ("os", "architecture", "variant") if platform.get(name)},
    }


def content(entries, annotations=None):
    """The index as bytes. The same entries always give the same index, whichever was there first."""
    document = {
        "schemaVersion": 2,
        "mediaType": manifests.OCI_INDEX,
        "manifests": sorted(entries, key=manifests.platform_name),
    }
    if annotations:
        document["annotations"] = annotations
    return manifests.encode(document)


def replaced(entries, new):
    """The ``entries`` with ``new`` instead of those that a host of its architecture would choose."""
    architecture = new["platform"]["architecture"]
    return [one for one in entries if not manifests.is_for(one, architecture)] + [new]
