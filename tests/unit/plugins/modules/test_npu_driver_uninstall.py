# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An uninstall of a host on which a killed run of accept has left its image."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import image_traces
from ansible_collections.npuops.ascend.plugins.module_utils._activation import removal as driver_removal
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.modules import npu_driver

REMOVED = "remove the ToolBox image of an acceptance"


@pytest.fixture
def remove(tmp_path, monkeypatch):
    """Removes everything from a host with nothing but an image; (the result, how often the image was removed)."""
    marked, cleared = [True], []
    removal = driver_removal.Removal
    monkeypatch.setattr(driver_removal, "Removal", lambda root, directories: removal(root, directories, fs=str(tmp_path)))
    monkeypatch.setattr(image_traces, "exist", lambda: marked[0])
    monkeypatch.setattr(transient_unit, "running", lambda unit: False)

    def run(check_mode=False, clear=lambda: None, exists=True):
        marked[0] = exists
        monkeypatch.setattr(image_traces, "clear", lambda: cleared.append(clear()))
        result = {}
        params = {"root": "/var/lib/Ascend", "empty_directories": []}
        npu_driver.remove(SimpleNamespace(params=params, check_mode=check_mode, exit_json=result.update))
        return result, len(cleared)

    return run


def test_the_image_goes_too(remove):
    result, cleared = remove()
    assert (result["changed"], result["msg"], result["left"], cleared) == (True, REMOVED, [], 1)


def test_check_mode_only_says_so(remove):
    result, cleared = remove(check_mode=True)
    assert (result["changed"], result["msg"], cleared) == (True, REMOVED, 0)


def test_without_one(remove):
    result, cleared = remove(exists=False)
    assert (result["changed"], cleared) == (False, 0)


def test_one_that_stays_is_named_and_ends_nothing(remove):
    def fails():
        raise NpuError("containerd does not respond")

    result, _cleared = remove(clear=fails)
    assert result["left"] == ["the ToolBox image of an acceptance is kept: containerd does not respond"]


@pytest.mark.parametrize("ends", [True, False])
def test_a_diagnosis_that_runs_is_stopped(remove, monkeypatch, ends):
    runs = [True]
    monkeypatch.setattr(transient_unit, "running", lambda unit: runs[0])
    monkeypatch.setattr(transient_unit, "stop", lambda unit: runs.__setitem__(0, not ends))
    result, _cleared = remove(check_mode=True, exists=False)
    assert result["msg"] == "stop the diagnosis of an acceptance" and runs == [True]
    result, _cleared = remove(exists=False)
    assert result["changed"] and runs == [not ends]
    assert result["left"] == (
        [] if ends else ["the diagnosis of an acceptance does not end: see systemctl status " + image_traces.UNIT]
    )
