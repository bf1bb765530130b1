# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Staging over SSH on real hosts with containerd 1.7 (npu-b) and 2.x (npu-c), into a directory of these tests."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import os
import socket
import threading
import uuid

import pytest
import yaml

from support.host import driver_images, registry_server
from support.patience import PATIENCE

# npu-c has no Python of its own.
pytestmark = pytest.mark.usefixtures("installed")
NODES = ("npu-b", "npu-c")
ROOT = "/var/lib/npuops-staging-test"
REPOSITORY = "mlops/ascend-driver"
TAG = "25.5.0-910b-test"
CTR = "ctr -n npuops"
# Where it is enough that both lines of containerd and both kinds of registry occur, and where neither makes a difference.
PAIRS = pytest.mark.parametrize(("node", "registry"), [("npu-b", "basic"), ("npu-c", "token")], indirect=True)
ONE_NODE = pytest.mark.parametrize("node", ["npu-c"], indirect=True)


@pytest.fixture(scope="module")
def bridge(lab):
    """The address at which the hosts reach this machine."""
    return lab.variable("npu_driver_repository").split(":")[0]


@pytest.fixture(params=["basic", "token"])
def registry(request, bridge):
    with registry_server.Registry(host=bridge, auth=request.param, password="pA55-" + uuid.uuid4().hex) as server:
        yield server


@pytest.fixture
def token(bridge):
    with registry_server.Registry(host=bridge, auth="token", password="pA55-" + uuid.uuid4().hex) as server:
        yield server


@pytest.fixture(params=NODES)
def node(request, lab):
    lab.ssh(request.param, f"umount {ROOT} 2>/dev/null; rm -rf {ROOT}")
    yield request.param
    lab.ssh(request.param, f"umount {ROOT} 2>/dev/null; rm -rf {ROOT}")


@pytest.fixture
def stage(lab, node, tmp_path):
    """Run npu_driver_stage on the node: stage(registry, option=value...) gives the result and all that was printed."""

    def run(registry, *arguments, check=True, **options):
        options = {
            "image": f"{registry.address}/{REPOSITORY}:{TAG}",
            "root": ROOT,
            "registry_username": registry.username,
            "registry_password": registry.password,
            "registry_plain_http": True,
            "timeout": 120,
            **options,
        }
        playbook = tmp_path / f"stage-{uuid.uuid4().hex}.yml"
        tasks = [
            {"npuops.ascend.npu_driver_stage": options, "register": "staged", "ignore_errors": True},
            {"ansible.builtin.debug": {"msg": "staged: {{ staged | to_json | b64encode }}"}},
        ]
        playbook.write_text(yaml.safe_dump([{"hosts": node, "gather_facts": False, "tasks": tasks}]))
        done = lab.ansible(["ansible-playbook", "-i", str(lab.inventory), str(playbook), *arguments], check, 300)
        printed, _heading, told = done.stdout.partition("staged: ")
        return json.loads(base64.b64decode(told.split()[0])) if told else None, printed + done.stderr

    return run


def publish(registry, tmp_path, tag=TAG, change=None, **more):
    """Push a driver image of which no node has any part yet; returns its digest."""
    top = tmp_path / f"image-{uuid.uuid4().hex}"
    tree = driver_images.write_tree(top / "driver", kernel=more.pop("kernel", os.uname().release), **more)
    driver_images.write(tree / "unique", uuid.uuid4().bytes)
    if change:
        change(tree)
    return driver_images.push(registry, REPOSITORY, tag, top)


def assert_clean(lab, node):
    """Nothing left in containerd, no credentials, no mount, no half release."""
    left = lab.ssh(
        node,
        f"for kind in images leases content; do {CTR} $kind ls -q; done; {CTR} snapshots ls | tail -n +2; {CTR} content active | tail -n +2; "
        f"ls -A /run/npuops/staging | grep -v '^lock$'; grep npuops/staging /proc/self/mountinfo; "
        f"ls -A {ROOT}/releases 2>/dev/null | grep '^\\.[on]'; true",
    ).stdout
    assert left == ""


def releases(lab, node):
    return lab.ssh(node, f"ls {ROOT}/releases 2>/dev/null; true").stdout.split()


def failed(result, text):
    assert result["failed"] and text in result["msg"], result["msg"]


@pytest.mark.core
def test_stage_and_again(lab, node, stage, registry, tmp_path):
    digest = publish(registry, tmp_path)
    before = lab.ssh(node, f"find {ROOT} 2>/dev/null; true").stdout
    checked, printed = stage(registry, "--check", "--diff", version="25.5.0")
    assert checked["changed"] and checked["digest"] == digest and checked["size"] > 0 and checked["release"] is None
    assert f"+25.5.0-{os.uname().release}-{digest[7:19]}" in printed
    assert lab.ssh(node, f"find {ROOT} 2>/dev/null; true").stdout == before == ""

    staged = stage(registry, version="25.5.0")[0]
    assert staged["changed"] and staged["version"] == "25.5.0" and staged["digest"] == digest
    assert releases(lab, node) == [staged["release"]]
    tree = staged["tree"]
    assert lab.ssh(node, f"cat {tree}/modules.load").stdout.splitlines()[-1] == "insmod host/drv_vascend.ko optional"
    assert lab.ssh(node, f"find {ROOT} \\( -perm /6022 -not -type l \\) -o -not -user root").stdout == ""
    manifest = json.loads(lab.ssh(node, f"cat {ROOT}/releases/{staged['release']}/manifest.json").stdout)
    sums = "".join(f"{value}  {path}\n" for path, value in manifest["files"].items())
    lab._run(["ssh", "-F", str(lab.state / "ssh_config"), node, f"cd {tree} && sha256sum --quiet -c -"], stdin=sums)
    assert_clean(lab, node)

    registry.requests.clear()
    again = stage(registry, version="25.5.0", digest=digest)[0]
    assert not again["changed"] and again["release"] == staged["release"] and registry.requests == []
    assert not stage(registry)[0]["changed"]


@pytest.mark.core
@PAIRS
def test_nothing_secret_is_left_or_printed(lab, node, stage, registry, tmp_path):
    publish(registry, tmp_path)
    staged, printed = stage(registry, "-vvv")
    assert staged["changed"]
    secrets = {header.split()[1] for dummy, dummy2, header in registry.requests if header} | {registry.password}
    assert len(secrets) >= 2
    journal = lab.ssh(node, "journalctl -o cat --since=-5min").stdout
    left = lab.ssh(node, f"grep -rIlF -e '{registry.password}' /run/npuops /tmp /var/tmp /root {ROOT}; true").stdout
    assert left == ""
    for secret in secrets:
        assert secret not in printed and secret not in journal


@PAIRS
@pytest.mark.parametrize("username", ["alice", "mallory"])
def test_wrong_password(lab, node, stage, registry, tmp_path, username):
    publish(registry, tmp_path)
    result, printed = stage(registry, "-vvv", registry_username=username, registry_password="wr0ng-Pa55word")
    failed(result, f"does not let user '{username}' read")
    assert "wr0ng-Pa55word" not in printed
    assert base64.b64encode(f"{username}:wr0ng-Pa55word".encode()).decode() not in printed
    assert releases(lab, node) == []


@ONE_NODE
def test_registry_down(lab, node, stage, token, bridge):
    with socket.socket() as free:
        free.bind((bridge, 0))
        address = f"{bridge}:{free.getsockname()[1]}"
    failed(stage(token, image=f"{address}/{REPOSITORY}:{TAG}")[0], "refused")
    failed(stage(token, image=f"no-such-registry.invalid/{REPOSITORY}:{TAG}")[0], "does not resolve")


@ONE_NODE
def test_missing_tag(node, stage, token, tmp_path):
    publish(token, tmp_path, tag="25.5.0-910b-other")
    failed(
        stage(token)[0],
        f"{token.address}/{REPOSITORY}:{TAG} does not exist. For the same version, the registry has: 25.5.0-910b-other",
    )


@ONE_NODE
def test_image_of_another_kernel(lab, node, stage, token, tmp_path):
    publish(token, tmp_path, kernel="5.10.0-60.18.0.50.oe2203.x86_64")
    failed(
        stage(token)[0],
        f"no modules for kernel {os.uname().release}; it has modules for 5.10.0-60",
    )
    assert releases(lab, node) == []
    assert_clean(lab, node)


def test_image_for_another_build_of_the_kernel(lab, node, stage, token, tmp_path):
    """The kernel of the node has the release that the image is for, and other symbol versions."""
    symvers = f"/boot/symvers-{os.uname().release}.gz"
    publish(token, tmp_path, versions={"module_layout": 0x11111111})
    lab.ssh(node, f"mkdir -p /boot; printf '0x33333333\\tmodule_layout\\tvmlinux\\tEXPORT_SYMBOL\\t\\n' | gzip >{symvers}")
    try:
        failed(stage(token)[0], f"module_layout is 0x11111111 in the module, and 0x33333333 in {symvers}")
        assert releases(lab, node) == []
        assert_clean(lab, node)
    finally:
        lab.ssh(node, f"rm {symvers}")
    assert stage(token)[0]["changed"]


@pytest.mark.core
def test_corrupt_layer(lab, node, stage, token, tmp_path):
    publish(token, tmp_path)
    token.faults = [("GET", "/blobs/", lambda content: content[:-8] + b"\0" * 8 if content[:2] == b"\x1f\x8b" else content)]
    failed(stage(token)[0], "is damaged")
    assert releases(lab, node) == []
    assert_clean(lab, node)
    token.faults = []
    assert stage(token)[0]["changed"]


def test_registry_that_fails_half_way(lab, node, stage, token, tmp_path):
    publish(token, tmp_path)
    token.faults = [("GET", "/blobs/", 503)]
    failed(stage(token)[0], "registry failed while")
    assert_clean(lab, node)


@ONE_NODE
def test_image_without_driver_tree(lab, node, stage, token, tmp_path):
    publish(token, tmp_path, change=lambda tree: (tree / "version.info").unlink())
    failed(stage(token)[0], "no driver tree")
    assert releases(lab, node) == []
    assert_clean(lab, node)


@ONE_NODE
def test_another_version(lab, node, stage, token, tmp_path):
    publish(token, tmp_path, version="25.3.0")
    failed(stage(token, version="25.5.0")[0], "contains driver 25.3.0 instead of 25.5.0")
    assert_clean(lab, node)


@ONE_NODE
def test_disk_too_small_and_noexec(lab, node, stage, token, tmp_path):
    publish(token, tmp_path)
    lab.ssh(node, f"mkdir -p {ROOT} && mount -t tmpfs -o mode=755,size=20m tmpfs {ROOT}")
    failed(stage(token)[0], f"Not enough space in {ROOT}: 20 MiB are free")
    lab.ssh(node, f"mount -o remount,size=500m,noexec {ROOT}")
    failed(stage(token)[0], "mounted noexec")
    lab.ssh(node, f"mount -o remount,exec {ROOT}")
    assert stage(token)[0]["changed"]


@pytest.mark.parametrize("signal", ["KILL", "TERM"])
def test_killed_while_pulling_and_repeated(lab, node, stage, token, tmp_path, signal):
    """Nothing of the module may go on, and after a signal that can be heard nothing may be left."""
    publish(token, tmp_path)
    asked, go_on = threading.Event(), threading.Event()

    def slow(content):
        if content[:2] == b"\x1f\x8b":
            asked.set()
            go_on.wait(PATIENCE)
        return content

    token.faults = [("GET", "/blobs/", slow)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(stage, token, check=False)
        assert asked.wait(PATIENCE)
        credentials = lab.ssh(node, "stat -c %a /run/npuops/staging /run/npuops/staging/hosts/*/hosts.toml").stdout.split()
        assert credentials == ["700", "600"]
        arguments = lab.ssh(node, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
        assert "images pull" in arguments and token.password not in arguments and token.token not in arguments
        lab.ssh(node, f"kill -{signal} $(ps -o ppid= -p $(pgrep -f '[i]mages pull --hosts-dir'))")
        assert (first.result()[0] or {"failed": True})["failed"]
        lab.wait_for(lambda: lab.ssh(node, "pgrep -f '[i]mages pull --hosts-dir'", check=False).returncode == 1, 10, "ctr ends")
        if signal == "TERM":
            assert_clean(lab, node)
        go_on.set()
    assert releases(lab, node) == []
    token.faults = []
    assert stage(token)[0]["changed"]
    assert_clean(lab, node)
    assert len(releases(lab, node)) == 1


@ONE_NODE
def test_two_runs_at_once(lab, node, stage, token, tmp_path):
    publish(token, tmp_path)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = [one.result()[0] for one in [pool.submit(stage, token) for dummy in range(2)]]
    assert all(not result.get("failed") for result in results), results
    assert len({result["release"] for result in results}) == 1 == len(releases(lab, node))
    assert_clean(lab, node)


@ONE_NODE
def test_prune_keeps_what_is_in_use(lab, node, stage, token, tmp_path):
    names = []
    for number in range(4):
        publish(token, tmp_path)
        names.append(stage(token)[0]["release"])
    lab.ssh(
        node,
        f"ln -s releases/{names[0]}/driver {ROOT}/driver; mkdir /run/npuops-test-mount; "
        f"mount --bind {ROOT}/releases/{names[1]}/driver /run/npuops-test-mount",
    )
    try:
        result = stage(token, prune=True)[0]
        assert result["removed"] == [names[2]]
        result = stage(token, state="absent")[0]
        assert result["removed"] == [names[3]] and sorted(releases(lab, node)) == sorted(names[:2])
    finally:
        lab.ssh(node, "umount /run/npuops-test-mount; rmdir /run/npuops-test-mount")
