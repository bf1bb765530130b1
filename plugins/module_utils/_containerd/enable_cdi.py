# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Enable CDI in the host's containerd. Afterwards it is enabled, or everything is as before.

First ``examine``, then ``apply``. The status of the running daemon decides, so the next run completes a run that was killed between
the edit and the restart.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    config_files,
    containerd_config,
    containerd_runtime,
    generated,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri, toml_edit, toml_file


class Switch:
    """CDI of one ``daemon`` (a containerd_runtime.Daemon); ``timeout``: seconds from a restart until the CRI must be ready, or
    what its distribution needs if that is more.

    After ``look``: ``files`` (list of ConfigFile) and ``before`` (a Dump). After ``examine``: ``edit`` (an Edit or
    None), ``restart_required``, ``status`` (of the running daemon, None if it does not respond), ``address``.
    """

    def __init__(self, daemon, timeout=30):
        self.daemon = daemon
        self.timeout = max(timeout, host_distributions.named(daemon.kind).restart_seconds)
        self.edit = None
        self.restart_required = False
        self.status = None
        self.address = None
        self.files = []
        self.before = None
        self._undo = None

    def examine(self):
        """Why a change is necessary, as a sentence; None if CDI is enabled in the file and in the daemon. Changes nothing."""
        self.look()
        self.check_fit()
        self.address = self.daemon.address or self.before.address or containerd_runtime.DEFAULT_ADDRESS
        problem = self._ask()
        if not self.before.on:
            if problem:
                raise self._not_answering(problem)
            self.restart_required = True
            # What is generated from it follows with the restart.
            self._undo = generated.own_edit(self.daemon, self.files, self._saved)
            if self._undo:
                return "CDI is enabled in %s, but %s has not been restarted since" % (self._undo.path, self.daemon.unit)
            self.edit = self.choose()
            self._undo = self.edit
            return "CDI is disabled in %s" % (self.daemon.config if self.edit.is_source else self.edit.path)
        if self.status is not None and self.status.cdi and containerd_config.has_spec_dir(self.status.cdi_spec_dirs):
            return None
        self._undo = self._own_edit()
        if problem and self._undo is None:
            raise self._not_answering(problem)
        self.restart_required = True
        return "CDI is enabled in %s, but containerd has not been restarted since" % (
            self._undo.path if self._undo else self.daemon.config
        )

    def look(self):
        """Read the configuration, and containerd's dump of it."""
        try:
            self.files = containerd_config.load(self.daemon.config)
            unclear = None
        except (OSError, ValueError) as exc:
            unclear = exc
        if not (self.files or unclear) and self.daemon.explicit:
            raise NpuError(
                "containerd was started with %s, which no longer exists. Restore the file, then run again" % self.daemon.config
            )
        try:
            self.before = self.daemon.dump()
        except NpuError as exc:
            raise NpuError(
                "containerd does not accept its own configuration %s, so nothing was changed. Fix it first%s. containerd says: %s"
                % (self.daemon.config, " (%s)" % unclear if unclear else "", exc.message)
            ) from None
        # If CDI is enabled, no edit is necessary.
        if unclear and not self.before.on:
            raise NpuError(
                "CDI is disabled in containerd, and npuops.ascend cannot edit its configuration, so nothing was changed: %s. "
                "containerd accepts it, but another release may not. Fix that line, or set enable_cdi = true in the CRI section "
                "manually, then run again" % unclear
            )

    def check_fit(self):
        """Raise NpuError if no edit can enable CDI in this containerd. Requires ``look``."""
        # First, because 1.7 does not print the section of a disabled plugin.
        if self.before.cri_disabled:
            raise NpuError(
                "%s disables the CRI plugin (disabled_plugins), as Docker's package does, so this containerd cannot serve "
                "Kubernetes. Remove cri from that list and restart containerd, then run again" % self._disabling()
            )
        if not self.before.knows_cdi:
            raise NpuError(
                "containerd %s on this host does not support CDI (its configuration has no enable_cdi). Upgrade containerd to 1.7 "
                "or newer, then run again" % self.daemon.version()
            )

    def would_change(self, restart=True):
        """Whether ``apply`` would change anything; ``restart``: whether it may restart containerd.

        Raises NpuError if it may, and a restart would affect running pods.
        """
        if not (self.edit is not None or (restart and self.restart_required)):
            return False
        if restart:
            containerd_runtime.check_restartable(self.daemon)
        return True

    def apply(self, restart=True):
        """Enable CDI. If containerd fails after the restart, undo the edit, and raise NpuError with containerd's messages."""
        if restart:
            containerd_runtime.check_restartable(self.daemon)
        if self.edit:
            self._put_in_place()
        if not restart:
            return
        try:
            self.status = containerd_runtime.restart(self.daemon, self.address, self.timeout)
            if not self.status.cdi:
                used = self._undo.path if self._undo and self._undo.is_source else self.daemon.config
                raise NpuError("containerd responds, but still has CDI disabled: it does not use %s" % used)
        except NpuError as exc:
            self._back_to_before(exc.message)
        self.restart_required = False

    def _ask(self):
        """Query the running daemon; returns None, or why it does not respond."""
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
            "containerd's CRI does not respond, although nothing was changed: %s. Fix it first%s"
            % (problem, "; its journal:\n" + said if said else "")
        )

    def choose(self):
        """The first proposed edit that, according to containerd, enables CDI and changes nothing else. Requires ``look``."""
        files = self.files
        texts = {file.path: file.text for file in files}
        complaints = []
        left_alone = []
        for edit in generated.edits(self.daemon, files) + containerd_config.proposals(self.daemon.config, files):
            reason = None if edit.is_source else generated.reason(self.daemon, edit.path, texts.get(edit.path))
            reason = reason or config_files.unwritable(edit.path)
            if reason:
                left_alone.append(reason)
                continue
            try:
                dump = containerd_runtime.dump_with(self.daemon, files, edit.shown if edit.is_source else edit)
            except NpuError as exc:
                complaints.append("%s: %s" % (edit.path, exc.message))
                continue
            others = self.before.other_differences(dump)
            if others:
                complaints.append("%s: it would change more than CDI: %s" % (edit.path, ", ".join(others[:5])))
            elif not dump.on:
                complaints.append("%s: CDI would still be disabled" % edit.path)
            else:
                return edit
        if left_alone:
            raise NpuError("CDI is disabled in containerd, and " + left_alone[0])
        raise NpuError(
            "No edit that was tried enables CDI in containerd's configuration %s; nothing was changed. Set enable_cdi = true in "
            "its CRI section manually. Tried: %s" % (self.daemon.config, "; ".join(complaints))
        )

    def _disabling(self):
        """The file that disables the CRI plugin."""
        for file in reversed(self.files):
            if containerd_config.disables_cri(toml_edit.flatten(file.text)):
                return file.path
        return self.daemon.config

    def _own_edit(self):
        """The edit of an earlier run that is still in place (with its backup), or None."""
        for file in self.files:
            # If there was no file, there is no backup of it, but there may be one of an even older file.
            for before in (self._saved(file.path), None):
                if containerd_config.is_our_edit(before, file.text):
                    return containerd_config.Edit(file.path, before, file.text)
        return generated.own_edit(self.daemon, self.files, self._saved)

    def _saved(self, path):
        """The text of the backup of ``path``; None without one, or if it cannot be read, because then it is not ours."""
        try:
            return toml_file.read(self.backup_path(path))
        except (OSError, ValueError):
            return None

    def backup_path(self, path):
        """The path of the backup of the file ``path``."""
        return config_files.backup_path(self.daemon.config, path, self.files)

    def _put_in_place(self):
        edit = self.edit
        backup = self.backup_path(edit.path)
        try:
            if edit.before is not None:
                config_files.write(backup, edit.before, like=edit.path)
            config_files.write_companions(edit)
            config_files.write(edit.path, edit.after, like=edit.path, files=self.files)
        except NpuError as exc:
            config_files.remove_companions(edit)
            if edit.before is not None and self._saved(edit.path) == edit.before:
                config_files.remove(backup)
            raise NpuError("%s. Nothing was changed" % exc.message) from None
        if edit.is_source:
            return  # containerd's configuration is still the one from before
        problem = None
        try:
            dump = self.daemon.dump()
            others = self.before.other_differences(dump)
            if others or not dump.on:
                problem = "config dump %s" % ("changed in " + ", ".join(others[:5]) if others else "still has CDI disabled")
        except NpuError as exc:
            problem = exc.message
        if problem:
            kept = self._restore()
            raise NpuError(
                "With the edit in place, containerd's dump differs from that of the same edit in a copy: %s. %s"
                % (problem, kept or "%s was restored" % edit.path)
            )

    def _back_to_before(self, said):
        if self._undo is None:
            raise containerd_runtime.broken_before(self.daemon, said)
        path = self._undo.path
        kept = self._restore()
        place = "the unchanged file" if kept else "the original file"
        # Even if the file could not be restored, because the cause may have been temporary.
        try:
            self.status = containerd_runtime.restart(self.daemon, self.address, self.timeout)
            outcome = "containerd responds again with %s." % place
        except NpuError as exc:
            outcome = "It still does not respond: %swith %s, it reports:\n%s\n" % (
                "" if kept else "the original %s had not been loaded since it was written, or there is another problem; " % path,
                place,
                exc.message,
            )
        raise NpuError(
            "containerd's CRI does not respond with CDI enabled. %s. %s With CDI enabled, it reported:\n%s"
            % (kept or ("%s was removed" if self._undo.before is None else "The original %s was restored") % path, outcome, said),
            **({} if kept else {"restored": path}),
        )

    def _restore(self):
        """Restore the original file; returns None, or why that failed and where its backup is."""
        path, before = self._undo.path, self._undo.before
        try:
            if before is None:
                config_files.remove(path)
                config_files.remove_companions(self._undo)
            else:
                config_files.write(path, before, like=path, files=self.files)
        except NpuError as exc:
            todo = "remove it" if before is None else "restore %s" % self.backup_path(path)
            return "%s still has CDI enabled, because the original could not be restored: %s. Fix that, %s and restart %s" % (
                path,
                exc.message,
                todo,
                self.daemon.unit or "containerd",
            )
        return None
