# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When CDI is switched off again, and when it stays. That containerd comes back is tested in tests/lab."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    cdi_spec,
    containerd_config,
    containerd_runtime,
    disable_cdi,
)

BEFORE = """version = 2
# a comment
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause:3"
  enable_cdi = false
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
"""


class Etc:
    def __init__(self, directory):
        self.config = directory / "config.toml"
        self.backup = directory / "config.toml.npuops-backup"
        # config dump of what is in the file: enough to compare.
        program = directory / "containerd"
        program.write_text('#!/bin/sh\ngrep -q broken "$2" && { echo "invalid TOML" >&2; exit 1; }\ncat "$2"\n')
        program.chmod(0o755)
        self.daemon = containerd_runtime.Daemon(1, str(program), str(self.config), True, "/run/x.sock", "containerd.service")

    def switched_on(self):
        self.config.write_text(containerd_config.switch_on(BEFORE, containerd_config.V2))
        self.backup.write_text(BEFORE)
        assert "enable_cdi = true" in self.config.read_text()

    def revert(self):
        switch = disable_cdi.Revert(self.daemon)
        return switch, switch.examine()


@pytest.fixture(name="etc")
def _etc(tmp_path, monkeypatch):
    monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH])
    monkeypatch.setattr(containerd_runtime, "check_restartable", lambda _daemon: None)
    return Etc(tmp_path)


def test_our_edit_goes_byte_for_byte_with_its_backup(etc):
    etc.switched_on()
    switch, reason = etc.revert()
    assert reason and switch.would_change() and switch.left is None
    assert "-  enable_cdi = true" in switch.edit.diff() and "+  enable_cdi = false" in switch.edit.diff()
    assert "enable_cdi = true" in etc.config.read_text()
    switch.apply(restart=False)
    assert etc.config.read_text() == BEFORE and switch.restart_required
    switch, reason = etc.revert()
    assert (switch.would_change(), switch.restart_required, switch.left) == (True, False, None), "nothing runs with our edit"
    switch.apply(restart=False)
    assert etc.config.read_text() == BEFORE and not etc.backup.exists()
    switch, reason = etc.revert()
    assert (reason, switch.would_change(), switch.left) == (None, False, None)


def test_what_somebody_changed_since_stays(etc):
    etc.switched_on()
    etc.config.write_text(etc.config.read_text() + "# mine\n")
    switch, reason = etc.revert()
    assert reason is None and not switch.would_change() and "was changed after" in switch.left
    assert etc.backup.exists()


def test_cdi_that_others_need_stays_on(etc, monkeypatch):
    monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH, "/etc/cdi/gpu.yaml"])
    etc.switched_on()
    switch, reason = etc.revert()
    assert reason is None and not switch.would_change() and "/etc/cdi/gpu.yaml needs it" in switch.left


def test_cdi_that_was_on_before_stays_on(etc):
    etc.config.write_text(BEFORE.replace("false", "true"))
    switch, reason = etc.revert()
    assert (reason, switch.would_change(), switch.left) == (None, False, None)


def test_a_backup_that_containerd_does_not_accept_is_not_put_back(etc):
    before = BEFORE + "# broken\n"
    etc.backup.write_text(before)
    etc.config.write_text(containerd_config.switch_on(before, containerd_config.V2))
    etc.daemon.dump = lambda config=None: (
        containerd_runtime.Daemon.dump(etc.daemon, config) if config else containerd_config.Dump(etc.config.read_text())
    )
    switch, reason = etc.revert()
    assert reason is None and not switch.would_change() and "invalid TOML" in switch.left


def test_cut_short_between_file_and_backup(etc):
    etc.config.write_text(BEFORE)
    etc.backup.write_text(BEFORE)
    switch, reason = etc.revert()
    assert reason and switch.would_change()
    switch.apply()
    assert not etc.backup.exists() and etc.config.read_text() == BEFORE


def test_a_file_that_was_made_for_cdi_alone_goes(etc):
    etc.config.write_text(containerd_config.MINIMAL)
    switch, reason = etc.revert()
    assert reason
    switch.apply(restart=False)
    assert not etc.config.exists()
