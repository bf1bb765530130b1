# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which edit makes a runtime the default one of containerd, and what brings back what was before."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    config_files,
    containerd_config,
    containerd_runtime,
    default_runtime,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

PROGRAM = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"
RUNC, ASCEND = ("runc", ""), ("ascend", PROGRAM)
V2 = """version = 2
# a comment
[plugins."io.containerd.grpc.v1.cri"]
  enable_cdi = false
  cdi_spec_dirs = ["/etc/cdi"]
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc" # mine
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    token = "s3cret-of-a-registry"
"""
V3 = V2.replace('"io.containerd.grpc.v1.cri"', "'io.containerd.cri.v1.runtime'").replace("version = 2", "version = 3")


class Etc:
    """A containerd that has what is in its file, once it is restarted."""

    def __init__(self, directory, monkeypatch):
        self.config = directory / "config.toml"
        self.backup = directory / "config.toml.npuops-runtime-backup"
        program = directory / "containerd"
        program.write_text('#!/bin/sh\ngrep -q broken "$2" && { echo "invalid TOML" >&2; exit 1; }\ncat "$2"\n')
        program.chmod(0o755)
        self.daemon = containerd_runtime.Daemon(1, str(program), str(self.config), True, "/run/x.sock", "containerd.service")
        self.running = RUNC
        self.restarts = 0
        self.answers = None
        self.fails = lambda text: False
        monkeypatch.setattr(cri, "status", lambda _address: SimpleNamespace(default_runtime=self.running))
        monkeypatch.setattr(containerd_runtime, "check_restartable", lambda _daemon: None)
        monkeypatch.setattr(containerd_runtime, "restart", self.restart)

    def restart(self, *_args):
        self.restarts += 1
        if self.fails(self.config.read_text()):
            raise NpuError("it does not come back")
        self.running = self.answers or containerd_config.Dump(self.config.read_text()).default_runtime
        return SimpleNamespace(default_runtime=self.running)

    def change(self):
        return default_runtime.Registration(self.daemon, PROGRAM)


@pytest.fixture(name="etc")
def _etc(tmp_path, monkeypatch):
    return Etc(tmp_path, monkeypatch)


@pytest.mark.parametrize("text", [V2, V3, V2.replace('    default_runtime_name = "runc" # mine\n', "")], ids=["v2", "v3", "unset"])
def test_there_and_back_byte_for_byte(etc, text):
    etc.config.write_text(text)
    if "default_runtime_name" not in text:
        etc.daemon.dump = lambda config=None: containerd_config.Dump(with_default(config or etc.config))
    change = etc.change()
    assert change.examine() == "containerd's default runtime is runc" and etc.config.read_text() == text
    assert "s3cret" not in change.diff() and '+    default_runtime_name = "ascend"' in change.diff()
    change.apply()
    assert etc.running == ASCEND and etc.backup.read_text() == text and etc.restarts == 1
    values = containerd_config.Dump(etc.config.read_text()).values
    assert [value for key, value in values.items() if key[-3:] == ("ascend", "options", "SystemdCgroup")] == ["true"]
    assert etc.change().examine() is None
    removal = etc.change()
    assert "npuops.ascend has made" in removal.examine_removal()
    etc.running = ASCEND
    if "default_runtime_name" in text:
        removal.apply_removal()
        assert etc.running == RUNC and etc.restarts == 2
    else:
        removal.apply_removal(restart=False)
    assert etc.config.read_text() == text and not etc.backup.exists()


def with_default(path):
    """What containerd prints of a file without a default runtime."""
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    header = '[plugins."io.containerd.grpc.v1.cri".containerd]\n'
    return text if "default_runtime_name" in text else text.replace(header, header + 'default_runtime_name = "runc"\n')


def test_what_else_was_changed_meanwhile_stays(etc):
    etc.config.write_text(V2)
    change = etc.change()
    change.examine()
    change.apply()
    etc.config.write_text(etc.config.read_text().replace("# a comment", "# another") + "\n[debug]\n  level = 'warn'\n")
    (etc.config.parent / "config.toml.npuops-backup").write_text(etc.config.read_text())  # of CDI's edit
    removal = etc.change()
    removal.examine_removal()
    removal.apply_removal()
    assert etc.config.read_text() == V2.replace("# a comment", "# another") + "\n[debug]\n  level = 'warn'\n"
    assert (etc.config.parent / "config.toml.npuops-backup").read_text() == etc.config.read_text()
    assert etc.change().examine_removal() is None


def test_a_containerd_that_does_not_come_back_gets_its_file_back(etc):
    etc.config.write_text(V2)
    etc.fails = lambda text: "ascend" in text
    change = etc.change()
    change.examine()
    with pytest.raises(NpuError, match="was restored. With that, it responds again"):
        change.apply()
    assert etc.config.read_text() == V2 and etc.running == RUNC and etc.restarts == 2


def unwritable_from_now_on(monkeypatch, path):
    usual = config_files.write

    def write(place, *arguments, **options):
        if place == str(path):
            raise NpuError("%s cannot be written: No space left on device" % place)
        usual(place, *arguments, **options)

    monkeypatch.setattr(config_files, "write", write)


def test_a_file_that_cannot_be_restored_is_told_with_its_backup_and_containerd_restarted_all_the_same(etc, monkeypatch):
    etc.config.write_text(V2)

    def fails(text):
        if etc.restarts == 1:
            unwritable_from_now_on(monkeypatch, etc.config)
        return "ascend" in text

    etc.fails = fails
    change = etc.change()
    change.examine()
    with pytest.raises(NpuError) as caught:
        change.apply()
    told = "%s still has the other default runtime, because the original could not be restored from %s: " % (etc.config, etc.backup)
    assert told in caught.value.message and "No space left" in caught.value.message and "It reported:" in caught.value.message
    assert caught.value.details == {"unrestored": str(etc.config)}
    assert etc.restarts == 2 and etc.backup.read_text() == V2


def test_a_containerd_that_uses_another_runtime_gets_its_file_back(etc):
    etc.config.write_text(V2)
    change = etc.change()
    change.examine()
    etc.answers = RUNC
    with pytest.raises(NpuError, match="its default runtime is"):
        change.apply()
    assert etc.config.read_text() == V2


def test_a_run_that_was_killed_before_the_restart_is_completed_or_undone(etc):
    etc.config.write_text(V2)
    change = etc.change()
    change.examine()
    change.apply(restart=False)
    again = etc.change()
    assert "has not been restarted since" in again.examine() and again.edit is None
    etc.fails = lambda text: "ascend" in text
    with pytest.raises(NpuError, match="was restored"):
        again.apply()
    assert etc.config.read_text() == V2
    removal = etc.change()
    assert removal.examine_removal() is None


REFUSED = {
    "somebody-elses": (
        V2.replace('"runc" # mine', '"ascend"')
        .replace("runtimes.runc", "runtimes.ascend")
        .replace("SystemdCgroup = true", f'BinaryName = "{PROGRAM[:-5]}/x/ascend-docker-runtime"'),
        "another ascend-docker-runtime",
    ),
    "not-runc": (V2.replace('"runc" # mine', '"kata"'), "Make runc the default runtime"),
    "a-section": (
        V2 + '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.ascend]\n  runtime_type = "x"\n',
        "already has a runtime ascend",
    ),
    "generated": ("# DO NOT EDIT\n" + V2, "is generated by other software, which would undo an edit. Set npu_runtime_mode: cdi"),
    "broken": (V2 + "[[[\n", "line"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_does_not_fit_is_refused(etc, case):
    text, told = REFUSED[case]
    etc.config.write_text(text)
    with pytest.raises(NpuError, match=told):
        etc.change().examine()
    assert etc.config.read_text() == text and not etc.backup.exists()


def test_a_distribution_that_generates_its_configuration_is_refused(etc):
    etc.config.write_text(V2)
    etc.daemon.kind = "k3s"
    with pytest.raises(NpuError, match="k3s generates the configuration of its containerd.*Set npu_runtime_mode: cdi"):
        etc.change().examine()


def test_without_a_file_there_is_nothing_to_edit(etc):
    etc.daemon.dump = lambda config=None: containerd_config.Dump(V2)
    with pytest.raises(NpuError, match="containerd config default >"):
        etc.change().examine()


def test_an_edit_that_would_change_more_is_not_made(etc):
    """The dump of the candidate has another snapshotter."""
    etc.config.write_text(V2)
    etc.daemon.dump = lambda config=None: containerd_config.Dump(V2 if config is None else V2 + "[other]\n  x = 1\n")
    with pytest.raises(NpuError, match="more than the default runtime would change: other"):
        etc.change().examine()
