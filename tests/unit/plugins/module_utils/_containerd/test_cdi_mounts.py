# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that containers with a chip get, and that may come and go on a host: the spec follows them."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_mounts, cdi_spec
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd

from support.paths import CHECKOUT

SCRIPT = CHECKOUT / "roles" / "npu_runtime" / "files" / "npu-cdi-mounts"
TWO = cdi_spec.HostDevices(2, None, [0, 1], [], ["davinci_manager"])
FILES = ("a", "b", "c")


@pytest.fixture(name="optional")
def _optional(tmp_path, monkeypatch):
    """As cdi_spec.OPTIONAL, in a directory of the test: the script looks at the paths as they are."""
    names = tuple(str(tmp_path / name) for name in FILES)
    monkeypatch.setattr(cdi_spec, "OPTIONAL", names)
    return names


@pytest.mark.parametrize(
    "present", [set(chosen) for size in range(4) for chosen in itertools.combinations(FILES, size)], ids=sorted
)
def test_the_script_writes_what_the_module_would(tmp_path, optional, present):
    template, spec = tmp_path / "template.json", tmp_path / "spec.json"
    template.write_text(cdi_spec.text(cdi_spec.spec(TWO, "/x", complete=True)), encoding="utf-8")
    spec.write_text("{}", encoding="utf-8")
    for name in present:
        (tmp_path / name).touch()
    told = [subprocess.run(["sh", SCRIPT, template, spec], capture_output=True, text=True, check=True).stdout for _run in range(2)]
    wanted = cdi_spec.spec(TWO, "/x")
    assert spec.read_text(encoding="utf-8") == cdi_spec.text(wanted) and json.loads(spec.read_bytes()) == wanted
    assert {pathlib.Path(path).name for path in cdi_spec.mount_sources(wanted)} >= present
    assert told == [f"npu-cdi-mounts: renewed {spec}\n", ""]
    assert {path.name for path in tmp_path.iterdir()} == present | {"template.json", "spec.json"}
    assert spec.stat().st_mode & 0o777 == 0o644


def test_the_script_makes_no_spec_where_there_is_none(tmp_path):
    (tmp_path / "template.json").write_text("{}\n", encoding="utf-8")
    subprocess.run(["sh", SCRIPT, tmp_path / "template.json", tmp_path / "spec.json"], check=True)
    assert not (tmp_path / "spec.json").exists()


@pytest.fixture(name="calls")
def _calls(monkeypatch):
    calls = []
    monkeypatch.setattr(systemd, "systemctl", lambda *arguments: calls.append(" ".join(arguments)))
    return calls


@pytest.fixture(name="shown")
def _shown(monkeypatch):
    """What systemd says of the units; empty as without systemd."""
    shown = {}
    monkeypatch.setattr(systemd, "show", lambda _unit, *names: {name: shown[name] for name in names if name in shown})
    monkeypatch.setattr(systemd, "need_reload", lambda _units: shown.get("NeedDaemonReload") == "yes")
    return shown


def test_the_units_come_and_go_with_the_spec(tmp_path, calls, shown):
    wanted, fs = cdi_spec.spec(TWO, "/x", complete=True), str(tmp_path)
    assert cdi_mounts.Renewal(None, fs=fs).reason() is None
    # Without the script, there is nothing that could run.
    assert cdi_mounts.Renewal(wanted, fs=fs).reason() is None
    renewal = cdi_mounts.Renewal(wanted, "script", fs)
    assert renewal.reason() == "/var/lib/npuops/bin/npu-cdi-mounts is not that of this version"
    renewal.apply()
    assert calls[0] == "daemon-reload" and calls[-1] == "restart npu-cdi-mounts.path"
    watched = (tmp_path / "etc/systemd/system/npu-cdi-mounts.path").read_text(encoding="utf-8")
    assert all("\nPathChanged=%s\n" % path in watched for path in cdi_spec.OPTIONAL)
    assert renewal.reason() == "npu-cdi-mounts.path is not enabled"
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir()
    for unit in ("npu-cdi-mounts.path", "npu-cdi-mounts.service"):
        (wants / unit).symlink_to("../" + unit)
    shown.update({"ActiveState": "inactive"})
    assert renewal.reason() == "npu-cdi-mounts.path is not active"
    shown.update({"ActiveState": "active", "NeedDaemonReload": "yes"})
    assert renewal.reason() == "systemd has not read npu-cdi-mounts.service"
    shown.clear()
    # Another module than install's role has no script to give.
    assert renewal.reason() is None and cdi_mounts.Renewal(wanted, fs=fs).reason() is None
    assert "cdi-spec.json is not that" in cdi_mounts.Renewal(cdi_spec.spec(TWO, "/y", complete=True), fs=fs).reason()
    gone = cdi_mounts.Renewal(None, fs=fs)
    assert gone.reason() == "/var/lib/npuops/bin/npu-cdi-mounts is not needed"
    del calls[:]
    gone.apply()
    assert calls == ["disable --now npu-cdi-mounts.path", "disable --now npu-cdi-mounts.service", "daemon-reload"]
    assert gone.reason() is None


@pytest.mark.parametrize("absent", ["var/lib/npuops/bin/npu-cdi-mounts", "var/lib/npuops/cdi-spec.json"])
def test_a_removal_completes_what_a_killed_run_left(tmp_path, calls, absent):
    """A removal that was killed between the two files, or an install."""
    fs = str(tmp_path)
    cdi_mounts.Renewal(cdi_spec.spec(TWO, "/x", complete=True), "script", fs).apply()
    (tmp_path / absent).unlink()
    renewal = cdi_mounts.Renewal(None, fs=fs)
    assert renewal.reason() is not None
    renewal.apply()
    assert renewal.reason() is None


def test_a_new_file_is_a_note_and_no_problem(tmp_path):
    fs = str(tmp_path)
    spec = cdi_spec.spec(TWO, "/x", fs=fs)
    cdi_spec.write(fs + cdi_spec.PATH, spec)
    assert cdi_spec.notes(fs) == []
    (tmp_path / "etc" / "hccn.conf").touch()
    assert cdi_spec.notes(fs) == [
        "/etc/hccn.conf is new on this host, and containers with a chip do not get it: run npuops.ascend.install"
    ]
    assert cdi_spec.problem(spec, TWO, "/x", "hook", fs) is None
    # What is mounted and lost is the check cdi_mounts, which names it.
    assert cdi_spec.problem(cdi_spec.spec(TWO, "/x", fs=fs, complete=True), TWO, "/x", "hook", fs) is None
