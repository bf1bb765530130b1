# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files that a Kubernetes distribution generates at each start, and what to edit instead.

    distribution   generates                            from (the source, which survives restarts and upgrades)
    k3s, RKE2      agent/etc/containerd/config.toml     config.toml.tmpl beside it; with containerd 2 first config-v3.toml.tmpl
    k0s            /etc/k0s/containerd.toml             drop-ins in /etc/k0s/containerd.d, merged into /run/k0s/containerd-cri.toml
    MicroK8s       args/containerd.toml                 containerd-template.toml beside it

An edit of a source takes effect when the distribution has generated the file again. To let containerd check it before that, the
edit also says how the generated file will change (``shown``). containerd 2 enables CDI by default, so new sources are only written
for containerd 1.7.
"""

from __future__ import annotations

import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_file

_HEADER = "# Written by the Ansible collection npuops.ascend, to enable CDI.\n"
_BASE = '{{ template "base" . }}\n'

# The base template prints the CRI section, and TOML allows no second one. But containerd 1.7 compares the headers of sections as
# they are written: one with other quotation marks adds to the section. containerd 2 does not accept that, so the template for
# configuration version 3, which k3s and RKE2 with containerd 2 prefer, is also written. It is what they use without a template.
_ADDITION = "\n[plugins.'io.containerd.grpc.v1.cri']\n  enable_cdi = true\n"
TEMPLATE = _HEADER + _BASE + _ADDITION
TEMPLATE_V3 = _HEADER + "# Without this file, releases with containerd 2 would use config.toml.tmpl, and fail.\n" + _BASE

# k0s 1.36, the first with containerd 2, does not start with a drop-in of version 2.
DROP_IN = (
    _HEADER
    + "# Remove this file before an upgrade to k0s 1.36 or newer, which enables CDI by default and refuses this version.\n"
    + containerd_config.MINIMAL
)
_DROP_IN_NAME = "zz-npuops-cdi.toml"

# In a comment.
_GENERATED = re.compile(r"^[ \t]*#.*\b(k0s_managed=true|DO NOT (EDIT|MODIFY))", re.MULTILINE)
_GENERATED_PLACES = ("/run/", "/nix/store/")
_K0S_MANAGED = "# k0s_managed=true"

_RESTARTS = {
    "k3s": "systemctl restart k3s (or k3s-agent)",
    "rke2": "systemctl restart rke2-agent (or rke2-server)",
}

# The first releases of each minor version whose templates can include the base template.
_BASE_SINCE = ((1, 24, 17), (1, 25, 13), (1, 26, 8), (1, 27, 5), (1, 28, 1))
_VERSION_SECONDS = 20
_PROGRAM_PLACES = ("/usr/local/bin/", "/usr/bin/", "/opt/rke2/bin/", "/opt/bin/")


class SourceEdit(containerd_config.Edit):
    """An Edit of a source. ``shown``: the Edit of the generated file that it causes, None if unknown; ``companions``: further files
    that must exist with it, as (path, text)."""

    is_source = True

    def __init__(self, path, before, after, shown=None, companions=()):
        super().__init__(path, before, after)
        self.shown = shown
        self.companions = list(companions)

    def diff(self):
        if self.before is not None:
            return super().diff()
        # All of it is this collection's, so nothing in it is secret.
        lines = ["--- /dev/null\n", "+++ %s\n" % self.path]
        return "".join(lines + ["+%s\n" % line for line in self.after.splitlines()])


def edits(daemon, files):
    """The SourceEdits to try. ``files``: the whole configuration, as a list of ConfigFile."""
    if not files:
        return []
    main = files[0]
    if _of_rancher(daemon):
        return _rancher_edits(daemon, main)
    if _of_microk8s(daemon):
        return _plain_edits(main, _microk8s_template(main.path))
    if _of_k0s(main):
        return _k0s_edits(main, files)
    return []


def own_edit(daemon, files, saved):
    """The SourceEdit of an earlier run that is still in place, or None. ``saved(path)``: the text of the backup, or None."""
    for path in sources(daemon, files):
        text = _read(path)
        if text is None:
            continue
        if text == TEMPLATE:
            return SourceEdit(path, None, text, companions=_companions(path))
        before = saved(path)
        if text == DROP_IN or (before is not None and containerd_config.is_our_edit(before, text)):
            return SourceEdit(path, before if text != DROP_IN else None, text)
    return None


def sources(daemon, files):
    """The paths of all sources that this collection may have edited."""
    main = daemon.config
    if _of_rancher(daemon):
        return [_beside(main, name) for name in ("config-v3.toml.tmpl", "config.toml.tmpl")]
    if _of_microk8s(daemon):
        return [_microk8s_template(main)]
    return [_k0s_drop_in(main)] if files and _of_k0s(files[0]) else []


def reason(daemon, path, text):
    """Why the file ``path`` of the configuration must not be edited: other software generates it. None if an edit is permanent.

    ``text``: text of the file, or None. A generated file may import an administrator's file, and the other way round.
    """
    lines = "  enable_cdi = true   under   [%s]   in configuration version 2,\n" % containerd_config.V2[1]
    lines += "  the same under   [%s]   in version 3" % containerd_config.V3[1]
    if path == daemon.config and _of_rancher(daemon):
        kind = "rke2" if "/rke2/" in path else "k3s"
        template = _beside(path, "config-v3.toml.tmpl" if _is_for_containerd_2(text or "") else "config.toml.tmpl")
        return (
            "%s is generated by %s at each start. %s %s, set\n%s\nthere (the section already exists: add the line to it, because "
            "TOML does not allow a second one), then run: %s. Releases with containerd 2 enable CDI by default"
            % (
                path,
                kind,
                "Edit your template" if os.path.exists(template) else "Copy that file to",
                template,
                lines,
                _RESTARTS[kind],
            )
        )
    if path == daemon.config and _of_microk8s(daemon):
        return (
            "%s is generated by MicroK8s. Set\n%s\nin /var/snap/microk8s/current/args/containerd-template.toml, then run: "
            "microk8s stop && microk8s start" % (path, lines)
        )
    if _GENERATED.search(text or "") or os.path.realpath(path).startswith(_GENERATED_PLACES) or path.startswith("/run/"):
        return "%s is generated by other software, which would undo an edit. Set\n%s\nin the source of that file" % (path, lines)
    return None


# --- k3s and RKE2 ---


def _of_rancher(daemon):
    return daemon.kind in _RESTARTS or "/rancher/" in daemon.config


def _rancher_edits(daemon, main):
    template = _beside(main.path, "config.toml.tmpl")
    if _is_for_containerd_2(main.text):
        names = ("config-v3.toml.tmpl", "config.toml.tmpl")
        template = next((path for path in (_beside(main.path, name) for name in names) if os.path.exists(path)), None)
    elif not os.path.lexists(template):
        if not _has_base_template(daemon):
            return []
        shown = containerd_config.Edit(main.path, main.text, main.text + _ADDITION)
        return [SourceEdit(template, None, TEMPLATE, shown, _companions(template))]
    return _plain_edits(main, template) if template else []


def _companions(template):
    return [(_beside(template, "config-v3.toml.tmpl"), TEMPLATE_V3)]


def _has_base_template(daemon):
    """Whether its templates can include the base template; True if its version is unknown: a restart that fails is undone."""
    program = "rke2" if daemon.kind == "rke2" or "/rke2/" in daemon.config else "k3s"
    for directory in _PROGRAM_PLACES:
        path = directory + program
        if not os.access(path, os.X_OK) or host_process.unsafe(path) is not None:
            continue
        match = re.search(r"\bv1\.([0-9]+)\.([0-9]+)", host_command.run([path, "--version"], _VERSION_SECONDS).stdout)
        if match:
            minor, patch = int(match.group(1)), int(match.group(2))
            first = next((since for since in _BASE_SINCE if since[1] == minor), None)
            return patch >= first[2] if first else minor > _BASE_SINCE[-1][1]
    return True


# --- k0s ---


def _of_k0s(main):
    return main.text.startswith(_K0S_MANAGED)


def _k0s_drop_in(main):
    return os.path.join(os.path.dirname(main), "containerd.d", _DROP_IN_NAME)


def _k0s_edits(main, files):
    path = _k0s_drop_in(main.path)
    # The file into which k0s merges the CRI sections of all drop-ins. With containerd 2 there is none.
    merged = next((file for file in files[1:] if os.path.basename(file.path) == "containerd-cri.toml"), None)
    if _is_for_containerd_2(main.text) or merged is None or os.path.lexists(path):
        return []
    shown = containerd_config.Edit(merged.path, merged.text, containerd_config.switch_on(merged.text, containerd_config.V2))
    return [SourceEdit(path, None, DROP_IN, shown)]


# --- MicroK8s ---


def _of_microk8s(daemon):
    return daemon.kind == "microk8s" or daemon.config.startswith("/var/snap/microk8s/")


def _microk8s_template(path):
    return _beside(path, "containerd-template.toml")


# --- all of them ---


def _plain_edits(main, template):
    """The edits of a template that is TOML itself: it has variables in strings, but no statements."""
    text = _read(template)
    if text is None or "{{" in text:
        return []
    found = []
    try:
        for edit in containerd_config.proposals(template, [containerd_config.ConfigFile(template, text)]):
            section = next(s for s in containerd_config.SECTIONS if containerd_config.switch_on(text, s) == edit.after)
            after = containerd_config.switch_on(main.text, section)
            found.append(SourceEdit(template, text, edit.after, containerd_config.Edit(main.path, main.text, after)))
    except ValueError:
        return []
    return found


def _read(path):
    try:
        return toml_file.read(path)
    except (OSError, ValueError):
        return None


def _beside(path, name):
    return os.path.join(os.path.dirname(path), name)


def _is_for_containerd_2(text):
    return containerd_config.version_of(text) >= 3
