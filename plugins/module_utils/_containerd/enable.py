# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching CDI on in the host's containerd, so that it is on afterwards or everything is as it was.

Look (``examine``), then act (``apply``). What counts in the end is what the running daemon says of itself, so a run
that was killed between edit and restart is finished by the next one.
"""

from __future__ import annotations

import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config as containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_files, cri, toml_edit
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import runtime as containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


class Switch:
    """CDI of one ``daemon`` (a _containerd.runtime.Daemon); ``timeout``: seconds a restart may take until the CRI is ready.

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
        self.check_fit()
        self.address = self.daemon.address or self.before.address or containerd_runtime.DEFAULT_ADDRESS
        problem = self._ask()
        if not self.before.on:
            if problem:
                raise self._not_answering(problem)
            self.edit = self.choose()
            self._undo = self.edit
            self.restart_required = True
            return "CDI is off in %s" % self.edit.path
        if self.status is not None and self.status.cdi and containerd_config.has_spec_dir(self.status.cdi_spec_dirs):
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
        try:
            self.files = containerd_config.load(self.daemon.config)
            unclear = None
        except (OSError, ValueError) as exc:
            unclear = exc
        if not (self.files or unclear) and self.daemon.explicit:
            raise NpuError("containerd was started with %s, which does not exist any more" % self.daemon.config)
        try:
            self.before = self.daemon.dump()
        except NpuError as exc:
            raise NpuError(
                "containerd does not accept its own configuration %s, so nothing was changed. Repair it first%s; it says: %s"
                % (self.daemon.config, " (%s)" % unclear if unclear else "", exc.message)
            ) from None
        # Where CDI is on there is nothing to edit.
        if unclear and not self.before.on:
            raise NpuError(
                "CDI is off in containerd, and its configuration is not one that npuops.ascend edits, so nothing was changed: %s. "
                "containerd accepts it, but another release may not. Repair that place, or set enable_cdi = true in the CRI "
                "section by hand; then repeat" % unclear
            )

    def check_fit(self):
        """NpuError when this containerd can give no pod a device, whatever is edited. Needs ``look``."""
        # Before the rest: 1.7 does not even print the section of a plugin that is off.
        if self.before.cri_disabled:
            raise NpuError(
                "%s switches the CRI plugin off (disabled_plugins), as Docker's package does: this containerd cannot "
                "serve Kubernetes. Remove cri from that list and restart containerd, then run again" % self._disabling()
            )
        if not self.before.knows_cdi:
            raise NpuError(
                "containerd %s on this host knows no CDI (its configuration has no enable_cdi). Upgrade containerd "
                "to 1.7 or newer, then run again" % self.daemon.version()
            )

    def would_change(self, restart=True):
        """Whether ``apply`` has anything to do, without the restart if that is left to others."""
        return self.edit is not None or (restart and self.restart_required)

    def apply(self, restart=True):
        """Make it so; after a restart that fails everything is undone, and NpuError has what containerd said."""
        if restart:
            containerd_runtime.check_restartable(self.daemon)
        if self.edit:
            self._put_in_place()
        if not restart:
            return
        try:
            self.status = containerd_runtime.restart(self.daemon, self.address, self.timeout)
            if not self.status.cdi:
                raise NpuError("it is back, but still says that CDI is off: it does not use %s" % self.daemon.config)
        except NpuError as exc:
            self._back_to_before(exc.message)
        self.restart_required = False

    def _ask(self):
        """Ask the running daemon; None, or why it does not answer."""
        if self.daemon.pid is None:
            return "%s is not running" % (self.daemon.unit or "containerd")
        try:
            self.status = cri.status(self.address)
        except cri.CriError as exc:
            return str(exc)
        return None

    def _not_answering(self, problem):
        said = self.daemon.masked(containerd_runtime.journal(self.daemon.unit, 0)) if self.daemon.unit else ""
        return NpuError(
            "containerd's CRI does not answer, before anything was changed: %s. Repair it first%s"
            % (problem, "; its journal:\n" + said if said else "")
        )

    def choose(self):
        """The first proposed edit that containerd understands as: CDI on, and nothing else changed. Needs ``look``."""
        files = self.files
        texts = {file.path: file.text for file in files}
        complaints = []
        left_alone = []
        for edit in containerd_config.proposals(self.daemon.config, files):
            reason = containerd_runtime.generated(self.daemon, edit.path, texts.get(edit.path)) or config_files.unwritable(
                edit.path
            )
            if reason:
                left_alone.append(reason)
                continue
            with tempfile.TemporaryDirectory(prefix="npuops-", dir=config_files.private_place()) as directory:
                candidate = containerd_config.write_candidate(directory, files, edit)
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
        if left_alone:
            raise NpuError("CDI is off in containerd, and " + left_alone[0])
        raise NpuError(
            "There is no small edit that switches CDI on in containerd's configuration %s; nothing was changed. Set "
            "enable_cdi = true in its CRI section by hand. Tried: %s" % (self.daemon.config, "; ".join(complaints))
        )

    def _disabling(self):
        """The file that has the CRI plugin in disabled_plugins."""
        for file in reversed(self.files):
            if containerd_config.disables_cri(toml_edit.flatten(file.text)):
                return file.path
        return self.daemon.config

    def _own_edit(self):
        """The edit of an earlier run that is in place (with its backup), or None."""
        for file in self.files:
            # Where there was no file there is no backup, but there may be one of a file before that.
            for before in (self._saved(file.path), None):
                if containerd_config.is_our_edit(before, file.text):
                    return containerd_config.Edit(file.path, before, file.text)
        return None

    def _saved(self, path):
        """The text of the backup of ``path``; None without one, or when it is none of ours: those can be read."""
        try:
            return containerd_config.read(self.backup_path(path))
        except (OSError, ValueError):
            return None

    def backup_path(self, path):
        """Where the original of the file ``path`` is kept."""
        return config_files.backup_path(self.daemon.config, path, self.files)

    def _put_in_place(self):
        edit = self.edit
        backup = self.backup_path(edit.path)
        try:
            if edit.before is not None:
                config_files.write(backup, edit.before, like=edit.path)
            config_files.write(edit.path, edit.after, like=edit.path, files=self.files)
        except NpuError as exc:
            if edit.before is not None and self._saved(edit.path) == edit.before:
                config_files.remove(backup)
            raise NpuError("%s. Nothing was changed" % exc.message) from None
        problem = None
        try:
            dump = self.daemon.dump()
            others = self.before.other_differences(dump)
            if others or not dump.on:
                problem = "config dump %s" % ("changed in " + ", ".join(others[:5]) if others else "still has CDI off")
        except NpuError as exc:
            problem = exc.message
        if problem:
            kept = self._restore()
            raise NpuError(
                "With the edit in place containerd understood something else than with the same edit beforehand: %s. %s"
                % (problem, kept or "%s was put back as it was" % edit.path)
            )

    def _back_to_before(self, said):
        if self._undo is None:
            raise NpuError(
                "containerd's CRI did not come back after a restart of %s. Its configuration was not changed by this "
                "run. It says:\n%s" % (self.daemon.unit, said)
            )
        path = self._undo.path
        kept = self._restore()
        place = "the file as it is" if kept else "the old one"
        # Also when the file stays: what was in containerd's way may have gone by now.
        try:
            self.status = containerd_runtime.restart(self.daemon, self.address, self.timeout)
            outcome = "containerd answers again with %s." % place
        except NpuError as exc:
            outcome = "Even so it does not come back: %swith %s it says:\n%s\n" % (
                ""
                if kept
                else "what was in %s before had not been loaded since it was written, or something else is wrong; " % path,
                place,
                exc.message,
            )
        raise NpuError(
            "containerd's CRI did not come back with CDI on. %s. %s With CDI on it said:\n%s"
            % (kept or "So the old %s is in place again" % path, outcome, said),
            **({} if kept else {"restored": path}),
        )

    def _restore(self):
        """Put back what was there; None, or why that failed and where it is."""
        path, before = self._undo.path, self._undo.before
        try:
            if before is None:
                config_files.remove(path)
            else:
                config_files.write(path, before, like=path, files=self.files)
        except NpuError as exc:
            todo = "remove it" if before is None else "put back %s" % self.backup_path(path)
            return "%s still has CDI on, because the old one could not be put back: %s. Repair that, %s and restart %s" % (
                path,
                exc.message,
                todo,
                self.daemon.unit or "containerd",
            )
        return None
