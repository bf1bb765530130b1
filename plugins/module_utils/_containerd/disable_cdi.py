# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo the edit that enabled CDI in the host's containerd, if it was made by this collection and the file was not changed since."""

from __future__ import annotations

import contextlib
import os

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    cdi_spec,
    config_files,
    containerd_config,
    containerd_runtime,
    enable_cdi,
    generated,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, remove_file


class Revert(enable_cdi.Switch):
    """Undoes a Switch. After ``examine``: ``edit`` (an Edit or None), ``left`` (why CDI stays enabled although an edit of this
    collection is in place, or None), ``stale`` (a backup that is no longer needed, or None).
    """

    def __init__(self, daemon, timeout=30):
        super().__init__(daemon, timeout)
        self.left = None
        self.stale = None
        self._ours = None

    def examine(self):
        """Why a change is necessary, as a sentence; None if no edit of this collection is in place, or if it must be kept."""
        try:
            self.look()
        except NpuError as exc:
            # No failure, so that everything else can be removed.
            self.left = "It is unknown whether npuops.ascend enabled CDI. %s" % exc.message
            return None
        self.address = self.daemon.address or self.before.address or containerd_runtime.DEFAULT_ADDRESS
        self._ours = self._own_edit()
        if self._ours is None:
            return self._examine_backup()
        others = [path for path in cdi_spec.spec_files() if path != cdi_spec.PATH]
        if others:
            self.left = "CDI stays enabled in %s, because %s needs it" % (self._ours.path, " and ".join(others))
            return None
        before = self._ours.before
        self.edit = containerd_config.Edit(self._ours.path, self._ours.after, before or "")
        self.edit.companions = self._ours.companions
        problem = self._problem() or config_files.unwritable(self.edit.path)
        if problem:
            self.edit = None
            self.left = "CDI stays enabled in %s: %s" % (self._ours.path, problem)
            return None
        self.restart_required = True
        return "CDI was enabled in %s by npuops.ascend" % self.edit.path

    def would_change(self, restart=True):
        """As enable_cdi.Switch.would_change."""
        if restart and self.restart_required:
            containerd_runtime.check_restartable(self.daemon)
        if self.restart_required and not self.edit:
            return restart
        return self.edit is not None or self.stale is not None

    def apply(self, restart=True):
        """Undo the edit. If containerd fails after the restart, restore the file, and raise NpuError with containerd's messages.

        Without the restart, the backup is kept, so that the next call detects that containerd still runs with the edit.
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
            raise containerd_runtime.broken_before(self.daemon, said)
        try:
            self._write(self._ours.after)
            place = "%s with CDI enabled was restored" % self.edit.path
            details = {"restored": self.edit.path}
        except NpuError as exc:
            place = "%s keeps CDI disabled, because the file with CDI enabled could not be restored: %s" % (
                self.edit.path,
                exc.message,
            )
            details = {}
        try:
            containerd_runtime.restart(self.daemon, self.address, self.timeout)
            outcome = "with that, it responds again"
        except NpuError as again:
            outcome = "it still does not respond: %s" % again.message
        raise NpuError(
            "containerd's CRI does not respond with CDI disabled again. %s; %s. With CDI disabled, it reported:\n%s"
            % (place, outcome, said),
            **details,
        )

    def _examine_backup(self):
        paths = [file.path for file in self.files] or [self.daemon.config]
        texts = {file.path: file.text for file in self.files}
        sources = generated.sources(self.daemon, self.files)
        paths += sources
        texts.update((path, read_text(path)) for path in sources if os.path.lexists(path))
        for path in paths:
            backup = self.backup_path(path)
            if not os.path.lexists(backup):
                continue
            before = self._saved(path)
            same = before is not None and before == texts.get(path, "")
            if same:
                self.stale = backup
            if (same or path not in texts) and self._still_on(path in sources):
                self.restart_required = True
                return "CDI is disabled again in %s, but containerd has not been restarted since" % path
            if same:
                return "the backup %s is identical to the current file" % backup
            if path in texts:
                self.left = (
                    "CDI is not changed in %s: the file was changed after npuops.ascend enabled CDI in it. The original is in %s"
                    % (path, backup)
                )
        return None

    def _still_on(self, generated_later):
        """Whether CDI is enabled in the running process, although its configuration disables it.

        ``generated_later``: the configuration is generated from another file at the next start.
        """
        if (self.before.on and not generated_later) or self._ask():
            return False
        return self.status.cdi

    def _foreign(self, backup):
        """Whether that is the backup of a file that no longer existed when this collection created its own."""
        return self.edit is not None and self._ours.before is None and os.path.getsize(backup) > 0

    def _problem(self):
        """Why the revert would change more than CDI, according to containerd; None if it would not."""
        if self._ours.before is None or self._ours.is_source:
            return None  # without the file, what remains are defaults, from which it differs only in CDI
        try:
            dump = containerd_runtime.dump_with(self.daemon, self.files, self.edit)
        except NpuError as exc:
            return "containerd does not accept the original file: %s" % exc.message
        others = self.before.other_differences(dump)
        return "more than CDI would change: %s" % ", ".join(others[:5]) if others else None

    def _write(self, text):
        if text is None:
            config_files.remove(self.edit.path)
            config_files.remove_companions(self.edit)
        else:
            config_files.write_companions(self.edit)
            config_files.write(self.edit.path, text, like=self.edit.path, files=self.files)
