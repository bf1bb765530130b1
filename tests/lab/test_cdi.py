# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container gets from the CDI spec of an installed node, and the module on hosts where it must not write."""

from __future__ import annotations

import json

import pytest

from support.paths import CHECKOUT

pytestmark = pytest.mark.usefixtures("installed")

NODE = "npu-c"  # ctr of containerd 2.x resolves CDI names, that of 1.7 does not
SPEC = "/etc/cdi/huawei.com-npu.json"
HOOK = "/var/lib/npuops/bin/npu-cdi-hook"
HOOK_SCRIPT = (CHECKOUT / "roles/npu_runtime/files/npu-cdi-hook").read_text(encoding="utf-8")


@pytest.fixture
def image(lab):
    """The test image, on the node."""
    reference = "{}/lab/test:lab".format(lab.variable("npu_driver_repository").split("/")[0])
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cdi-image", "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "imagePullSecrets": [{"name": "lab-registry"}],
            "containers": [{"name": "main", "image": reference, "command": ["/bin/true"]}],
        },
    }
    lab.kubectl("delete", "pod", "cdi-image", "--ignore-not-found", "--wait=true")
    lab.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    try:
        lab.wait_for(lambda: lab.pod("cdi-image")["status"]["phase"] == "Succeeded", 120, "the image is on the node")
        yield reference
    finally:
        lab.kubectl("delete", "pod", "cdi-image", "--ignore-not-found", "--wait=false")


@pytest.mark.core
def test_container_with_one_chip(lab, image):
    script = "ls /dev; env; ls /usr/local/Ascend/driver/lib64/driver; touch /usr/local/Ascend/driver/x; npu-smi info; echo end"
    output = lab.ssh(NODE, f"ctr -n k8s.io run --rm --device huawei.com/npu=1 {image} cdi-test /bin/sh -c '{script}' 2>&1").stdout
    words = output.split()
    assert [word for word in words if word.startswith("davinci")] == ["davinci1", "davinci_manager"], output
    assert {"hisi_hdc", "devmm_svm", "libascend_hal.so", "end"} <= set(words), output
    # npu-smi finds its libraries without it, and says so itself: there is no network here, its silicon is not reached.
    assert "LD_LIBRARY_PATH" not in output and "dcmi module initialize failed" in output
    assert "Read-only file system" in output
    assert "error while loading shared libraries" not in output
    assert "ASCEND_VISIBLE_DEVICES" not in output


def test_all_chips(lab, image):
    command = f"ctr -n k8s.io run --rm --device huawei.com/npu=all {image} cdi-test /bin/ls /dev"
    assert len([name for name in lab.ssh(NODE, command).stdout.split() if name.startswith("davinci")]) == 4 + 1


def test_a_file_of_the_host_comes_and_goes(lab, image):
    """Without an install in between. A container whose mount has no source would not start."""

    def seen():
        command = f"ctr -n k8s.io run --rm --device huawei.com/npu=1 {image} cdi-test /bin/cat /etc/hccn.conf 2>&1; true"
        return lab.ssh(NODE, command).stdout

    lab.ssh(NODE, "echo address_0=10.10.0.10 > /etc/hccn.conf")
    try:
        lab.wait_for(lambda: "/etc/hccn.conf" in lab.ssh(NODE, f"cat {SPEC}").stdout, 60, "the spec has the new file")
        assert "address_0=10.10.0.10" in seen()
        assert lab.module(NODE, "npu_validate", fail=False)["valid"]
    finally:
        lab.ssh(NODE, "rm /etc/hccn.conf")
    lab.wait_for(lambda: "/etc/hccn.conf" not in lab.ssh(NODE, f"cat {SPEC}").stdout, 60, "the spec has lost the file")
    assert "No such file" in seen()
    assert lab.module(NODE, "npu_validate", fail=False)["valid"]
    assert not lab.module(NODE, "npu_cdi_spec")["changed"]


def test_second_spec_of_the_same_kind(lab):
    lab.ssh(NODE, "printf 'cdiVersion: 0.6.0\\nkind: huawei.com/npu\\ndevices: []\\n' > /etc/cdi/theirs.yaml")
    try:
        result = lab.module(NODE, "npu_cdi_spec")
        assert result["failed"] and "/etc/cdi/theirs.yaml" in result["msg"]
        failed = [check["name"] for check in lab.module(NODE, "npu_validate", fail=False)["checks"] if not check["ok"]]
        assert failed == ["cdi_files"]
    finally:
        lab.ssh(NODE, "rm /etc/cdi/theirs.yaml")


def test_removed_and_written_again(lab):
    before = lab.ssh(NODE, f"cat {SPEC}").stdout
    assert lab.module(NODE, "npu_cdi_spec", state="absent")["changed"]
    assert not lab.module(NODE, "npu_cdi_spec", state="absent")["changed"]
    assert lab.ssh(NODE, f"test ! -e {HOOK}").returncode == 0
    assert HOOK in lab.module(NODE, "npu_cdi_spec")["msg"]
    result = lab.module(NODE, "npu_validate")
    assert result["failed"] and "cdi_spec: there is no CDI spec" in result["msg"]
    assert lab.module(NODE, "npu_cdi_spec", hook_script=HOOK_SCRIPT)["changed"]
    assert lab.ssh(NODE, f"cat {SPEC}; ls -A /etc/cdi").stdout == before + "huawei.com-npu.json\n"
    assert not lab.module(NODE, "npu_cdi_spec")["changed"]


def test_host_without_a_chip(lab):
    result = lab.module("cpu-a", "npu_cdi_spec")
    assert not result["changed"] and result["devices"] == []
    assert lab.module("cpu-a", "npu_validate")["valid"]
    assert lab.ssh("cpu-a", "ls /etc/cdi", check=False).returncode != 0
