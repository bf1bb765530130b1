# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of containerd that are easily misunderstood, and what is to become of each.

tests/unit/fixtures/containerd/probes has a directory for each, and expected.json: the ``files`` in the order containerd
reads them, and per release what happens: "on", the words of a refusal, or an edit. Run as a program, this stands in for
containerd, as far as these configurations tell releases apart; tests/lab uses the real ones.
"""

from __future__ import annotations

import difflib
import json
import pathlib
import sys

# First of all: it makes the checkout importable.
from support import collection  # noqa: F401  pylint: disable=unused-import

# isort: split
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_config, containerd_runtime, enable_cdi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.paths import FIXTURES, TESTS

DIRECTORY = FIXTURES / "containerd" / "probes"
EXPECTED = json.loads((DIRECTORY / "expected.json").read_text(encoding="utf-8"))
CASES = [(name, release) for name in EXPECTED for release in ("1.7", "2")]
NAMES = {
    "cri": "cri",
    "io.containerd.grpc.v1.cri": "cri",
    "io.containerd.cri.v1.runtime": "cri",
}


def daemon(binary, directory):
    """The containerd ``binary`` with the configuration in ``directory``, which may lack one."""
    main = pathlib.Path(directory, "config.toml")
    return containerd_runtime.Daemon(1, str(binary), str(main), main.exists(), None, "containerd.service")


def outcome(binary, directory):
    """What happens with the configuration in ``directory``, as in expected.json."""
    switch = enable_cdi.Switch(daemon(binary, directory))
    try:
        switch.look()
        switch.check_fit()
        if switch.before.on:
            return "on"
        edit = switch.choose()
    except NpuError as exc:
        return exc.message
    lines = difflib.unified_diff((edit.before or "").splitlines(), edit.after.splitlines(), n=0, lineterm="")
    changed = [line for line in list(lines)[2:] if line[0] in "+-"]
    return {
        "file": str(pathlib.Path(edit.path).relative_to(directory)),
        "removed": [line[1:] for line in changed if line[0] == "-"],
        "added": [line[1:] for line in changed if line[0] == "+"],
    }


def agrees(seen, expected):
    """Whether the outcome ``seen`` is the ``expected`` one: of a refusal, each of its words has to be there."""
    if isinstance(expected, list):
        return isinstance(seen, str) and all(words in seen for words in expected)
    return seen == expected


def program(path, release):
    """Write a program to ``path`` that stands in for containerd of ``release``; its path as text."""
    # -S: as on a host; where Ansible is found, loading part of it is most of what this takes.
    path.write_text('#!/bin/sh\nPYTHONPATH=%s exec %s -BS -m %s %s "$@"\n' % (TESTS, sys.executable, __name__, release))
    path.chmod(0o755)
    return str(path)


def _dump(release, path):
    """What ``config dump`` prints, or a sentence why there is none."""
    import tomllib  # Python 3.11

    cri = {"enable_cdi": release != "1.7", "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"], "sandbox_image": "pause"}
    disabled = []
    pending, read = [path] if path else [], []
    while pending:
        name = pending.pop(0)
        if name in read:
            continue
        read.append(name)
        try:
            data = pathlib.Path(name).read_bytes()
            text = data.decode("utf-8") if release == "2" else data.decode("latin-1")
            values = tomllib.loads(text.replace("version = +2", "version = 2"))
        except (OSError, ValueError) as exc:
            return None, "containerd: failed to load TOML: %s: %s" % (name, exc)
        if values.get("version", 1) > (2 if release == "1.7" else 3):
            return None, "containerd: failed to load TOML from %s: unsupported config version" % name
        disabled += values.get("disabled_plugins", [])
        for plugin, section in values.get("plugins", {}).items():
            if NAMES.get(plugin) != "cri":
                continue
            if plugin == "cri" and values.get("version", 1) > 1:
                return None, 'containerd: invalid plugin key URI "cri"'
            if release == "1.7":
                cri = {"enable_cdi": False, "cdi_spec_dirs": cri["cdi_spec_dirs"], "sandbox_image": "pause"}
            cri.update((key, value) for key, value in section.items() if key in cri)
        pending += containerd_config.ConfigFile(name, text).imports
    section = "io.containerd.grpc.v1.cri" if release == "1.7" else "io.containerd.cri.v1.runtime"
    lines = ["disabled_plugins = %s" % json.dumps(disabled), "imports = %s" % json.dumps(read)]
    if section not in disabled and not (release == "1.7" and "cri" in disabled):
        lines.append('[plugins."%s"]' % section)
        lines += ["%s = %s" % (key, json.dumps(value)) for key, value in cri.items()]
    return "\n".join(lines), None


if __name__ == "__main__":
    RELEASE, *ARGUMENTS = sys.argv[1:]
    TEXT, PROBLEM = _dump(RELEASE, ARGUMENTS[1] if ARGUMENTS[0] == "-c" else None)
    print(TEXT if TEXT is not None else PROBLEM, file=sys.stderr if PROBLEM else sys.stdout)
    sys.exit(PROBLEM is not None)
