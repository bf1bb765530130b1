# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI specs that another program wrote, and the status that a container runtime answers."""

from __future__ import annotations

import json
import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec
from hypothesis import given
from hypothesis import strategies as st

from support.properties import bounded, damaged, hostile_json

numbers = st.lists(st.integers(0, 200), max_size=4, unique=True).map(sorted)
hosts = st.builds(
    cdi_spec.HostDevices, st.integers(0, 16), st.none(), numbers, st.just([]), st.just(["davinci_manager", "hisi_hdc"]), numbers
)
libraries = st.sampled_from(("hook", "env", "none"))
SPEC = cdi_spec.spec(cdi_spec.HostDevices(2, None, [0, 1], [], ["davinci_manager"]), "/var/lib/Ascend", fs="/nowhere")


def read(text, name="x.json"):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as stream:
            stream.write(text)
        document = cdi_spec.read(path)
        others = cdi_spec.other_writers("/nowhere", [directory])
        unreadable = cdi_spec.unreadable([directory])
    assert others in ([], [path]) and unreadable in ([], [path])
    assert (path in unreadable) == (not text.strip() or document is None)
    return document


@given(hosts, libraries)
def test_a_spec_of_ours_is_the_spec_of_this_host(host, library):
    spec = cdi_spec.spec(host, "/var/lib/Ascend", library, "/nowhere")
    assert read(cdi_spec.text(spec)) == spec
    assert cdi_spec.problem(spec, host, "/var/lib/Ascend", library, "/nowhere") is None
    names = [device["name"] for device in spec["devices"]]
    assert sorted(names) == sorted([str(number) for number in host.numbers + host.virtual] + ["all"])


@given(st.one_of(hostile_json(SPEC), damaged(st.just(cdi_spec.text(SPEC)), ("{", "kind: ", "[", '"'))), hosts, libraries)
def test_a_spec_of_somebody_else_is_read_or_refused(text, host, library):
    with bounded():
        document = read(text)
        assert document is None or isinstance(document, dict)
        why = cdi_spec.problem(document, host, "/var/lib/Ascend", library, "/nowhere")
        assert (why is None) == (document == cdi_spec.spec(host, "/var/lib/Ascend", library, "/nowhere"))
        if document is not None:
            assert all(isinstance(path, str) for path in cdi_spec.mount_sources(document) + cdi_spec.hooks(document))
            json.dumps(why)


@given(st.integers(0, 64), st.lists(st.integers(0, 300), max_size=20, unique=True))
def test_each_chip_has_a_number(chips, present):
    found = cdi_spec.chip_numbers(chips, sorted(present))
    assert set(present) <= set(found) and len(found) == len(set(found)) == max(chips, len(present)) and found == sorted(found)
