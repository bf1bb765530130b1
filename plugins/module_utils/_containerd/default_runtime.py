# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a program the default runtime of the host's containerd, or take that back. Afterwards it is so, or everything is as before.

First ``examine``, then ``apply``. The status of the running daemon decides, so the next run completes a run that was killed between
the edit and the restart.
"""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    config_files,
    config_secrets,
    containerd_config,
    containerd_runtime,
    default_runtime_text,
    generated,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri, toml_edit, toml_file

# A backup of its own: the one of CDI's edit has another text.
BACKUP_SUFFIX = ".npuops-runtime-backup"
_RUNC = "runc"
_CGROUPS = ("options", "SystemdCgroup")
# The keys of a diff; others may have secrets.
_SHOWN = ("default_runtime_name", "runtime_type", "BinaryName", "SystemdCgroup")


class Registration:
    """The default runtime of one ``daemon`` (a containerd_runtime.Daemon).

    ``program``: of the runtime; ``timeout``: seconds from a restart until the CRI must be ready. After ``examine``: ``edit`` (an
    Edit or None), ``restart_required``.
    """

    def __init__(self, daemon, program, timeout=30):
        self.daemon = daemon
        self.program = program
        self.timeout = max(timeout, host_distributions.named(daemon.kind).restart_seconds)
        self.edit = None
        self.restart_required = False
        self._files = []
        self._before = None
        self._address = None

    def examine(self):
        """Why a change is necessary, as a sentence; None if the program is the default runtime. Changes nothing."""
        self._look()
        running = self._running()
        configured = self._before.default_runtime
        if not self._is_ours(configured):
            self._check_fit(configured)
            self.edit = self._choose()
            self.restart_required = True
            return "containerd's default runtime is %s" % (configured[0] if configured else "unknown")
        if self._is_ours(running):
            return None
        self.restart_required = True
        return "containerd's default runtime has changed in %s, but containerd has not been restarted since" % self.daemon.config

    def examine_removal(self):
        """The same for taking it back: None if no edit of this collection is in place or in effect."""
        self._look()
        running = self._running()
        edited = next((file for file in self._files if default_runtime_text.is_registered(file.text)), None)
        if edited:
            self.edit = containerd_config.Edit(edited.path, edited.text, default_runtime_text.unregister(edited.text))
            self._check(self.edit, lambda dump: not self._is_ours(dump.default_runtime))
        elif self._is_ours(self._before.default_runtime) or not self._is_ours(running):
            return None
        self.restart_required = True
        return "npuops.ascend has made %s containerd's default runtime" % self.program

    def apply(self, restart=True):
        """Do what ``examine`` found. If containerd fails after the restart, undo the edit, and raise NpuError with its messages."""
        self._change(lambda status: self._is_ours(status.default_runtime), restart)

    def apply_removal(self, restart=True):
        """Do what ``examine_removal`` found."""
        self._change(lambda status: not self._is_ours(status.default_runtime), restart)
        # The backup of CDI's edit must not bring it back.
        for file in self._files:
            backup = config_files.backup_path(self.daemon.config, file.path, self._files)
            text = toml_file.read(backup)
            if text and default_runtime_text.is_registered(text):
                config_files.write(backup, default_runtime_text.unregister(text), like=backup)
        if self.edit:
            config_files.remove(self._backup(self.edit.path))

    def diff(self):
        """The changed lines, or None."""
        return self.edit and config_secrets.diff(self.edit.path, self.edit.before, self.edit.after, _SHOWN)

    def _look(self):
        try:
            self._files = containerd_config.load(self.daemon.config)
        except (OSError, ValueError) as exc:
            raise NpuError(
                "containerd's default runtime cannot be changed, and nothing was: %s. Fix that line, then run again" % exc
            ) from None
        self._before = self.daemon.dump()
        self._address = self.daemon.address or self._before.address or containerd_runtime.DEFAULT_ADDRESS

    def _running(self):
        try:
            return cri.status(self._address).default_runtime
        except cri.CriError as exc:
            raise NpuError("containerd's CRI does not respond, although nothing was changed: %s. Fix it first" % exc) from None

    def _is_ours(self, runtime):
        return tuple(runtime or ()) == (default_runtime_text.NAME, self.program)

    def _check_fit(self, configured):
        for why in unfit(self.daemon, self._files, self._before, self.program):
            raise NpuError(why)

    def _choose(self):
        """The first edit that, according to containerd, makes the program the default runtime, and changes nothing else."""
        complaints = []
        for edit in self._proposals():
            try:
                problem = config_files.unwritable(edit.path, "the default runtime")
                if problem:
                    raise NpuError(problem)
                self._check(edit, lambda dump: self._is_ours(dump.default_runtime) and self._is_like_runc(dump))
                return edit
            except NpuError as exc:
                complaints.append("%s: %s" % (edit.path, exc.message))
        raise NpuError(
            "No edit that was tried makes %s the default runtime in containerd's configuration %s; nothing was changed. Tried: %s"
            % (self.program, self.daemon.config, "; ".join(complaints) or "nothing")
        )

    def _proposals(self):
        """Of the files that set the default runtime, then of those with the CRI section, the last one first; then the main file."""
        best, present = [], []
        like: dict = {}
        for file in self._files:
            values = toml_edit.flatten(file.text)
            for section in containerd_config.SECTIONS:
                like.update(default_runtime_text.settings_of(values, section, _RUNC))
                if section[0] + ("containerd", "default_runtime_name") in values:
                    best.insert(0, (file, section))
                elif any(key[: len(section[0])] == section[0] for key in values):
                    present.insert(0, (file, section))
        main = self._files[0]
        version = containerd_config.version_of(main.text)
        fallback = containerd_config.SECTIONS[0 if version >= 3 else 1 if version == 2 else 2]
        systemd = self._of_runtime(self._before, _RUNC, _CGROUPS)
        if systemd:
            like.setdefault(_CGROUPS, systemd)
        for file, section in best + present + [(main, fallback)]:
            # An earlier edit that was changed since is removed completely.
            text = default_runtime_text.unregister(file.text)
            yield containerd_config.Edit(file.path, file.text, default_runtime_text.register(text, section, self.program, like))

    def _check(self, edit, reached):
        """Raise NpuError unless containerd accepts a copy of its configuration with the edit, in which nothing else has changed."""
        dump = containerd_runtime.dump_with(self.daemon, self._files, edit)
        others = self._others(dump)
        if others:
            raise NpuError("more than the default runtime would change: %s" % ", ".join(others[:5]))
        if not reached(dump):
            raise NpuError("the default runtime would be %s" % (dump.default_runtime,))

    def _others(self, dump):
        return [place for place in self._before.other_differences(dump) if not _concerns_runtime(place)]

    def _is_like_runc(self, dump):
        """Whether containers get the same cgroup driver as with runc."""
        wanted, found = (self._of_runtime(dump, name, _CGROUPS) or "false" for name in (_RUNC, default_runtime_text.NAME))
        return wanted == found

    @staticmethod
    def _of_runtime(dump, name, path):
        for section in containerd_config.SECTIONS:
            value = dump.values.get(section[0] + ("containerd", "runtimes", name) + path)
            if value:
                return value
        return None

    def check_restart(self, restart):
        """Raise NpuError if containerd must be restarted, and that would affect running pods. ``restart``: whether it may be."""
        if restart and self.restart_required:
            containerd_runtime.check_restartable(self.daemon)

    def _change(self, reached, restart):
        self.check_restart(restart)
        if self.edit:
            config_files.write(self._backup(self.edit.path), self.edit.before, like=self.edit.path)
            config_files.write(self.edit.path, self.edit.after, like=self.edit.path, files=self._files)
        if not (restart and self.restart_required):
            return
        try:
            status = containerd_runtime.restart(self.daemon, self._address, self.timeout)
            if not reached(status):
                raise NpuError("containerd responds, but its default runtime is %s" % (status.default_runtime,))
        except NpuError as exc:
            self._back(exc.message)
        self.restart_required = False

    def _back(self, said):
        undo = self.edit or self._earlier()
        if undo is None:
            raise containerd_runtime.broken_before(self.daemon, said)
        kept = self._restore(undo)
        # Even if the file could not be restored, because the cause may have been temporary.
        try:
            containerd_runtime.restart(self.daemon, self._address, self.timeout)
            outcome = "After another restart, it responds" if kept else "With that, it responds again"
        except NpuError as exc:
            outcome = "It still does not respond: %s" % exc.message
        raise NpuError(
            "containerd does not work with another default runtime. %s. %s. It reported:\n%s"
            % (kept or "The original %s was restored" % undo.path, outcome, said),
            **{"unrestored" if kept else "restored": undo.path},
        )

    def _restore(self, undo):
        """Restore the original file; returns None, or why that failed and where its backup is."""
        try:
            config_files.write(undo.path, undo.before, like=undo.path, files=self._files)
        except NpuError as exc:
            return "%s still has the other default runtime, because the original could not be restored from %s: %s" % (
                undo.path,
                self._backup(undo.path),
                exc.message,
            )
        config_files.remove(self._backup(undo.path))
        return None

    def _earlier(self):
        """The edit of a run that was killed before the restart, or None."""
        for file in self._files:
            if default_runtime_text.is_registered(file.text):
                return containerd_config.Edit(file.path, default_runtime_text.unregister(file.text), file.text)
        return None

    def _backup(self, path):
        return config_files.backup_path(self.daemon.config, path, self._files, BACKUP_SUFFIX)


def unfit(daemon, files, dump, program):
    """Why the program cannot become the default runtime of this containerd, as sentences."""
    if daemon.kind != "containerd" or generated.sources(daemon, files):
        yield (
            "%s generates the configuration of its containerd, and npuops.ascend registers ascend-docker-runtime only in that of a "
            "containerd of its own. Set npu_runtime_mode: cdi for this host" % host_distributions.named(daemon.kind).title
        )
        return
    if not files:
        yield ("containerd has no configuration file. Create it, then run again: containerd config default >%s" % daemon.config)
        return
    for file in files:
        told = generated.reason(daemon, file.path, file.text)
        if told:
            yield "%s. Set npu_runtime_mode: cdi for this host" % told.split(". ", 1)[0]
            return
    name, path = dump.default_runtime or ("unknown", "")
    if os.path.basename(path) == os.path.basename(program):
        yield (
            "containerd's default runtime is another %s, %s, which npuops.ascend has not installed. Unset npu_runtime_package to "
            "use it as it is, or uninstall it with its own package (--uninstall), then run again"
            % (os.path.basename(program), path)
        )
    elif os.path.basename(path or name) != _RUNC:
        yield (
            "containerd's default runtime is %s (%s), and ascend-docker-runtime would take its place, but starts containers by "
            "runc. Make runc the default runtime, or set npu_runtime_mode: cdi" % (name, path or name)
        )
    places = [section[0] + ("containerd", "runtimes", default_runtime_text.NAME) for section in containerd_config.SECTIONS]
    ours = any(default_runtime_text.is_registered(file.text) for file in files)
    if not ours and any(key[: len(place)] == place for key in dump.values for place in places):
        yield (
            "containerd already has a runtime %s, which npuops.ascend has not registered. Remove that section from %s, then run "
            "again" % (default_runtime_text.NAME, daemon.config)
        )


def _concerns_runtime(place):
    ends = (".containerd", ".containerd.runtimes", ".containerd.default_runtime_name")
    return place.endswith(ends) or ".containerd.runtimes.%s" % default_runtime_text.NAME in place
