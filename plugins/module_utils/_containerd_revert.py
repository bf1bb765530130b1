# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking back what switching CDI on changed in the host's containerd, where it can be told that it was us, and only us.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils import _cdi, _containerd, _containerd_cdi, _containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._files import remove_file, write_atomic


class Revert(_containerd_cdi.Switch):
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
        self.look()
        self.address = self.daemon.address or self.before.address or _containerd.DEFAULT_ADDRESS
        self._ours = self._own_edit()
        if self._ours is None:
            return self._examine_backup()
        others = [path for path in _cdi.spec_files() if path != _cdi.PATH]
        if others:
            self.left = "CDI stays on in %s, because %s needs it" % (self._ours.path, " and ".join(others))
            return None
        before = self._ours.before
        self.edit = _containerd_config.Edit(self._ours.path, self._ours.after, before or "")
        problem = self._problem()
        if problem:
            self.edit = None
            self.left = "CDI stays on in %s: %s" % (self._ours.path, problem)
            return None
        return "CDI was switched on in %s by npuops.ascend" % self.edit.path

    def would_change(self, restart=True):
        return self.edit is not None or self.stale is not None

    def apply(self, restart=True):
        """Make it so; when containerd does not come back, everything is as it was, and NpuError has what it said."""
        if self.stale:
            remove_file(self.stale)
        if not self.edit:
            return
        if restart:
            _containerd.check_restartable(self.daemon)
        self._write(self._ours.before)
        if restart:
            try:
                self.status = _containerd.restart(self.daemon, self.address, self.timeout)
            except NpuError as exc:
                self._write(self._ours.after)
                try:
                    _containerd.restart(self.daemon, self.address, self.timeout)
                    outcome = "it answers again with that"
                except NpuError as again:
                    outcome = "even so it does not come back: %s" % again.message
                raise NpuError(
                    "containerd's CRI did not come back with CDI off again, so %s with CDI on is in place as before; %s. "
                    "With CDI off it said:\n%s" % (self.edit.path, outcome, exc.message),
                    restored=self.edit.path,
                ) from None
        backup = self._backup_path(self.edit.path)
        if os.path.lexists(backup):
            remove_file(backup)

    def _examine_backup(self):
        for file in self.files:
            backup = self._backup_path(file.path)
            before = _containerd_config.read(backup)
            if before is None:
                continue
            if before == file.text:
                self.stale = backup
                return "%s is a copy of what is in place" % backup
            self.left = (
                "CDI stays as it is in %s: the file was changed after npuops.ascend switched CDI on in it. What it was before "
                "is in %s" % (file.path, backup)
            )
        return None

    def _problem(self):
        """Why the way back would be more than that, by containerd's own word; None when it is not."""
        if self._ours.before is None:
            return None  # without a file containerd runs on its defaults, which the file named but for CDI
        with tempfile.TemporaryDirectory(prefix="npuops-", dir=_containerd_cdi.private_place()) as directory:
            candidate = _containerd_config.write_candidate(directory, self.files, self.edit)
            try:
                dump = self.daemon.dump(candidate)
            except NpuError as exc:
                return "containerd does not accept what was there before: %s" % exc.message
        others = self.before.other_differences(dump)
        return "more than CDI would change: %s" % ", ".join(others[:5]) if others else None

    def _write(self, text):
        path = os.path.realpath(self.edit.path)
        if text is None:
            remove_file(path)
        else:
            write_atomic(path, text, like=path)
