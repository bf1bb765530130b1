# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bundle of a node of the lab has all parts, but not the secret that was planted on the host and in the cluster."""

from __future__ import annotations

import json
import stat
import tarfile

import pytest

pytestmark = pytest.mark.usefixtures("installed")

NODE = "npu-a"
SECRET = "pl4nt3d-0f-th1s-t3st"
LOG = "/var/log/npu/npuops-test.log"
STATE = "/var/lib/npuops/npuops-test"


@pytest.fixture
def planted(lab):
    """In a log, in a state file, in the journal, and on the Node."""
    text = f"Authorization: Bearer {SECRET}"
    lab.ssh(NODE, f"mkdir -p /var/log/npu && echo '{text}' >{LOG} && echo 'registry_password = \"{SECRET}\"' >{STATE}")
    lab.ssh(NODE, f"systemd-run --wait --unit npuops-test sh -c 'echo HUB_TOKEN={SECRET}'")
    lab.kubectl("annotate", "node", NODE, f"npuops.test/note=password={SECRET}", "--overwrite")
    yield
    lab.kubectl("annotate", "node", NODE, "npuops.test/note-")
    lab.ssh(NODE, f"rm -f {LOG} {STATE}")


def collected(lab, directory, *arguments):
    """(what the run printed, {member: text} of the only bundle)."""
    result = lab.playbook("collect", f"--limit={NODE}", *arguments, npu_collect_dir=str(directory))
    (path,) = directory.glob(f"{NODE}-*.tar.gz")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and f"{NODE}: {path}" in result.stdout, result.stdout
    with tarfile.open(path) as tar:
        members = tar.getmembers()
        assert all(member.isreg() for member in members)
        return result.stdout, {member.name.partition("/")[2]: tar.extractfile(member).read().decode() for member in members}


def test_the_bundle_of_a_node(lab, planted, tmp_path):
    before = lab.ssh(NODE, "find /tmp /var/tmp /root -newer /run/npuops/driver-ready -type f | sort").stdout
    _told, texts = collected(lab, tmp_path / "bundles")
    assert set(texts) >= {
        "manifest.json", "host/facts.json", "host/checks.json", "host/npu-smi/info.txt", "host/npu-smi/board-0.txt",
        "host/journal/npu-driver.log", "host/journal/kubelet.log", "host/journal/kernel-this-boot.log", "host/run/driver-ready",
        "host/cdi/huawei.com-npu.json", "host/logs/var-log-npu/npuops-test.log", "host/state/npuops-test", "cluster/node.json",
        "cluster/events.json", "cluster/daemonsets.json", "cluster/pods.json",
    }, (sorted(texts), texts["manifest.json"])  # fmt: skip
    assert json.loads(texts["host/facts.json"])["chip_count"] == 8
    assert all(check["ok"] for check in json.loads(texts["host/checks.json"])["checks"])
    assert [name for name, text in texts.items() if SECRET in text] == []
    assert "HUB_TOKEN=***" in texts["host/journal/npuops.log"]
    assert lab.ssh(NODE, "find /tmp /var/tmp /root -newer /run/npuops/driver-ready -type f | sort").stdout == before


def test_an_npu_smi_that_hangs_is_left_out_with_the_reason(lab, tmp_path):
    lab.fault(NODE, "smi-hangs")
    try:
        told, texts = collected(lab, tmp_path)
    finally:
        lab.fault(NODE, "clear")
        lab.wait_for(lambda: lab.module(NODE, "npu_validate", fail=False).get("valid"), 120, f"{NODE} is whole again")
    assert "npu-smi info" in told and "host/journal/kubelet.log" in texts and "host/npu-smi/info.txt" not in texts
