# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of images in a mirror."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored

DIGEST = "@sha256:" + "ab" * 32
SITE = "registry.site.example:5000/npuops"
MAPPING = {
    "quay.example": SITE,
    "quay.example/ascend/": "registry.site.example:5000/ascend/",
    "docker.io": "registry.site.example:5000/hub",
}


@pytest.mark.parametrize(
    "image, mirror, expected",
    [
        ("quay.example/a/b:1", SITE, SITE + "/a/b:1"),
        ("quay.example/a/b:1", SITE + "/", SITE + "/a/b:1"),
        ("quay.example/a/b:1" + DIGEST, SITE, SITE + "/a/b:1" + DIGEST),
        ("quay.example/a/b" + DIGEST, "localhost", "localhost/a/b" + DIGEST),
        ("python", SITE, SITE + "/library/python:latest"),
        # Nothing is set.
        ("quay.example/a/b", "", "quay.example/a/b"),
        ("quay.example/a/b", None, "quay.example/a/b"),
        ("quay.example/a/b", {}, "quay.example/a/b"),
        ("", SITE, ""),
        (None, SITE, None),
        # In the mirror already.
        (SITE + "/a/b:1", SITE, SITE + "/a/b:1"),
        (SITE + "/a/b:1", MAPPING, SITE + "/a/b:1"),
        ("registry.site.example:5000/npuops-other/b:1", SITE, SITE + "/npuops-other/b:1"),
        # The longest prefix counts, and ends with a whole name.
        ("quay.example/ascend/b:1", MAPPING, "registry.site.example:5000/ascend/b:1"),
        ("quay.example/ascendhub/b:1", MAPPING, SITE + "/ascendhub/b:1"),
        ("a/b:1", MAPPING, "registry.site.example:5000/hub/a/b:1"),
        ("other.example/a/b:1", MAPPING, "other.example/a/b:1"),
    ],
)
def test_names(image, mirror, expected):
    found = mirrored(image, mirror)
    assert found == expected
    assert mirrored(found, mirror) == expected


@pytest.mark.parametrize(
    "mirror, message",
    [
        ("https://r.example/x", "npu_registry_mirror names 'https://r.example/x'; .* no https://, no tag"),
        ("r.example/x:1", "no tag"),
        ("r.example/x" + DIGEST, "no tag"),
        ("r.example/X", "a prefix is a registry"),
        ("mirror", "a prefix is a registry"),
        ("mirror/x", "a prefix is a registry"),
        ("/srv/x", "a prefix is a registry"),
        ({"r.example": 7}, "names 7"),
        ({7: "r.example"}, "names 7"),
        (["r.example"], "or a mapping of prefixes"),
        (7, "or a mapping of prefixes"),
        ("r.example/" + "x/" * 120 + "x", "more than 255 characters"),
    ],
)
def test_what_is_no_mirror(mirror, message):
    with pytest.raises(NpuError, match=message):
        mirrored("quay.example/ascend/b:1", mirror)
