# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive of a node and its index."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._collect import node_bundle


@pytest.fixture
def part():
    made = Gathered(1000, 60)
    made.add("host/journal/kubelet.log", "ä line\n", "journal of kubelet", cut=True)
    made.leave_out("npu-smi", "it hangs")
    made.leave_out("/var/log/npu", "it does not exist", absent=True)
    return made


def test_the_archive_has_regular_files_of_ours_only(part):
    index = node_bundle.manifest(part, {"node": "npu-a"})
    data = node_bundle.archive(part, index, "npu-a-1", 1000)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        texts = {member.name: tar.extractfile(member).read() for member in members}
    assert [(member.name, member.type, member.mode, member.uid, member.mtime) for member in members] == [
        ("npu-a-1/manifest.json", tarfile.REGTYPE, 0o600, 0, 1000),
        ("npu-a-1/host/journal/kubelet.log", tarfile.REGTYPE, 0o600, 0, 1000),
    ]
    assert texts["npu-a-1/host/journal/kubelet.log"].decode() == "ä line\n"
    assert json.loads(texts["npu-a-1/manifest.json"]) == {
        "schema": 1,
        "node": "npu-a",
        "files": [{"name": "host/journal/kubelet.log", "bytes": 8, "source": "journal of kubelet", "cut": True}],
        "left_out": [
            {"what": "npu-smi", "why": "it hangs", "absent": False},
            {"what": "/var/log/npu", "why": "it does not exist", "absent": True},
        ],
        "more_left_out": 0,
    }


def test_only_its_user_may_read_it(tmp_path):
    path = node_bundle.write(str(tmp_path / "new" / "place"), "npu-a-1.tar.gz", b"x")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and os.listdir(tmp_path / "new" / "place") == ["npu-a-1.tar.gz"]
    assert stat.S_IMODE(os.stat(tmp_path / "new" / "place").st_mode) == 0o700


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "npu-a-1.tar.gz").symlink_to(tmp_path / "outside")
    node_bundle.write(str(tmp_path), "npu-a-1.tar.gz", b"x")
    assert (tmp_path / "outside").read_text() == "kept" and not (tmp_path / "npu-a-1.tar.gz").is_symlink()


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NpuError, match="Set npu_collect_dir"):
        node_bundle.write(str(tmp_path / "file"), "npu-a-1.tar.gz", b"x")


def test_the_line_of_a_node_says_what_is_missing(part):
    lacks = node_bundle.missing(part)
    assert lacks == ["npu-smi: it hangs"]
    assert node_bundle.line("npu-a", "/x.tar.gz", 2**20, lacks) == "npu-a: /x.tar.gz (1.0 MiB), without: npu-smi: it hangs"
    assert node_bundle.line("npu-a", "/x.tar.gz", 0, []) == "npu-a: /x.tar.gz (0.0 MiB), complete"
    assert node_bundle.line("npu-a", "/x", 0, list("abcdefg")).endswith("e; and 2 more, see manifest.json")


def test_what_is_not_even_listed_is_counted(part):
    part.more_left_out = 40
    assert node_bundle.manifest(part, {})["more_left_out"] == 40
    lacks = node_bundle.missing(part)
    assert lacks == ["npu-smi: it hangs", "40 more: the list of what is left out ends before them"]
    assert node_bundle.line("npu-a", "/x", 0, lacks, 40).endswith("npu-smi: it hangs; " + lacks[-1])
    many = list("abcdef") + lacks[1:]
    assert node_bundle.line("npu-a", "/x", 0, many, 40).endswith("d; e; and 41 more, see manifest.json")
