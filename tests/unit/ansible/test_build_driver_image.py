# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbooks/build_driver_image.yml shows."""

from __future__ import annotations

import json

from support.scripted import Scripted

REPOSITORY = "registry.example.com/mlops/ascend-driver"


def test_the_images_are_shown_with_their_digests(tmp_path):
    """For npu_driver_digest, and for cosign."""
    built = [
        {"changed": True, "image": f"{REPOSITORY}:25.5.0-{chip}", "digest": "sha256:" + letter * 64}
        for chip, letter in (("910b", "a"), ("310p", "b"))
    ]
    scripted = Scripted(tmp_path, {"npu_driver_image_build": {"localhost": built}})
    extra = {"npu_driver_repository": REPOSITORY, "npu_driver_image_build": [{"package": "/srv/a.run"}, {"package": "/srv/b.run"}]}
    done = scripted.run("npuops.ascend.build_driver_image", {}, "-e", json.dumps(extra))
    assert done.returncode == 0, done.stdout + done.stderr
    for one in built:
        assert "%(image)s@%(digest)s" % one in done.stdout
