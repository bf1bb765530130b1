# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edits, on a table of configuration files.

fixtures/containerd/expected.json says, per file and containerd release, what the edit is. That real containerd
agrees is tested in tests/lab/test_containerd.py with the same table.
"""

from __future__ import annotations

import difflib
import json
import pathlib

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_config as config

from support.paths import UNIT

FIXTURES = UNIT / "fixtures" / "containerd"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
EDITS = [
    (case, release, edit) for case, releases in EXPECTED.items() for release, edit in releases.items() if isinstance(edit, dict)
]
# Here the last file with a CRI section has none of the keys, and only containerd 1.7 goes by that section.
SECOND_CHOICE = [("import-two-cri/config.toml", "1.7")]


def parse(text):
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads(text)


def changes(before, after):
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return [line[1:] for line in lines if line[0] == "-"], [line[1:] for line in lines if line[0] == "+"]


def without_cdi(value):
    if isinstance(value, dict):
        kept = {key: without_cdi(item) for key, item in value.items() if key not in ("enable_cdi", "cdi_spec_dirs")}
        return {key: item for key, item in kept.items() if item != {}}
    return value


def test_there_are_enough_of_them():
    assert len(EXPECTED) >= 45
    assert set(EXPECTED) == {path.name for path in FIXTURES.glob("*.toml")} | {
        str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/config.toml")
    }


@pytest.mark.parametrize("case, release, expected", EDITS, ids=["%s-%s" % edit[:2] for edit in EDITS])
def test_smallest_edit(case, release, expected):
    path = str(FIXTURES / case)
    proposed = config.proposals(path, config.load(path))
    matching = [
        number
        for number, edit in enumerate(proposed)
        if edit.path == str(FIXTURES / expected["file"])
        and changes(edit.before, edit.after) == (expected["removed"], expected["added"])
    ]
    assert matching == [1 if (case, release) in SECOND_CHOICE else 0]
    edit = proposed[matching[0]]
    assert without_cdi(parse(edit.after)) == without_cdi(parse(edit.before))
    assert (
        ("\r\n" in edit.after) == ("\r\n" in edit.before)
        and "\n" not in edit.after.replace("\r\n", "")
        or ("\r\n" not in edit.before)
    )
    assert config.is_our_edit(edit.before, edit.after)
    assert not config.is_our_edit(edit.after, edit.after)


def test_no_file_at_all(tmp_path):
    path = str(tmp_path / "config.toml")
    assert config.load(path) == []
    edit = config.proposals(path, [])[0]
    assert edit.before is None and parse(edit.after) == {
        "version": 2,
        "plugins": {"io.containerd.grpc.v1.cri": {"enable_cdi": True}},
    }
    assert config.is_our_edit(None, edit.after)


def test_imports_are_resolved_as_containerd_does(tmp_path):
    (tmp_path / "conf.d").mkdir()
    for name in ("b.toml", "a.toml", ".hidden.toml", "c.toml.npuops-backup"):
        (tmp_path / "conf.d" / name).write_text("")
    text = 'imports = ["conf.d/*.toml", "/etc/x.toml", "y.toml"]\n'
    assert config.ConfigFile(str(tmp_path / "config.toml"), text).imports == [
        str(tmp_path / "conf.d" / ".hidden.toml"),
        str(tmp_path / "conf.d" / "a.toml"),
        str(tmp_path / "conf.d" / "b.toml"),
        "/etc/x.toml",
        str(tmp_path / "y.toml"),
    ]


def test_imports_in_a_circle(tmp_path):
    (tmp_path / "a.toml").write_text('imports = ["b.toml"]\n')
    (tmp_path / "b.toml").write_text('imports = ["a.toml"]\n')
    files = config.load(str(tmp_path / "a.toml"))
    assert [pathlib.Path(file.path).name for file in files] == ["a.toml", "b.toml"]


def test_candidate_stands_for_the_whole_tree(tmp_path):
    path = str(FIXTURES / "import-nested" / "config.toml")
    files = config.load(path)
    edit = config.proposals(path, files)[0]
    main = config.write_candidate(str(tmp_path), files, edit)
    copies = config.load(main)
    assert len(copies) == len(files) == 3
    assert all(file.path.startswith(str(tmp_path)) for file in copies)
    assert copies[2].text == edit.after
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


def test_an_error_names_the_file(tmp_path):
    (tmp_path / "a.toml").write_text('imports = ["b.toml"]\n')
    (tmp_path / "b.toml").write_text("\n[x\n")
    with pytest.raises(ValueError, match="b.toml, line 2"):
        config.load(str(tmp_path / "a.toml"))


DUMP = (FIXTURES / "default-1.7.toml").read_text()


def test_dump_of_containerd_1_7_and_2():
    off, on = config.Dump(DUMP), config.Dump((FIXTURES / "default-2.toml").read_text())
    assert (off.knows_cdi, off.enabled, off.on) == (True, False, False)
    assert (on.knows_cdi, on.enabled, on.on) == (True, True, True)
    assert off.address == on.address == "/run/containerd/containerd.sock"
    assert off.state == on.state == "/run/containerd"


def test_dump_of_containerd_2_3():
    """Configuration version 4: the socket has a section of its own."""
    text = (FIXTURES / "v4-default-off.toml").read_text()
    off, on = config.Dump(text), config.Dump(text.replace("enable_cdi = false", "enable_cdi = true"))
    assert (off.knows_cdi, off.enabled, on.on) == (True, False, True)
    assert (off.address, off.state) == ("/run/containerd/containerd.sock", "/run/containerd")
    assert config.Dump(text.replace("/containerd.sock'", "/elsewhere.sock'")).address == "/run/containerd/elsewhere.sock"


def test_dump_of_containerd_2_4():
    """It has no enable_cdi: CDI is always enabled, and only its directories can be wrong."""
    text = (FIXTURES / "v4-default-off.toml").read_text().replace("    enable_cdi = false\n", "")
    on = config.Dump(text)
    assert (on.knows_cdi, on.enabled, on.on) == (True, True, True)
    elsewhere = config.Dump(text.replace("'/etc/cdi', ", ""))
    assert (elsewhere.knows_cdi, elsewhere.on) == (True, False)


@pytest.mark.parametrize(("version", "section"), [(1, config.V1), (2, config.V2), (3, config.V3), (4, config.V3), (5, config.V3)])
def test_section_for_a_file_that_has_none(tmp_path, version, section):
    (tmp_path / "config.toml").write_text("version = %d\n" % version)
    path = str(tmp_path / "config.toml")
    (edit,) = config.proposals(path, config.load(path))
    assert edit.after == config.switch_on("version = %d\n" % version, section)


def test_dump_of_containerd_1_6_knows_no_cdi():
    text = "".join(line for line in DUMP.splitlines(True) if "cdi" not in line)
    assert not config.Dump(text).knows_cdi


@pytest.mark.parametrize("name", ["cri", "io.containerd.grpc.v1.cri"])
def test_dump_with_cri_disabled(name):
    assert config.Dump(DUMP.replace("disabled_plugins = []", 'disabled_plugins = ["%s"]' % name)).cri_disabled
    assert not config.Dump(DUMP).cri_disabled


def test_only_cdi_may_differ():
    before = config.Dump(DUMP)
    on = DUMP.replace("enable_cdi = false", "enable_cdi = true").replace("imports = []", 'imports = ["/x"]')
    assert before.other_differences(config.Dump(on)) == []
    other = on.replace("registry.k8s.io/pause", "elsewhere/pause")
    assert before.other_differences(config.Dump(other)) == ["plugins.io.containerd.grpc.v1.cri.sandbox_image"]
    less = on.replace("    enable_selinux = false\n", "")
    assert before.other_differences(config.Dump(less)) == ["plugins.io.containerd.grpc.v1.cri.enable_selinux"]
