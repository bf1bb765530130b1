# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chips that the driver keeps for a container although no process has them open."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import reservations
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts, host_validation

HEAD = "ns_id %d identify 5 root_tgid %d dev_num 8 namespace 00000000111100%02d, udev list:\nlogic_devid udevid\n"
CHIPS = "".join("       %d        %d\n" % (number, number) for number in range(8))
CONTAINER = "ab" * 32


@pytest.fixture(name="host")
def _host(tmp_path):
    """Reservations of the host itself, of a container beside Kubernetes, of a pod, and of a process that has ended."""
    text = "".join(HEAD % (ns_id, pid, ns_id % 100) + chips + "\n\n" for ns_id, pid, chips in (
        (128, 1, CHIPS), (0, 2679173, CHIPS), (1, 77, "       0        4\n"), (2, 78, "       0        5\n"), (3, 79, ""),
    ))  # fmt: skip
    (tmp_path / "proc/uda").mkdir(parents=True)
    (tmp_path / "proc/uda/namespace_node").write_text(text, encoding="ascii")
    for pid, cgroup in ((2679173, "/system.slice/docker-%s.scope" % CONTAINER), (77, "/kubepods.slice/cri-%s.scope" % CONTAINER)):
        directory = tmp_path / "proc" / str(pid)
        directory.mkdir()
        (directory / "cmdline").write_bytes(b"/bin/bash\0-l\0")
        (directory / "cgroup").write_text("0::%s\n" % cgroup, encoding="ascii")
    (tmp_path / "dev").mkdir()
    return str(tmp_path)


def test_who_has_the_chips(host):
    command = "/bin/bash -l"
    assert reservations.read(host) == [
        {"pid": 2679173, "command": command, "container": CONTAINER, "chips": list(range(8))},
        {"pid": 77, "command": command, "container": CONTAINER, "chips": [4]},
        {"pid": 78, "command": None, "container": None, "chips": [5]},
    ]
    assert reservations.told(reservations.read(host)[0]) == "process 2679173 (/bin/bash -l) in the container abababababab"


def test_a_process_outside_of_pods_is_in_the_way_of_a_reboot(host):
    found = facts.upgrade_facts(host + "/var/lib/Ascend", host)["holders"]
    assert [(entry["pid"], entry["pod"]) for entry in found] == [(2679173, False), (77, True)]
    assert found[0]["device"].startswith("davinci0, davinci1, ")


def test_validate_names_what_kubernetes_does_not_know(host):
    notes = host_validation.Validation("/var/lib/Ascend", fs=host).notes
    assert len(notes) == 2 and all("fail with -8020" in note for note in notes)
    assert "process 2679173 (/bin/bash -l) in the container abababababab, outside of Kubernetes" in notes[0]
    assert "/dev/davinci5 for process 78 (it has ended" in notes[1]


@pytest.mark.parametrize("text", ["", "ns_id x", HEAD % (0, 5, 0) + "   0  x\n", "\0" * 100, (HEAD % (0, 5, 0)) * 20000])
def test_what_is_no_list(tmp_path, text):
    (tmp_path / "proc/uda").mkdir(parents=True)
    (tmp_path / "proc/uda/namespace_node").write_text(text, encoding="ascii")
    assert reservations.read(str(tmp_path)) == []


def test_a_list_without_end(tmp_path, monkeypatch):
    """It is read up to its limit, and a person gets a list that can be read."""
    (tmp_path / "proc/uda").mkdir(parents=True)
    text = "".join((HEAD % (number % 128, number + 10, 0)) + "  0  %d\n" % (number % 1024) for number in range(20000))
    (tmp_path / "proc/uda/namespace_node").write_text(text, encoding="ascii")
    assert len(reservations.read(str(tmp_path))) <= 128
    (tmp_path / "proc/uda/namespace_node").write_text((HEAD % (0, 5, 0)) + "  0  7\n" * 100000, encoding="ascii")
    assert [entry["chips"] for entry in reservations.read(str(tmp_path))] == [[7]]


@pytest.mark.parametrize("name", ["../../../etc", "\x1b[31mrm -rf\n", "{{ lookup('pipe', 'id') }}" * 100])
def test_a_process_that_calls_itself_something(tmp_path, name):
    """Its command line is its own; what its cgroup is called, the one that made it."""
    (tmp_path / "proc/uda").mkdir(parents=True)
    (tmp_path / "proc/uda/namespace_node").write_text(HEAD % (0, 5, 0) + "  0  7\n", encoding="ascii")
    (tmp_path / "proc/5").mkdir()
    (tmp_path / "proc/5/cmdline").write_bytes(name.encode())
    (tmp_path / "proc/5/cgroup").write_text("0::/%s/%s\n" % (name, "g" * 64), encoding="utf-8")
    (entry,) = reservations.read(str(tmp_path))
    assert entry["container"] is None and len(entry["command"]) <= 120 and entry["command"].isprintable()


def test_a_directory_in_its_place(tmp_path):
    (tmp_path / "proc/uda/namespace_node").mkdir(parents=True)
    assert reservations.read(str(tmp_path)) == []


def test_without_that_driver(tmp_path):
    assert reservations.read(str(tmp_path)) == []
