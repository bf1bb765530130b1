# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which containerd is the kubelet's, and which hosts are refused. Restarts are tested in tests/lab."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import stat
import tempfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    cdi_spec,
    config_files,
    containerd_runtime,
    disable_cdi,
    enable_cdi,
    generated,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.host import mounted
from support.host.fake_host import add_process, listening
from support.paths import UNIT

FIXTURES = UNIT / "fixtures" / "containerd"


class Host:
    """A / with processes and programs."""

    def __init__(self, root, stack):
        self.root = root
        self.stack = stack

    def process(self, pid, comm, *argv, **facts):
        add_process(str(self.root), pid, comm, *argv, **facts)

    def socket(self, path):
        """Listens there; returns the ID of the process that does."""
        return self.stack.enter_context(listening(str(self.root) + path))

    def program(self, path, script):
        path = self.root / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)

    def find(self):
        return containerd_runtime.find(str(self.root))


@pytest.fixture
def host(host):  # the programs of that one, among them a systemctl, are on the PATH
    # A socket's path must be short.
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory(prefix="npu") as directory:
        yield Host(pathlib.Path(directory), stack)


def test_the_usual_one(host):
    pid = host.socket("/run/containerd/containerd.sock")
    program = host.program("/usr/bin/containerd", "")
    host.process(
        pid,
        "containerd",
        "/usr/bin/containerd",
        exe="/usr/bin/containerd (deleted)",
        cgroup="1:name=systemd:/system.slice/containerd.service\n0::/\n",
    )
    daemon = host.find()
    assert (daemon.pid, daemon.binary, daemon.config, daemon.explicit, daemon.address, daemon.unit) == (
        pid,
        program,
        "/etc/containerd/config.toml",
        False,
        None,
        "containerd.service",
    )


@pytest.mark.parametrize("argv", [(), ("--root", "/data/command-line")])
def test_images_are_where_containerd_keeps_them(host, argv):
    """Packages create /var/lib/containerd, also where the configuration names another directory, on a larger disk."""
    for name in ("var/lib/containerd", "data/containerd", "data/command-line"):
        (host.root / name).mkdir(parents=True)
    assert containerd_runtime.image_places(fs=str(host.root)) == ["/var/lib/containerd"]
    host.program("/usr/bin/containerd", "echo 'version = 2'; echo 'root = \"/data/containerd\"'\n")
    host.process(host.socket("/run/containerd/containerd.sock"), "containerd", "/usr/bin/containerd", *argv)
    assert containerd_runtime.image_places(fs=str(host.root)) == [argv[1] if argv else "/data/containerd"]


def test_given_on_the_command_line(host):
    host.process(20, "kubelet", "/usr/bin/kubelet", "--container-runtime-endpoint=unix:///run/x/y.sock")
    host.process(30, "containerd", "/opt/containerd", "--config=/etc/other.toml", "-a", "/run/z.sock")
    host.program("/opt/containerd", "")
    pid = host.socket("/run/x/y.sock")
    host.process(
        pid,
        "containerd",
        "/opt/containerd",
        "-c",
        "x/y.toml",
        "--address",
        "/run/x/y.sock",
        "--state",
        "/run/x",
        cgroup="0::/system.slice/site.slice/site-containerd.service\n",
    )
    daemon = host.find()
    assert (daemon.pid, daemon.config, daemon.explicit, daemon.address, daemon.unit, daemon.state) == (
        pid,
        "/srv/x/y.toml",
        True,
        "/run/x/y.sock",
        "site-containerd.service",
        "/run/x",
    )


@pytest.mark.parametrize(
    "arguments, config, address",
    [
        (["-config", "/a.toml", "-address", "/x.sock"], "/a.toml", "/x.sock"),
        (["--c=/a.toml", "--a", "/x.sock"], "/a.toml", "/x.sock"),
        (["-c", "/b.toml", "-c", "/a.toml"], "/a.toml", None),
        (["--root", "config", "---config=/b.toml"], "/etc/containerd/config.toml", None),
        (["--log-level", "debug", "c", "/b.toml"], "/etc/containerd/config.toml", None),
    ],
)
def test_options_as_go_reads_them(host, arguments, config, address):
    host.program("/usr/bin/containerd", "")
    host.process(host.socket("/run/containerd/containerd.sock"), "containerd", "/usr/bin/containerd", *arguments)
    daemon = host.find()
    assert (daemon.config, daemon.explicit, daemon.address) == (config, config != "/etc/containerd/config.toml", address)


def test_containers_and_docker_have_their_own(host):
    host.process(10, "containerd", "/usr/bin/containerd", "--config", "/var/run/docker/containerd/containerd.toml")
    host.process(11, "containerd", "/usr/bin/containerd", namespace="pid:[2]")
    host.program("/usr/bin/containerd", "")
    pid = host.socket("/run/containerd/containerd.sock")
    host.process(pid, "containerd", "/usr/bin/containerd")
    assert host.find().pid == pid


def test_behind_a_proxy_or_without_an_answer_it_is_the_units(host):
    """Also with a socket that does not answer: a containerd that hangs is still the one."""
    host.program("/usr/bin/containerd", "")
    host.process(12, "containerd", "/usr/bin/containerd")
    pathlib.Path(os.environ["FAKE"], "show").write_text("MainPID=12\nId=containerd.service\n\nMainPID=0\n")
    assert host.find().pid == 12
    host.process(host.socket("/run/containerd/containerd.sock"), "runtime-proxy", "/opt/runtime-proxy")
    assert host.find().pid == 12


def test_a_unit_in_a_container_is_not_the_hosts(host):
    host.process(12, "containerd", "/usr/bin/containerd", namespace="pid:[2]")
    pathlib.Path(os.environ["FAKE"], "show").write_text("MainPID=12\nId=containerd.service\n")
    assert "This host has no containerd" in refusal(host)


def refusal(host):
    with pytest.raises(NpuError) as caught:
        host.find()
    return caught.value.message


def test_docker_is_refused(host):
    host.socket("/var/run/docker.sock")
    host.process(10, "containerd", "/usr/bin/containerd", "--config", "/var/run/docker/containerd/containerd.toml")
    assert "Docker" in refusal(host)


def test_nothing_is_refused(host):
    assert "This host has no containerd" in refusal(host)


def test_containerd_1_6_is_refused(host):
    pid = host.socket("/run/containerd/containerd.sock")
    host.program("/usr/bin/containerd", "echo 'containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1'")
    host.process(pid, "containerd", "/usr/bin/containerd")
    assert "containerd 1.6.20~ds1 on this host does not support CDI" in refusal(host)


def test_1_6_running_under_another_name_is_refused(tmp_path, host):
    """Also where the version cannot be read: its dump has no enable_cdi."""
    dump = "".join(line for line in (FIXTURES / "default-1.7.toml").read_text().splitlines(True) if "cdi" not in line)
    (tmp_path / "dump").write_text(dump)
    program = host.program("/usr/bin/containerd", 'case "$*" in *dump) cat %s/dump ;; --version) echo v1.6.9 ;; esac' % tmp_path)
    config = tmp_path / "config.toml"
    config.write_text("version = 2\n")
    switch = enable_cdi.Switch(containerd_runtime.Daemon(1, program, str(config), True, None, None))
    with pytest.raises(NpuError, match="containerd 1.6.9 on this host does not support CDI"):
        switch.examine()


MAIN = "/etc/containerd/config.toml"
GENERATED = [
    ("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "version = 2\n", "k3s", "config.toml.tmpl"),
    ("/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "version = 3\n", "rke2", "config-v3.toml.tmpl"),
    ("/var/snap/microk8s/current/args/containerd.toml", "version = 2\n", "containerd", "containerd-template.toml"),
    ("/etc/k0s/containerd.toml", "# k0s_managed=true\n", "containerd", "in the source of that file"),
    ("/run/site/config.toml", None, "containerd", "in the source of that file"),
    (MAIN, "# File made by us. DO NOT EDIT\n", "containerd", "in the source of that file"),
    (MAIN, "version = 2\n\t##DO NOT EDIT\n", "containerd", "in the source of that file"),
]


@pytest.mark.parametrize("path, text, kind, names", GENERATED)
def test_generated_files_are_left_alone(path, text, kind, names):
    reason = generated.reason(containerd_runtime.Daemon(1, "x", path, True, None, None, kind), path, text)
    assert path in reason and names in reason and "enable_cdi = true" in reason


@pytest.mark.parametrize(
    "main, kind, path, text",
    [
        (MAIN, "containerd", MAIN, "# Do edit this\nversion = 2\n"),
        (MAIN, "containerd", MAIN, 'version = 2 # \nx = "DO NOT EDIT"\n'),
        # What an administrator adds to a generated file.
        (GENERATED[0][0], "k3s", os.path.dirname(GENERATED[0][0]) + "/config.toml.d/site.toml", "version = 2\n"),
        ("/run/k0s/containerd.toml", "containerd", "/etc/k0s/containerd.d/site.toml", "version = 2\n"),
    ],
)
def test_a_persons_file_is_not_generated(main, kind, path, text):
    assert generated.reason(containerd_runtime.Daemon(1, "x", main, True, None, None, kind), path, text) is None


@pytest.mark.parametrize("path", ["/run/k0s/containerd-cri.toml", "/etc/containerd/conf.d/site.toml"])
def test_a_generated_drop_in_of_a_persons_file_is_left_alone(path):
    """As with a k0s file that an administrator has taken over: the one it imports is still generated at each start."""
    text = None if path.startswith("/run") else "#DO NOT EDIT\n"
    reason = generated.reason(containerd_runtime.Daemon(1, "x", MAIN, True, None, None), path, text)
    assert reason.startswith(path) and MAIN not in reason


class Fake:
    """containerd as a program: prints dumps from files; its CRI is played by `status`."""

    def __init__(self, tmp_path, host, monkeypatch, config):
        self.config = tmp_path / "etc" / "config.toml"
        self.config.parent.mkdir()
        if config is not None:
            self.config.write_text(config)
        template = (FIXTURES / "default-1.7.toml").read_text().replace("enable_cdi = false", "enable_cdi = @")
        (tmp_path / "dump").write_text(template)
        # Off unless the last enable_cdi in the file says true; an unbalanced bracket is an error.
        self.program = host.program(
            "/usr/bin/containerd",
            """
case "$1" in -c) file=$2 ;; *) file=%s ;; esac
grep -q '^\\[[^]]*$' "$file" 2>/dev/null && { echo "containerd: failed to load TOML: $file: (1, 2)" >&2; exit 1; }
grep -q 'enable_cdi = true' "$file" 2>/dev/null && on=true || on=false
sed "s/@/$on/" %s/dump
"""
            % (self.config, tmp_path),
        )
        self.running = False
        monkeypatch.setattr(cri, "status", lambda address, timeout=5: cri.CriStatus(True, self.running, ["/etc/cdi"]))

    def switch(self):
        daemon = containerd_runtime.Daemon(1, self.program, str(self.config), self.config.exists(), None, "containerd.service")
        return enable_cdi.Switch(daemon)


def test_edit_without_restart_then_again(tmp_path, host, monkeypatch):
    text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "x" # y\n'
    fake = Fake(tmp_path, host, monkeypatch, text)
    systemctl(tmp_path, "exit 1")
    fake.config.chmod(0o640)
    switch = fake.switch()
    assert switch.examine() == "CDI is disabled in %s" % fake.config
    assert os.listdir(fake.config.parent) == ["config.toml"], "looking changes nothing"
    switch.apply(restart=False)
    assert fake.config.read_text() == text.replace("  sandbox", "  enable_cdi = true\n  sandbox")
    backup = fake.config.with_name("config.toml.npuops-backup")
    assert backup.read_text() == text
    assert [stat.S_IMODE(path.stat().st_mode) for path in (fake.config, backup)] == [0o640, 0o640]

    again = fake.switch()
    assert "has not been restarted since" in again.examine()
    assert not again.would_change(restart=False) and again.would_change(restart=True) and again.restart_required
    fake.running = True
    assert fake.switch().examine() is None


def test_no_file(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, None)
    switch = fake.switch()
    switch.examine()
    switch.apply(restart=False)
    assert fake.config.read_text().startswith("version = 2\n")
    assert os.listdir(fake.config.parent) == ["config.toml"]


def test_link_is_followed(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    real = tmp_path / "real.toml"
    fake.config.rename(real)
    fake.config.symlink_to(real)
    switch = fake.switch()
    switch.examine()
    switch.apply(restart=False)
    assert fake.config.is_symlink() and "enable_cdi = true" in real.read_text()


def test_file_that_does_not_parse(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n[plugins\n")
    with pytest.raises(NpuError, match="nothing was changed.*failed to load TOML"):
        fake.switch().examine()
    assert fake.config.read_text() == "version = 2\n[plugins\n"


def test_no_edit_that_helps(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    host.program("/usr/bin/containerd", "sed s/@/false/ %s/dump" % tmp_path)
    with pytest.raises(NpuError, match="nothing was changed.*CDI would still be disabled"):
        fake.switch().examine()


def test_edit_that_changes_more_is_refused(tmp_path, host, monkeypatch):
    """containerd understands the file in place differently from the copy: the old one is back."""
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    switch = fake.switch()
    switch.examine()
    host.program("/usr/bin/containerd", "sed 's/@/true/; s/pause:3.8/pause:9/' %s/dump" % tmp_path)
    with pytest.raises(NpuError, match="sandbox_image.*was restored"):
        switch.apply(restart=False)
    assert fake.config.read_text() == "version = 2\n"


def test_cri_that_does_not_answer_beforehand(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")

    def refuse(address, timeout=5):
        raise cri.CriError("%s: refused" % address)

    monkeypatch.setattr(cri, "status", refuse)
    monkeypatch.setattr(containerd_runtime, "journal", lambda unit, since: "level=error msg=why")
    with pytest.raises(NpuError, match="although nothing was changed: /run/containerd/containerd.sock: refused"):
        fake.switch().examine()
    assert fake.config.read_text() == "version = 2\n"


def test_an_import_that_is_no_plain_file(tmp_path, host, monkeypatch):
    """No process ever writes into that pipe."""
    fake = Fake(tmp_path, host, monkeypatch, 'version = 2\nimports = ["pipe"]\n')
    os.mkfifo(str(fake.config.with_name("pipe")))
    with pytest.raises(NpuError, match="nothing was changed: .*/pipe is not a regular file"):
        fake.switch().examine()


def test_cdi_that_is_on_needs_no_file_that_can_be_followed(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\nenable_cdi = true\n")
    fake.config.write_bytes(fake.config.read_bytes() + b"# \xc8\xdd\n")
    fake.running = True
    assert fake.switch().examine() is None


SYSTEMCTL = """#!/bin/sh
echo "$*" >>%(calls)s
case $1 in
show) echo KillMode=%(mode)s ;;
restart) %(restart)s ;;
esac
"""


def systemctl(tmp_path, restart, mode="process"):
    """A systemctl whose restart is this, and a unit with this KillMode; the file with what it was asked."""
    program = pathlib.Path(os.environ["PATH"].split(":")[0], "systemctl")
    program.write_text(SYSTEMCTL % {"calls": tmp_path / "calls", "restart": restart, "mode": mode})
    program.chmod(0o755)
    return tmp_path / "calls"


def test_check_mode_tells_that_a_restart_would_stop_pods(tmp_path, host, monkeypatch):
    """Before the driver is installed, and not when it is containerd's turn."""
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    systemctl(tmp_path, "exit 1", mode="control-group")
    switch = fake.switch()
    assert switch.examine()
    with pytest.raises(NpuError, match="KillMode=control-group: a restart would stop all pods"):
        switch.would_change()
    assert switch.would_change(restart=False)


def test_an_undo_that_fails_says_so_and_restarts_all_the_same(tmp_path, host, monkeypatch):
    """The directory is gone when the old file is to go back."""
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    etc = fake.config.parent
    calls = systemctl(tmp_path, "mv %s %s.gone; touch %s; exit 1" % (etc, etc, etc))
    switch = fake.switch()
    switch.examine()
    with pytest.raises(NpuError) as caught:
        switch.apply()
    message = caught.value.message
    assert "%s still has CDI enabled, because the original could not be restored" % fake.config in message
    assert "npuops-backup" in message and "was restored" not in message
    assert "restored" not in caught.value.details
    assert calls.read_text().count("restart containerd.service") == 2


def test_an_undo_that_works_says_so(tmp_path, host, monkeypatch):
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    calls = systemctl(tmp_path, "! grep -q 'enable_cdi = true' %s" % fake.config)
    switch = fake.switch()
    switch.examine()
    with pytest.raises(NpuError, match="The original .* was restored") as caught:
        switch.apply()
    assert caught.value.details["restored"] == str(fake.config)
    assert fake.config.read_text() == "version = 2\n"
    assert calls.read_text().count("restart containerd.service") == 2


def test_absent_without_a_restart_is_finished_by_the_next_one(tmp_path, host, monkeypatch):
    monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH])
    calls = systemctl(tmp_path, "touch %s/restarted" % tmp_path)
    for text in ("version = 2\n", None):
        shutil.rmtree(str(tmp_path / "etc"), ignore_errors=True)
        fake = Fake(tmp_path, host, monkeypatch, text)
        switch = fake.switch()
        switch.examine()
        switch.apply(restart=False)
        fake.running = True

        def revert(restart, fake=fake):
            made = disable_cdi.Revert(fake.switch().daemon)
            reason, changed = made.examine(), made.would_change(restart)
            if changed:
                made.apply(restart)
            return bool(reason), changed, made.restart_required, made.left

        assert revert(False) == (True, True, True, None)
        assert (fake.config.read_text() if fake.config.exists() else None) == text
        assert revert(False) == (True, False, True, None), "what runs still has CDI on"
        assert not calls.exists() or "restart" not in calls.read_text()
        assert revert(True) == (True, True, False, None)
        assert "restart containerd.service" in calls.read_text()
        calls.unlink()
        fake.running = False
        assert revert(True) == (False, False, False, None)
        assert os.listdir(str(fake.config.parent)) == ([] if text is None else ["config.toml"])


def test_what_was_made_from_nothing_goes_whatever_an_older_backup_says(tmp_path, host, monkeypatch):
    """The file that the backup is of was gone when CDI was switched on; the backup is all that is left of it."""
    monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH])
    systemctl(tmp_path, "true")
    fake = Fake(tmp_path, host, monkeypatch, None)
    backup = fake.config.with_name("config.toml.npuops-backup")
    backup.write_text("# an old one\nversion = 2\n")
    switch = fake.switch()
    switch.examine()
    switch.apply(restart=False)
    assert backup.read_text() == "# an old one\nversion = 2\n"
    revert = disable_cdi.Revert(fake.switch().daemon)
    assert revert.examine() and revert.left is None
    revert.apply()
    assert not fake.config.exists() and backup.read_text() == "# an old one\nversion = 2\n"


def test_a_file_that_cannot_be_replaced_is_told_beforehand(tmp_path, host, monkeypatch):
    """Neither way needs a restart of containerd to find that out."""
    monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH])
    fake = Fake(tmp_path, host, monkeypatch, "version = 2\n")
    with monkeypatch.context() as patch:
        patch.setattr(host_mounts, "points", lambda: {str(fake.config)})
        with pytest.raises(NpuError, match="CDI is disabled in containerd, and .*config.toml is a mount point"):
            fake.switch().examine()
    switch = fake.switch()
    switch.examine()
    switch.apply(restart=False)
    fake.running = True
    monkeypatch.setattr(host_mounts, "points", lambda: {str(fake.config)})
    revert = disable_cdi.Revert(fake.switch().daemon)
    assert revert.examine() is None and not revert.would_change()
    assert "CDI stays enabled in %s: " % fake.config in revert.left and "mount point" in revert.left


@pytest.mark.parametrize(
    "mount, words",
    [
        (["--bind", "etc/config.toml", "etc/config.toml"], "mount point"),
        (["-t", "tmpfs", "-o", "ro", "none", "etc"], "mounted read-only"),
    ],
)
def test_a_file_that_cannot_be_replaced(tmp_path, mount, words):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "config.toml").write_text("version = 2\n")
    program = (
        "from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_files as files\n"
        "from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError\n"
        "print(files.unwritable('etc/config.toml'))\n"
        "try:\n"
        "    files.write('etc/config.toml', '', like='etc/config.toml')\n"
        "except NpuError as exc:\n"
        "    print(exc.message)\n"
    )
    told = mounted.output_of(mount, program, cwd=tmp_path).splitlines()
    assert len(told) == 2 and told[0] == told[1] and words in told[0] and str(tmp_path) in told[0]
    assert (tmp_path / "etc" / "config.toml").read_text() == "version = 2\n"


def test_what_is_half_written_is_not_imported(tmp_path, host, monkeypatch):
    """A run that is killed then leaves nothing that containerd reads at its next start."""
    fake = Fake(tmp_path, host, monkeypatch, 'imports = ["*"]\nversion = 2\n')
    switch = fake.switch()
    switch.examine()
    renamed = []
    rename = os.rename

    def watched(source, target):
        renamed.append((os.path.dirname(source), target))
        rename(source, target)

    monkeypatch.setattr(os, "rename", watched)
    monkeypatch.setattr(config_files, "BACKUPS", str(tmp_path / "backups"))
    switch.apply(restart=False)
    assert {target: place for place, target in renamed}[str(fake.config)] == str(tmp_path)
    assert os.listdir(str(fake.config.parent)) == ["config.toml"]
