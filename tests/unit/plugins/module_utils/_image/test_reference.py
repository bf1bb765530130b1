# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references: what is one, and which tags come near."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import near_tags, parse_reference

SHA = "sha256:" + "a" * 64
TAG = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"


@pytest.mark.parametrize(
    "text, registry, repository, tag, digest",
    [
        ("busybox", "docker.io", "library/busybox", "latest", None),
        ("a" * 237, "docker.io", "library/" + "a" * 237, "latest", None),
        ("alauda/ascend-driver:1", "docker.io", "alauda/ascend-driver", "1", None),
        ("docker.io/busybox:1", "docker.io", "library/busybox", "1", None),
        ("index.docker.io/a/b:1", "docker.io", "a/b", "1", None),
        ("localhost/a", "localhost", "a", "latest", None),
        ("localhost:5000/a:b", "localhost:5000", "a", "b", None),
        ("r.example/mlops/d:" + TAG, "r.example", "mlops/d", TAG, None),
        ("10.0.0.1:5000/d@" + SHA, "10.0.0.1:5000", "d", None, SHA),
        ("[fd00::1]:5000/d:x@" + SHA, "[fd00::1]:5000", "d", "x", SHA),
        ("r.example:443/a/b/c_d__e-f.g:T", "r.example:443", "a/b/c_d__e-f.g", "T", None),
    ],
)
def test_references(text, registry, repository, tag, digest):
    found = parse_reference(text)
    assert (found.registry, found.repository, found.tag, found.digest) == (registry, repository, tag, digest)
    assert found.name == registry + "/" + repository
    assert parse_reference(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r.example/",
        "r.example/A:b",
        "a:b c",
        "a@sha256:12",
        "a@md5:" + "a" * 64,
        "r.example:x/a",
        "-r.example/a",
        "a::b",
        "https://r.example/a:1",
        "r.example/a:",
        "r.example/a:" + "x" * 129,
        "r.example/" + "a" * 246,
        "a" * 238,
    ],
)
def test_what_is_no_reference(text):
    with pytest.raises(NpuError, match="not a valid image reference"):
        parse_reference(text)


def test_near_tags_are_few():
    tags = ["25.5.0-910b-%d" % number for number in range(50)]
    assert len(near_tags(TAG, tags)) == 8
