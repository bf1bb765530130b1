# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that brings a Python to a host: a real shell in a directory that stands for the host's /, and a ctr of our own."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions
from ansible_collections.npuops.ascend.plugins.plugin_utils._python import runtime as python_runtime

from support.paths import CHECKOUT
from support.patience import PATIENCE

SCRIPT = (CHECKOUT / "plugins/plugin_utils/_python/bring_python.sh").read_text(encoding="utf-8")
SECRET = "Basic c2VjcmV0LW9mLXRoaXMtdGVzdA=="
HOSTS_TOML = f'server = "http://r"\n[host."http://r".header]\n  Authorization = "{SECRET}"'

# What of ctr the script uses. Its "images" are directories; what it was told is in calls.
CTR = r"""#!/bin/sh
printf '%s\n' "$*" >>"$STATE/calls"
shift 4 # -a ADDRESS -n NAMESPACE
case "$1 $2 ${3:-}" in
"images pull --help") echo "   --local  fetch locally" ;;
"images pull "*)
    cp -p "$NPU_HOST_ROOT"/run/npuops/python/hosts/r/hosts.toml "$STATE/hosts.toml"
    tr '\0' ' ' <"/proc/$PPID/cmdline" >"$STATE/cmdline"
    if [ -e "$STATE/pull-fails" ]; then cat "$STATE/pull-fails" >&2; exit 1; fi
    if [ -e "$STATE/pull-hangs" ]; then : >"$STATE/pulling"; exec sleep 3600; fi # from here on no process is new
    echo r/agent@digest >"$STATE/images"
    ;;
"images mount "*) cp -a "$STATE/root/." "$4/" ;;
"images ls "*) cat "$STATE/images" 2>/dev/null ;;
"images rm "*) rm -f "$STATE/images" ;;
esac
exit 0
"""
# The real one waits for whatever else this machine writes.
SYNC = '#!/bin/sh\nprintf "%s\\n" "$*" >>"$STATE/synced"\n'
UMOUNT = '#!/bin/sh\nfind "$1" -mindepth 1 -delete\n'


class Host:
    def __init__(self, directory):
        self.fs = directory / "fs"
        self.state = directory / "state"
        self.top = self.fs / "var/lib/npuops/python"
        programs = directory / "bin"
        for path in (self.fs / "run/containerd", self.state / "root/usr/bin", programs):
            path.mkdir(parents=True)
        (self.fs / "run/containerd/containerd.sock").touch()
        for name, text in (("ctr", CTR), ("sync", SYNC), ("umount", UMOUNT)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.image_with("#!/bin/sh\nexit 0\n")
        self.env = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", NPU_HOST_ROOT=str(self.fs), STATE=str(self.state))

    def image_with(self, launcher):
        path = self.state / "root/usr/bin/npuops-python"
        path.write_text(launcher)
        path.chmod(0o755)

    def start(self, task, **variables):
        text = python_runtime.script_for(SCRIPT, task, **variables)
        process = subprocess.Popen(
            ["sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
            text=True,
            start_new_session=True,
        )
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, task, **variables):
        process = self.start(task, **variables)
        output, error = end_of(process)
        return process.returncode, output, error

    def bring(self, name="1-a"):
        return self.run("bring", name=name, image="r/agent@digest", registry="r", hosts_toml=HOSTS_TOML)

    def look(self, *traces):
        status, output, error = self.run("look", traces="\n".join(traces))
        assert (status, error) == (0, "")
        return python_runtime.PythonOnHost(output)

    @property
    def leftovers(self):
        """Everything of ours but the runtimes."""
        return sorted(
            str(path.relative_to(self.fs))
            for base in (self.top, self.fs / "run/npuops/python")
            if base.exists()
            for path in base.iterdir()
            if path.name.startswith(".") or path.name in ("hosts", "image")
        )


def end_of(process):
    """(stdout, stderr) of a process that ends in time, or none of its session is left."""
    with process:
        try:
            return process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            kill_session(process.pid, signal.SIGKILL)
            raise


def kill_session(leader, number):
    for pid in list(session(leader)):
        with contextlib.suppress(ProcessLookupError):  # it ended because another one did
            os.kill(pid, number)


def session(leader):
    """The processes of a session. timeout(1) has a process group of its own."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                yield int(entry.name)


@pytest.fixture(name="host")
def _host(tmp_path):
    return Host(tmp_path)


def test_brought_once_then_found(host):
    assert host.look().current is None
    assert host.bring() == (0, "", "")
    assert host.look().current == "1-a"
    assert os.readlink(host.top / "current") == "1-a"
    assert (host.top / "current/python3").resolve() == host.top / "1-a/usr/bin/npuops-python"
    assert host.leftovers == []
    assert (host.state / "synced").read_text() == f"-f {host.top}\n" * 2
    calls = (host.state / "calls").read_text()
    host.bring()
    assert (host.state / "calls").read_text() == calls


def test_credentials_are_in_a_private_file_for_the_time_of_the_pull_only(host):
    host.bring()
    seen = host.state / "hosts.toml"
    assert SECRET in seen.read_text()
    assert stat.S_IMODE(seen.stat().st_mode) == 0o600
    assert stat.S_IMODE((host.fs / "run/npuops/python").stat().st_mode) == 0o700
    assert SECRET not in (host.state / "cmdline").read_text()
    assert SECRET not in (host.state / "calls").read_text()
    assert subprocess.run(["grep", "-r", SECRET, host.fs], check=False, capture_output=True).returncode == 1


def test_another_image_replaces_the_old_one(host):
    host.bring()
    assert host.bring("2-b")[0] == 0
    assert sorted(path.name for path in host.top.iterdir()) == ["2-b", "current"]
    assert host.look().current == "2-b"


def test_what_cannot_start_does_not_replace_what_can(host):
    host.bring()
    host.image_with("#!/bin/sh\necho broken >&2\nexit 1\n")
    status, _output, error = host.bring("2-b")
    assert (status, error) == (14, "broken\n")
    assert host.look().current == "1-a"
    assert host.leftovers == []


def test_nothing_of_the_image_runs_as_somebody_else(host):
    program = host.state / "root/usr/bin/su"
    program.touch()
    program.chmod(0o4755)
    host.bring()
    assert stat.S_IMODE((host.top / "current/usr/bin/su").stat().st_mode) == 0o755


def test_a_failed_pull_says_what_containerd_said(host):
    (host.state / "pull-fails").write_text("ctr: failed to resolve reference: r/agent@digest: not found\n")
    status, _output, error = host.bring()
    assert status == 12 and "r/agent@digest: not found" in error
    assert host.look().current is None
    assert host.leftovers == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_interrupted_while_pulling(host, number):
    host.bring()
    (host.state / "pull-hangs").touch()
    process = host.start("bring", name="2-b", image="r/agent@digest", registry="r", hosts_toml=HOSTS_TOML)
    end = time.monotonic() + PATIENCE
    while not (host.state / "pulling").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    kill_session(process.pid, number)
    end_of(process)
    assert host.look().current == "1-a"
    (host.state / "pull-hangs").unlink()
    assert host.bring("2-b")[0] == 0
    assert host.look().current == "2-b"
    assert host.leftovers == []
    assert subprocess.run(["grep", "-r", SECRET, host.fs], check=False, capture_output=True).returncode == 1


def test_half_of_the_script_does_nothing(host):
    text = python_runtime.script_for(SCRIPT, "bring", name="1-a", image="r/agent@digest", registry="r", hosts_toml=HOSTS_TOML)
    half = text[: text.index("main </dev/null")]
    subprocess.run(["sh", "-s"], input=half, text=True, env=host.env, check=False, timeout=PATIENCE)
    assert not host.top.exists()


def test_no_ctr(host):
    host.env["PATH"] = host.env["PATH"].partition(":")[2]
    if any(shutil.which("ctr", path=path) for path in (host.env["PATH"], "/usr/local/bin:/usr/bin:/opt/containerd/bin")):
        pytest.skip("this machine has a ctr")
    assert host.bring()[0] == 10


def test_no_containerd(host):
    (host.fs / "run/containerd/containerd.sock").unlink()
    assert host.bring()[0] == 11


@pytest.mark.parametrize("one", distributions.EMBEDDING, ids=lambda one: one.name)
def test_with_the_containerd_of_a_distribution(host, one):
    """Also beside Docker's, which listens where that of kubeadm would."""
    socket = host.fs / one.address.lstrip("/")
    socket.parent.mkdir(parents=True)
    socket.touch()
    assert host.bring()[0] == 0
    calls = (host.state / "calls").read_text().splitlines()
    assert calls and all(call.startswith("-a %s -n npuops-python " % socket) for call in calls)


def test_with_the_ctr_in_k0s(host):
    programs = pathlib.Path(host.env["PATH"].partition(":")[0])
    (programs / "ctr").rename(programs / "k0s")
    if any(shutil.which("ctr", path=path) for path in (host.env["PATH"], "/usr/local/bin:/usr/bin:/opt/containerd/bin")):
        pytest.skip("this machine has a ctr")
    (programs / "k0s").write_text(CTR.replace("shift 4", '[ "$1" = ctr ] && shift 5'))
    assert host.bring()[0] == 0
    assert all(call.startswith("ctr -a ") for call in (host.state / "calls").read_text().splitlines())


def test_traces(host):
    (host.fs / "etc/cdi").mkdir(parents=True)
    assert host.look("/etc/cdi", "/var/lib/Ascend").traces == ["/etc/cdi"]


def test_removed(host):
    host.bring()
    assert host.run("remove") == (0, "", "")
    assert not (host.fs / "var/lib/npuops").exists() and not (host.fs / "run/npuops").exists()
    assert host.look().current is None
    assert host.run("remove")[0] == 0


def test_others_files_survive_removal(host):
    host.bring()
    (host.fs / "var/lib/npuops/bin").mkdir()
    host.run("remove")
    assert [path.name for path in (host.fs / "var/lib/npuops").iterdir()] == ["bin"]
