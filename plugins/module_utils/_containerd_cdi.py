# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching CDI on in the host's containerd, so that it is on afterwards or everything is as it was.

Look (``examine``), then act (``apply``). What counts in the end is what the running daemon says of itself, so a run
that was killed between edit and restart is finished by the next one.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils import _containerd, _containerd_config, _cri
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._files import remove_file, write_atomic

BACKUP_SUFFIX = ".npuops-backup"


class Switch:
    """CDI of one ``daemon`` (a _containerd.Daemon); ``timeout``: seconds a restart may take until the CRI is ready.

    After ``look``: ``files`` (list of ConfigFile) and ``before`` (a Dump). After ``examine``: ``edit`` (an Edit or
    None), ``restart_required``, ``status`` (of the running daemon, None when it does not answer), ``address``.
    """

    def __init__(self, daemon, timeout=30):
        self.daemon = daemon
        self.timeout = timeout
        self.edit = None
        self.restart_required = False
        self.status = None
        self.address = None
        self.files = []
        self.before = None
        self._undo = None

    def examine(self):
        """Why something has to change, as a sentence; None when CDI is on in file and daemon. Changes nothing."""
        self.look()
        if not self.before.knows_cdi:
            raise NpuError(
                "containerd %s on this host knows no CDI (its configuration has no enable_cdi). Upgrade containerd "
                "to 1.7 or newer, then repeat" % self.daemon.version()
            )
        if self.before.cri_disabled:
            raise NpuError(
                "%s switches the CRI plugin off (disabled_plugins), as Docker's package does: this containerd cannot "
                "serve Kubernetes. Remove cri from that list and restart containerd, then repeat" % self.daemon.config
            )
        self.address = self.daemon.address or self.before.address or _containerd.DEFAULT_ADDRESS
        problem = self._ask()
        if not self.before.on:
            if problem:
                raise self._not_answering(problem)
            self.edit = self.choose()
            self._undo = self.edit
            self.restart_required = True
            return "CDI is off in %s" % self.edit.path
        if self.status is not None and self.status.cdi and _containerd_config.has_spec_dir(self.status.cdi_spec_dirs):
            return None
        self._undo = self._own_edit()
        if problem and self._undo is None:
            raise self._not_answering(problem)
        self.restart_required = True
        return "CDI is on in %s, but the running containerd was started before that" % (
            self._undo.path if self._undo else self.daemon.config
        )

    def look(self):
        """Read the configuration, and what containerd makes of it."""
        self.files = self._load()
        try:
            self.before = self.daemon.dump()
        except NpuError as exc:
            raise NpuError(
                "containerd does not accept its own configuration %s, so nothing was changed. Repair it first; it "
                "says: %s"
                % (self.daemon.config, exc.message)
            ) from None

    def would_change(self, restart=True):
        """Whether ``apply`` has anything to do, without the restart if that is left to others."""
        return self.edit is not None or (restart and self.restart_required)

    def apply(self, restart=True):
        """Make it so; after a restart that fails everything is undone, and NpuError has what containerd said."""
        if restart:
            _containerd.check_restartable(self.daemon)
        if self.edit:
            self._put_in_place()
        if not restart:
            return
        try:
            self.status = _containerd.restart(self.daemon, self.address, self.timeout)
            if not self.status.cdi:
                raise NpuError("it is back, but still says that CDI is off: it does not use %s" % self.daemon.config)
        except NpuError as exc:
            self._back_to_before(exc.message)
        self.restart_required = False

    def _load(self):
        daemon = self.daemon
        try:
            files = _containerd_config.load(daemon.config)
        except (OSError, ValueError) as exc:
            # containerd's own words are better, if it does not like the file either.
            try:
                daemon.dump()
                said = "containerd accepts it, but npuops.ascend cannot follow it: %s" % exc
            except NpuError as own:
                said = "containerd says: %s" % own.message
            raise NpuError(
                "containerd's configuration %s cannot be read, so nothing was changed. %s" % (daemon.config, said)
            ) from None
        if not files and daemon.explicit:
            raise NpuError("containerd was started with %s, which does not exist any more" % daemon.config)
        return files

    def _ask(self):
        """Ask the running daemon; None, or why it does not answer."""
        if self.daemon.pid is None:
            return "%s is not running" % (self.daemon.unit or "containerd")
        try:
            self.status = _cri.status(self.address)
        except _cri.CriError as exc:
            return str(exc)
        return None

    def _not_answering(self, problem):
        said = _containerd.journal(self.daemon.unit, 0) if self.daemon.unit else ""
        return NpuError(
            "containerd's CRI does not answer, before anything was changed: %s. Repair it first%s"
            % (problem, "; its journal:\n" + said if said else "")
        )

    def choose(self):
        """The first proposed edit that containerd understands as: CDI on, and nothing else changed. Needs ``look``."""
        files = self.files
        text = files[0].text if files else None
        generated = _containerd.generated(self.daemon, text)
        if generated:
            raise NpuError("CDI is off in containerd, and " + generated)
        complaints = []
        for edit in _containerd_config.proposals(self.daemon.config, files):
            with tempfile.TemporaryDirectory(prefix="npuops-", dir=private_place()) as directory:
                candidate = _containerd_config.write_candidate(directory, files, edit)
                try:
                    dump = self.daemon.dump(candidate)
                except NpuError as exc:
                    complaints.append("%s: %s" % (edit.path, exc.message))
                    continue
            others = self.before.other_differences(dump)
            if others:
                complaints.append("%s: it would change more than CDI: %s" % (edit.path, ", ".join(others[:5])))
            elif not dump.on:
                complaints.append("%s: CDI would still be off" % edit.path)
            else:
                return edit
        raise NpuError(
            "There is no small edit that switches CDI on in containerd's configuration %s; nothing was changed. Set "
            "enable_cdi = true in its CRI section by hand. Tried: %s" % (self.daemon.config, "; ".join(complaints))
        )

    def _own_edit(self):
        """The edit of an earlier run that is in place (with its backup), or None."""
        for file in self.files:
            before = _containerd_config.read(self._backup_path(file.path))
            if (before is not None or file.text == _containerd_config.MINIMAL) and _containerd_config.is_our_edit(
                before, file.text
            ):
                return _containerd_config.Edit(file.path, before, file.text)
        return None

    def _backup_path(self, path):
        # Beside the main file, not beside a drop-in: a pattern such as conf.d/* would read it in as one more drop-in.
        return os.path.join(os.path.dirname(self.daemon.config), os.path.basename(path) + BACKUP_SUFFIX)

    def _put_in_place(self):
        edit = self.edit
        if edit.before is not None:
            _write(self._backup_path(edit.path), edit.before, like=edit.path)
        _write(edit.path, edit.after, like=edit.path)
        problem = None
        try:
            dump = self.daemon.dump()
            others = self.before.other_differences(dump)
            if others or not dump.on:
                problem = "config dump %s" % ("changed in " + ", ".join(others[:5]) if others else "still has CDI off")
        except NpuError as exc:
            problem = exc.message
        if problem:
            self._restore()
            raise NpuError(
                "%s was put back as it was, because with the edit in place containerd understood something else than "
                "with the same edit beforehand: %s" % (edit.path, problem)
            )

    def _back_to_before(self, said):
        if self._undo is None:
            raise NpuError(
                "containerd's CRI did not come back after a restart of %s. Its configuration was not changed by this "
                "run. It says:\n%s" % (self.daemon.unit, said)
            )
        path = self._undo.path
        self._restore()
        try:
            self.status = _containerd.restart(self.daemon, self.address, self.timeout)
            outcome = "containerd answers again with the old one."
        except NpuError as exc:
            outcome = (
                "Even so it does not come back: what was in %s before had not been loaded since it was written, or "
                "something else is wrong. With the old file it says:\n%s\n" % (path, exc.message)
            )
        raise NpuError(
            "containerd's CRI did not come back with CDI on, so the old %s is in place again. %s "
            "With CDI on it said:\n%s" % (path, outcome, said),
            restored=path,
        )

    def _restore(self):
        if self._undo.before is None:
            remove_file(self._undo.path)
        else:
            _write(self._undo.path, self._undo.before, like=self._undo.path)


def private_place():
    """Where copies of a file that may hold passwords go: memory, gone at the next boot."""
    return "/run" if os.access("/run", os.W_OK) else None


def _write(path, text, like):
    """Replace what ``path`` (maybe a link) names; owner, mode and SELinux label are those of ``like``."""
    path = os.path.realpath(path)
    try:
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path), 0o755)
        write_atomic(path, text, like=like)
    except OSError as exc:
        raise NpuError("%s cannot be written: %s. Nothing was changed" % (path, exc.strerror)) from None
