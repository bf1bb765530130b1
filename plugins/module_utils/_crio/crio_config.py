# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From which directories CRI-O reads CDI specs after its next start, and which file or option says so.

CRI-O has no switch for CDI: it is always enabled. The list of directories comes from, each replacing it as a whole: the main
file; every file in the directory of drop-ins and below, whatever its name, in the order of the names; the environment; the
command line. Source: internal/criocli and pkg/config in cri-o/cri-o.
"""

from __future__ import annotations

import os
from collections import namedtuple

from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit, toml_file

DEFAULT_PATH = "/etc/crio/crio.conf"
DEFAULT_DROP_INS = "/etc/crio/crio.conf.d"
DEFAULT_SPEC_DIRS = ("/etc/cdi", "/var/run/cdi")

KEY = ("crio", "runtime", "cdi_spec_dirs")

# ``directories``: a list; ``source``: the file or option that sets it, None for CRI-O's default.
SpecDirs = namedtuple("SpecDirs", ["directories", "source"])

_MAX_FILES = 1000


def main_file(argv=(), environment=None):
    """The path of the main configuration file of a CRI-O with this command line and environment; "" if it reads none."""
    given = host_process.option(argv, "config", "c")
    return (environment or {}).get("CONTAINER_CONFIG", DEFAULT_PATH) if given is None else given


def spec_dirs(argv=(), environment=None, fs=""):
    """The SpecDirs of a CRI-O with the command line ``argv`` (a list) and ``environment`` (a dict).

    Raises OSError and ValueError, which name the file, if CRI-O would not start with its files.
    """
    environment = environment or {}
    found = SpecDirs(list(DEFAULT_SPEC_DIRS), None)
    for path in files(main_file(argv, environment), _drop_ins(argv, environment), fs):
        directories = in_file(fs + path)
        if directories is not None:
            found = SpecDirs(directories, path)
    given = [(environment.get("CONTAINER_CDI_SPEC_DIRS"), "its environment variable CONTAINER_CDI_SPEC_DIRS")]
    given.append((",".join(host_process.options(argv, "cdi-spec-dirs")), "its command-line option --cdi-spec-dirs"))
    for value, source in given:
        if value:
            found = SpecDirs([word.strip() for word in value.split(",")], source)
    return found


def files(main, drop_ins, fs=""):
    """The paths of the files that CRI-O reads, in its order."""
    found = [main] if main and os.path.exists(fs + main) else []
    pending = [drop_ins] if drop_ins and os.path.exists(fs + drop_ins) else []
    while pending:
        path = pending.pop()
        if os.path.isdir(fs + path) and not os.path.islink(fs + path):
            # As Go sorts: by bytes.
            pending.extend("%s/%s" % (path, name) for name in sorted(os.listdir(fs + path), key=os.fsencode, reverse=True))
        else:
            found.append(path)
        if len(found) + len(pending) > _MAX_FILES:
            raise ValueError("%s has more than %d files" % (drop_ins, _MAX_FILES))
    return found


def in_file(path):
    """The list that the file ``path`` sets, or None. Raises OSError and ValueError, which name the file."""
    return in_text(toml_file.read(path) or "", path)


def in_text(text, name):
    """The list that the configuration ``text`` sets, or None. Raises ValueError, which names ``name``."""
    try:
        values = toml_edit.flatten(text)
    except toml_edit.TomlError as exc:
        raise ValueError("%s, %s" % (name, exc)) from None
    found = None
    for path, value in values.items():
        # CRI-O's parser ignores the case of letters.
        if tuple(part.lower() for part in path) == KEY:
            found = toml_edit.string_list(value)
            if found is None:
                raise ValueError("%s: cdi_spec_dirs is not a list" % name)
    return found


def _drop_ins(argv, environment):
    given = host_process.option(argv, "config-dir", "d")
    return environment.get("CONTAINER_CONFIG_DIR", DEFAULT_DROP_INS) if given is None else given
