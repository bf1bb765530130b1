# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking back what switching CDI on changed in the host's containerd, where it can be told that it was us, and only us."""

from __future__ import annotations

import contextlib
import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec, config_files
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config as containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import enable as containerd_enable
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import runtime as containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import remove_file


class Revert(containerd_enable.Switch):
    """The way back of a Switch. After ``examine``: ``edit`` (an Edit or None), ``left`` (why CDI stays on although an edit of
    ours is there, or None), ``stale`` (a backup of ours that nothing needs any more, or None).
    """

    def __init__(self, daemon, timeout=30):
        super().__init__(daemon, timeout)
        self.left = None
        self.stale = None
        self._ours = None

    def examine(self):
        """Why something has to change, as a sentence; None when nothing of ours is in place, or it has to stay."""
        try:
            self.look()
        except NpuError as exc:
            # Nothing is changed then, and it keeps nobody from taking back the rest.
            self.left = "Whether CDI was switched on by npuops.ascend cannot be told. %s" % exc.message
            return None
        self.address = self.daemon.address or self.before.address or containerd_runtime.DEFAULT_ADDRESS
        self._ours = self._own_edit()
        if self._ours is None:
            return self._examine_backup()
        others = [path for path in cdi_spec.spec_files() if path != cdi_spec.PATH]
        if others:
            self.left = "CDI stays on in %s, because %s needs it" % (self._ours.path, " and ".join(others))
            return None
        before = self._ours.before
        self.edit = containerd_config.Edit(self._ours.path, self._ours.after, before or "")
        problem = self._problem() or config_files.unwritable(self.edit.path)
        if problem:
            self.edit = None
            self.left = "CDI stays on in %s: %s" % (self._ours.path, problem)
            return None
        self.restart_required = True
        return "CDI was switched on in %s by npuops.ascend" % self.edit.path

    def would_change(self, restart=True):
        if self.restart_required and not self.edit:
            return restart
        return self.edit is not None or self.stale is not None

    def apply(self, restart=True):
        """Make it so; when containerd does not come back, everything is as it was, and NpuError has what it said.

        Without the restart the backup stays: by it the next call knows that containerd still runs with an edit of ours.
        """
        if restart and self.restart_required:
            containerd_runtime.check_restartable(self.daemon)
        if self.edit:
            self._write(self._ours.before)
        if self.restart_required and not restart:
            if self.edit and self._ours.before is None and not os.path.lexists(self.backup_path(self.edit.path)):
                config_files.write(self.backup_path(self.edit.path), "", like=self.edit.path)
            return
        if self.restart_required:
            try:
                self.status = containerd_runtime.restart(self.daemon, self.address, self.timeout)
            except NpuError as exc:
                self._forward_again(exc.message)
            self.restart_required = False
        backup = self.stale or (self.backup_path(self.edit.path) if self.edit else None)
        if backup and os.path.lexists(backup) and not self._foreign(backup):
            remove_file(backup)
            with contextlib.suppress(OSError):
                os.rmdir(config_files.BACKUPS)

    def _forward_again(self, said):
        if not self.edit:
            raise NpuError(
                "containerd's CRI did not come back after a restart of %s. Its configuration was not changed by this run. "
                "It says:\n%s" % (self.daemon.unit, said)
            )
        try:
            self._write(self._ours.after)
            place = "%s with CDI on is in place as before" % self.edit.path
            details = {"restored": self.edit.path}
        except NpuError as exc:
            place = "%s stays with CDI off, because the one with CDI on could not be put back: %s" % (self.edit.path, exc.message)
            details = {}
        try:
            containerd_runtime.restart(self.daemon, self.address, self.timeout)
            outcome = "it answers again with that"
        except NpuError as again:
            outcome = "even so it does not come back: %s" % again.message
        raise NpuError(
            "containerd's CRI did not come back with CDI off again. So %s; %s. With CDI off it said:\n%s" % (place, outcome, said),
            **details,
        )

    def _examine_backup(self):
        paths = [file.path for file in self.files] or [self.daemon.config]
        texts = {file.path: file.text for file in self.files}
        for path in paths:
            backup = self.backup_path(path)
            if not os.path.lexists(backup):
                continue
            before = self._saved(path)
            same = before is not None and before == texts.get(path, "")
            if same:
                self.stale = backup
            if (same or path not in texts) and self._still_on():
                self.restart_required = True
                return "CDI is off again in %s, but the running containerd was started before that" % path
            if same:
                return "%s is a copy of what is in place" % backup
            if path in texts:
                self.left = (
                    "CDI stays as it is in %s: the file was changed after npuops.ascend switched CDI on in it. What it was "
                    "before is in %s" % (path, backup)
                )
        return None

    def _still_on(self):
        """Whether CDI is on in the process that runs, although its configuration has it off."""
        if self.before.on or self._ask():
            return False
        return self.status.cdi

    def _foreign(self, backup):
        """Whether that is the backup of a file that was gone when we wrote ours."""
        return self.edit is not None and self._ours.before is None and os.path.getsize(backup) > 0

    def _problem(self):
        """Why the way back would be more than that, by containerd's own word; None when it is not."""
        if self._ours.before is None:
            return None  # without a file containerd runs on its defaults, which the file named but for CDI
        with tempfile.TemporaryDirectory(prefix="npuops-", dir=config_files.private_place()) as directory:
            candidate = containerd_config.write_candidate(directory, self.files, self.edit)
            try:
                dump = self.daemon.dump(candidate)
            except NpuError as exc:
                return "containerd does not accept what was there before: %s" % exc.message
        others = self.before.other_differences(dump)
        return "more than CDI would change: %s" % ", ".join(others[:5]) if others else None

    def _write(self, text):
        if text is None:
            config_files.remove(self.edit.path)
        else:
            config_files.write(self.edit.path, text, like=self.edit.path, files=self.files)
