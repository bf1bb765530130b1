# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import metrics_file


@pytest.mark.parametrize("path", ["/srv/npu.txt", "/srv/npu.prom.bak", "/srv/", "/srv/.prom", ".prom", "prom", "/srv/npu.PROM"])
def test_a_name_that_no_collector_reads_is_refused(path):
    with pytest.raises(NpuError) as caught:
        metrics_file.check(path)
    message = caught.value.message
    assert message.startswith("npu_status_metrics_file is %s, and the textfile collector of node_exporter only reads" % path)
    assert message.endswith("Name the file, for example, %s." % os.path.join(os.path.dirname(path), "npuops.prom"))


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(NpuError, match="for example, %s/npuops.prom" % tmp_path):
        metrics_file.check(str(tmp_path))


@pytest.mark.parametrize("path", [None, "/srv/npu.prom", "npu.prom", "~/a b.prom"])
def test_other_names(path):
    metrics_file.check(path)


def test_it_is_replaced_and_all_may_read_it(tmp_path):
    path = tmp_path / "npu.prom"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o600)
    before = path.stat().st_ino
    previous = os.umask(0o077)
    try:
        metrics_file.write(str(path), "new\n")
    finally:
        os.umask(previous)
    assert path.read_text(encoding="utf-8") == "new\n" and path.stat().st_mode & 0o777 == 0o644
    # Written beside its place, so that nothing reads half of it, and nothing is left.
    assert path.stat().st_ino != before and os.listdir(tmp_path) == ["npu.prom"]


def test_without_its_directory(tmp_path):
    path = tmp_path / "missing" / "npu.prom"
    with pytest.raises(
        NpuError, match="%s on the controller: No such file or directory. Name a file in npu_status_metrics_file" % path
    ):
        metrics_file.write(str(path), "x")
