# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's part of a bundle, of a host in a directory with programs that answer, hang, fail and print what they should not."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import stat
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips.npu_smi import NpuSmi
from ansible_collections.npuops.ascend.plugins.module_utils._collect.host_part import HostPart

SECRET = "pl4nt3d"
JOURNALCTL = """#!/bin/sh
echo "journalctl $*" >>"$FAKE/calls"
[ ! -e "$FAKE/journal-hangs" ] || exec tail -f /dev/null
case "$*" in
*"-b -1"*) echo "no such boot" >&2; exit 1 ;;
*k3s*) ;;
*-k*) seq -f 'kernel line %.0f of a long log' 200000 ;;
*) echo "HUB_TOKEN=pl4nt3d one"; echo two ;;
esac
"""


def files_of(host):
    """All of the host with its contents, to see that nothing changed."""
    found = {}
    for directory, _names, names in os.walk(host.fs):
        for name in names:
            path = os.path.join(directory, name)
            mode = os.lstat(path).st_mode
            found[path] = pathlib.Path(path).read_bytes() if stat.S_ISREG(mode) else mode
    return found


@pytest.fixture
def full(host):
    """One with everything."""
    host.program(os.path.join(host.bin, "journalctl"), JOURNALCTL)
    host.chips(2)
    name = host.release("a")
    for link in ("driver", "good"):
        host.link(link, name)
    host.write("var/lib/npuops/record.json", '{"generation": 3, "token": "%s"}' % SECRET)
    host.write("run/npuops/driver-ready", "25.5.0\n")
    host.write("etc/cdi/huawei.com-npu.json", "{}")
    for number, log in enumerate(("npu/old.log", "npu/device-0/new.log", "ascend_seclog/sec.log")):
        path = host.write("var/log/" + log, "log %d password=%s\n" % (number, SECRET))
        os.utime(path, (1000 + number, 1000 + number))
    host.write("root/ascend/log/run/plog/plog-1.log", "plog\n")
    return host


def gather(host, **options):
    smi = NpuSmi(host.root + "/driver", lock=os.path.join(host.fake, "npu-smi.lock"), fallbacks=())
    return HostPart(host.root[len(host.fs) :], "image", fs=host.fs, npu_smi=smi, **options).gather()


def texts(part):
    return {file["name"]: file["text"] for file in part["files"]}


def reasons(part):
    return {entry["what"]: entry["why"] for entry in part["left_out"]}


def test_everything_that_a_host_has(full):
    before = files_of(full)
    part = gather(full)
    found = texts(part)
    assert set(found) >= {
        "facts.json", "checks.json", "npu-smi/info.txt", "npu-smi/board-0.txt", "npu-smi/health-1.txt", "journal/npu-driver.log",
        "journal/npuops.log", "journal/kubelet.log", "journal/containerd.log", "journal/kernel-this-boot.log", "state/record.json",
        "run/driver-ready", "cdi/huawei.com-npu.json", "logs/var-log-npu/old.log", "logs/var-log-npu/device-0/new.log",
        "logs/ascend_seclog/sec.log", "logs/root-ascend-log/run/plog/plog-1.log",
    }, (sorted(found), reasons(part))  # fmt: skip
    assert json.loads(found["facts.json"])["chip_count"] == 2
    assert {check["name"] for check in json.loads(found["checks.json"])["checks"]} >= {"npu_smi", "device_nodes"}
    assert "910B3" in found["npu-smi/info.txt"] and found["journal/kubelet.log"] == "HUB_TOKEN=*** one\ntwo\n"
    assert SECRET not in json.dumps(part)
    assert files_of(full) == before


def test_the_kernel_log_is_bounded_and_the_one_before_is_not_there(full):
    part = gather(full)
    (kernel,) = [file for file in part["files"] if file["name"] == "journal/kernel-this-boot.log"]
    assert kernel["cut"] and len(kernel["text"]) <= 2 * 2**20 and kernel["text"].endswith("line 200000 of a long log\n")
    assert "no such boot" in reasons(part)["kernel log, boot -1"]


def test_the_newest_logs_come_first_and_the_size_is_kept(full):
    for name, when in (("large", 500), ("older", 400)):
        path = full.write("var/log/npu/%s.log" % name, "one line of it\n" * 100000)
        os.utime(path, (when, when))
    limit = 2**20
    part = gather(full, limit=limit)
    assert limit - 4096 < sum(len(file["text"].encode()) for file in part["files"]) <= limit
    (large,) = [file for file in part["files"] if file["name"] == "logs/var-log-npu/large.log"]
    assert large["cut"] and set(large["text"].splitlines()) == {"one line of it"}
    assert "logs/var-log-npu/old.log" in texts(part) and "1 older logs of the driver" in reasons(part)


def test_an_npu_smi_that_hangs_costs_its_limit_once(full):
    full.set("hang")
    began = time.monotonic()
    part = gather(full, command=1)
    calls = [call for call in full.calls if call.startswith("npu-smi")]
    assert len(calls) <= 2, calls
    assert "npu-smi" in reasons(part)["npu-smi info"] and "journal/kubelet.log" in texts(part)
    assert time.monotonic() - began < 60  # one that was waited for would take 600 s


def test_after_a_query_that_hangs_no_other_card_is_queried(full):
    path = os.path.join(os.path.realpath(full.root + "/driver"), "tools/npu-smi")
    usual = pathlib.Path(path).read_text(encoding="utf-8")
    full.program(path, usual.replace("[ ! -e", 'case "$*" in *-t*) exec tail -f /dev/null ;; esac\n[ ! -e', 1))
    part = gather(full, command=1)
    asked = [entry["what"] for entry in part["left_out"] if entry["what"].startswith("npu-smi")]
    assert asked == ["npu-smi info -t board -i 0"] and "910B3" in texts(part)["npu-smi/info.txt"]


def test_a_journalctl_that_hangs(full):
    full.set("journal-hangs")
    part = gather(full, command=0.1)
    assert "did not end in time" in reasons(part)["journal of kubelet, this boot"] and "state/record.json" in texts(part)


def test_an_npu_smi_that_fails_says_why(full):
    full.npu_smi(2, status=235)
    part = gather(full)
    assert "failed with status 235" in reasons(part)["npu-smi info"] and "910B3" in texts(part)["npu-smi/info.txt"]


def test_no_time_at_all(full):
    part = gather(full, seconds=0)
    assert list(texts(part)) == ["facts.json", "state/record.json", "run/driver-ready", "cdi/huawei.com-npu.json"]
    assert "time limit" in reasons(part)["npu-smi info"] and not [call for call in full.calls if call.startswith("npu-smi")]


def test_a_host_without_chips(host):
    host.program(os.path.join(host.bin, "journalctl"), JOURNALCTL)
    part = gather(host)
    assert "facts.json" in texts(part) and "journal/kubelet.log" in texts(part)
    without = {entry["what"]: entry for entry in part["left_out"]}
    for what in ("checks", "npu-smi", "hccn_tool", "/var/log/npu", "/var/lib/npuops"):
        assert without[what]["absent"], without[what]


def test_what_users_put_into_the_directories_of_logs(full):
    logs = os.path.join(full.fs, "var/log/npu")
    full.write("etc/shadow", "root:%s" % SECRET)
    os.symlink("/etc/shadow", os.path.join(logs, "link.log"))
    os.link(os.path.join(full.fs, "etc/shadow"), os.path.join(logs, "hard.log"))
    os.mkfifo(os.path.join(logs, "pipe.log"))
    full.write("var/log/npu/\x1b[2J..\n", "its text\n")
    full.write("var/log/npu/dump.bin", "\0" + SECRET)
    with open(os.path.join(logs, "huge.log"), "wb") as stream:
        stream.truncate(2**41)
    part = gather(full)
    assert SECRET not in json.dumps(part)
    names = [name for name in texts(part) if name.startswith("logs/var-log-npu/")]
    assert sorted(names)[:2] == ["logs/var-log-npu/device-0/new.log", "logs/var-log-npu/old.log"] and len(names) == 3
    (odd,) = [file for file in part["files"] if file["name"].startswith("logs/var-log-npu/unnamed-")]
    assert odd["text"] == "its text\n" and "\x1b" not in odd["source"]
    for name in ("link.log", "hard.log", "pipe.log", "dump.bin", "huge.log"):
        assert "/var/log/npu/" + name in reasons(part)


def test_a_name_that_is_made_up_is_a_real_one_too(full):
    """The controller refuses an answer with a name that occurs twice."""
    for number in range(6):
        full.write("var/log/npu/unnamed-%d" % number, "real %d\n" % number)
        full.write("var/log/npu/%d of a user" % number, "odd %d\n" % number)
    part = gather(full)
    names = [file["name"] for file in part["files"]]
    assert len(set(names)) == len(names)
    found = {text for name, text in texts(part).items() if "unnamed-" in name}
    assert found == {"%s %d\n" % (kind, number) for kind in ("real", "odd") for number in range(6)}


def test_the_python_of_install_and_sockets_are_neither_there_nor_missing(full, monkeypatch):
    """The room is for the logs, and a bundle that has everything is complete."""
    full.write("var/lib/npuops/python/current/lib/big.py", "x" * 10**6)
    os.mkdir(os.path.join(full.fs, "var/lib/npuops/device-plugins"))
    monkeypatch.chdir(os.path.join(full.fs, "var/lib/npuops/device-plugins"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("a.sock")  # a path must be short
    part = gather(full, limit=10**6)
    assert "logs/ascend_seclog/sec.log" in texts(part)
    assert not [name for name in [*texts(part), *reasons(part)] if "python" in name or "sock" in name]


@pytest.mark.parametrize("top", ["var/log/npu", "var/lib/npuops"])
def test_a_directory_that_is_a_link(full, top):
    os.rename(os.path.join(full.fs, top), os.path.join(full.fs, "elsewhere"))
    os.symlink(os.path.join(full.fs, "elsewhere"), os.path.join(full.fs, top))
    part = gather(full)
    assert reasons(part)["/" + top] == "it is a link"
