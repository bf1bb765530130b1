# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration as text: where CDI is enabled, the smallest edits that enable it, and parsing a dump.

Only containerd itself (``config dump``) can tell what a file means: releases differ in how they merge imported files (1.7 replaces
the whole section of a plugin, 2.x merges key by key) and in the name of the section. So this module proposes edits in a sensible
order, and the caller takes the first one whose dump differs only in CDI.
"""

from __future__ import annotations

import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_secrets, go_glob
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit, toml_file

DEFAULT_PATH = "/etc/containerd/config.toml"
SPEC_DIR = "/etc/cdi"

# The name of the CRI plugin in configuration versions 3 and 4, 2, and 1, as a path and as the usual header.
V3 = (("plugins", "io.containerd.cri.v1.runtime"), "plugins.'io.containerd.cri.v1.runtime'")
V2 = (("plugins", "io.containerd.grpc.v1.cri"), 'plugins."io.containerd.grpc.v1.cri"')
V1 = (("plugins", "cri"), "plugins.cri")
SECTIONS = (V3, V2, V1)

# The section of the socket in configuration version 4, which containerd 2.3 prints whatever it reads.
GRPC_V4 = ("plugins", "io.containerd.server.v1.grpc")

# For a host without a configuration file: containerd 1.7 then uses its defaults, with CDI disabled.
MINIMAL = "version = 2\n\n[%s]\n  enable_cdi = true\n" % V2[1]

# All keys that this collection edits.
KEYS = ("enable_cdi", "cdi_spec_dirs", "version")


_MAX_FILES = 1000


class ConfigFile:
    """One file of the configuration: its ``path`` as passed to containerd, its ``text``, the values of its key ``imports`` as
    absolute ``patterns``, and the paths that match them: ``imports``.
    """

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.patterns = import_patterns(path, text)
        self.imports = []
        for pattern in self.patterns:
            self.imports.extend(go_glob.expand(pattern) if "*" in pattern else [pattern])

    def names(self, path):
        """Whether its imports would include ``path`` if that file existed."""
        return any(go_glob.match(pattern, path) if "*" in pattern else pattern == path for pattern in self.patterns)


class Edit:
    """A change of the content of ``path`` from ``before`` (None: no such file) to ``after``."""

    # The file belongs to the configuration itself; _containerd.generated has edits of files from which it is generated.
    is_source = False
    companions: list = []

    def __init__(self, path, before, after):
        self.path = path
        self.before = before
        self.after = after

    def diff(self):
        """The changed lines, with only the keys in KEYS: other keys may contain a registry's password."""
        return config_secrets.diff(self.path, self.before, self.after, KEYS)


def load(path):
    """The configuration with the main file ``path``: a list of ConfigFile in the order in which containerd merges them.

    Empty if there is no such file. Raises OSError, ValueError (TomlError with file and line).
    """
    files = []
    pending = [path]
    while pending:
        name = pending.pop(0)
        if any(known.path == name for known in files):
            continue
        text = toml_file.read(name)
        if text is None:
            continue
        try:
            file = ConfigFile(name, text)
        except toml_edit.TomlError as exc:
            raise ValueError("%s, %s" % (name, exc)) from None
        except ValueError as exc:
            raise ValueError("%s, imports: %s" % (name, exc)) from None
        files.append(file)
        if len(files) > _MAX_FILES:
            raise ValueError("%s imports more than %d files" % (path, _MAX_FILES))
        pending.extend(file.imports)
    return files


def texts(path):
    """The readable texts of the configuration with the main file ``path``, whether or not they are valid TOML."""
    found = {}
    pending = [path]
    while pending and len(found) <= _MAX_FILES:
        name = pending.pop(0)
        if name in found:
            continue
        try:
            found[name] = toml_file.read_bytes(name).decode("utf-8", "replace")
            pending.extend(ConfigFile(name, found[name]).imports)
        except (OSError, ValueError):
            pass
    return list(found.values())


def import_patterns(path, text):
    """The values of the key ``imports`` of the file ``path``, as absolute paths that may have wildcards."""
    listed = toml_edit.string_list(toml_edit.flatten(text).get(("imports",), "")) or []
    # Like Go's filepath.Clean, which replaces two leading slashes with one.
    return [re.sub("^//", "/", os.path.normpath(os.path.join(os.path.dirname(path), name))) for name in listed]


def switch_on(text, section):
    """``text`` with CDI enabled in ``section`` (one of V1, V2, V3) and /etc/cdi in its directories."""
    table, header = section
    values = toml_edit.flatten(text)
    if values.get(table + ("enable_cdi",)) != "true":
        text = toml_edit.set_key(text, table, "enable_cdi", "true", header)
    directories = values.get(table + ("cdi_spec_dirs",))
    if directories is not None and not has_spec_dir(toml_edit.string_list(directories) or []):
        text = toml_edit.prepend_string(text, table + ("cdi_spec_dirs",), SPEC_DIR)
    return text


def has_spec_dir(directories):
    """Whether /etc/cdi is one of ``directories``."""
    return SPEC_DIR in [os.path.normpath(directory) for directory in directories]


def proposals(path, files):
    """The edits to try, best first.

    The files that disable CDI, then the files that have the CRI section, the last one first, then the main file ``path``.
    """
    if not files:
        return [Edit(path, None, MINIMAL)]
    off, present = [], []
    for file in reversed(files):
        values = toml_edit.flatten(file.text)
        for section in SECTIONS:
            table = section[0]
            if values.get(table + ("enable_cdi",), "true") != "true":
                off.append((file, section))
            elif any(key[: len(table)] == table for key in values):
                present.append((file, section))
    main = files[0]
    version = version_of(main.text)
    fallback = [(main, V3 if version >= 3 else V2 if version == 2 else V1)]
    edits = []
    for file, section in off + present + fallback:
        after = switch_on(file.text, section)
        if after != file.text and all((edit.path, edit.after) != (file.path, after) for edit in edits):
            edits.append(Edit(file.path, file.text, after))
    return edits


def version_of(text):
    """The value of the key ``version``, which may be written as +2 or 0x2; 1 without the key."""
    try:
        return int(toml_edit.flatten(text).get(("version",), "1"), 0)
    except ValueError:
        return 1


def is_our_edit(before, after):
    """Whether ``after`` is exactly the result of this collection's edit of ``before`` (None: no file)."""
    if before is None:
        return after == MINIMAL
    try:
        return before != after and any(switch_on(before, section) == after for section in SECTIONS)
    except ValueError:
        return False


def write_candidate(directory, files, edit):
    """Write the configuration with ``edit`` to the private ``directory``; returns the path of its main file.

    All files are written there with absolute paths as imports, so that relative paths and patterns have the same meaning as in
    place, and the edited file replaces the original.
    """
    if edit.before is None:
        texts = {edit.path: edit.after}
        order = [edit.path]
    else:
        texts = {file.path: edit.after if file.path == edit.path else file.text for file in files}
        order = [file.path for file in files]
    copies = {path: os.path.join(directory, "%d.toml" % number) for number, path in enumerate(order)}
    imports = {file.path: file.imports for file in files}
    for path in order:
        text = texts[path]
        if imports.get(path):
            listed = [toml_edit.quote(copies.get(name, name)) for name in imports[path]]
            text = toml_edit.replace_value(text, ("imports",), "[%s]" % ", ".join(listed))
        with open(copies[path], "wb") as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(text.encode("utf-8"))
    return copies[order[0]]


def disables_cri(values):
    """Whether the key disabled_plugins of a flattened text contains the CRI plugin."""
    disabled = toml_edit.string_list(values.get(("disabled_plugins",), "")) or []
    return bool({"cri", V2[0][1], V3[0][1], "io.containerd.cri.v1.images"} & set(disabled))


class Dump:
    """The output of ``containerd config dump``."""

    def __init__(self, text):
        self.values = toml_edit.flatten(text)
        table = next((s[0] for s in (V3, V2) if s[0] + ("enable_cdi",) in self.values), None)
        self.enabled = table is not None and self.values[table + ("enable_cdi",)] == "true"
        if table is None and V3[0] + ("cdi_spec_dirs",) in self.values:
            # containerd 2.4 has no such key any more: CDI is always enabled.
            table, self.enabled = V3[0], True
        self.knows_cdi = table is not None
        directories = self.values.get(table + ("cdi_spec_dirs",), "") if table else ""
        self.spec_dirs = toml_edit.string_list(directories) or []

    @property
    def on(self):
        """CDI is enabled and reads /etc/cdi."""
        return self.enabled and has_spec_dir(self.spec_dirs)

    @property
    def address(self):
        """The socket in the configuration, or None."""
        places = (("grpc", "address"), GRPC_V4 + ("address",))
        return next((toml_edit.unquote(self.values[place]) for place in places if self.values.get(place)), None) or None

    @property
    def state(self):
        """The directory of what containerd keeps until the next boot, or None."""
        return toml_edit.unquote(self.values.get(("state",), "")) or None

    @property
    def root(self):
        """The directory of what containerd keeps across boots, such as images, or None."""
        return toml_edit.unquote(self.values.get(("root",), "")) or None

    @property
    def cri_disabled(self):
        """The CRI plugin is disabled by disabled_plugins (as in Docker's packages)."""
        return disables_cri(self.values)

    @property
    def default_runtime(self):
        """(name, program) of the default runtime; the program is empty if it is runc as containerd finds it. None if unknown."""
        for section in SECTIONS:
            place = section[0] + ("containerd",)
            name = toml_edit.unquote(self.values.get(place + ("default_runtime_name",), ""))
            if name:
                program = self.values.get(place + ("runtimes", name, "options", "BinaryName"), "")
                return name, toml_edit.unquote(program)
        return None

    def other_differences(self, other):
        """The paths in which the dumps differ apart from CDI, as text. Ignores ``imports``, which lists file names."""
        ours: set = {s[0] + (key,) for s in SECTIONS for key in ("enable_cdi", "cdi_spec_dirs")} | {("imports",)}
        paths = set(self.values) | set(other.values)
        # A section that contains only CDI settings is also new.
        ours |= {s[0] for s in SECTIONS} | {("plugins",)}
        return [".".join(path) for path in sorted(paths) if path not in ours and self.values.get(path) != other.values.get(path)]
