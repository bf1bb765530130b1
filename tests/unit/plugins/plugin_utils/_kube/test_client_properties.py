# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities of extended resources, which kubelets and creators of pods write in any form that the API server accepts."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import room as rollout_room
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import Pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status
from hypothesis import example, given
from hypothesis import strategies as st

from support.kube.stub import node
from support.properties import bounded

RESOURCE = "huawei.com/Ascend910"
# https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity; extended resources are whole numbers.
SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@st.composite
def quantities(draw):
    """(a quantity as the API server has it, the number)"""
    number = draw(st.integers(0, 40))
    how = draw(st.sampled_from([*SUFFIXES, "e3", "E2", "int"]))
    if how == "int":
        return number, number
    factor = SUFFIXES[how] if how in SUFFIXES else 10 ** int(how[1:])
    return draw(st.sampled_from(("", "+"))) + str(number) + how, number * factor


@given(quantities())
@example(("1k", 1000))
def test_each_form_of_a_quantity_is_its_number(quantity):
    text, number = quantity
    made = node("a", allocatable={RESOURCE: text})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {RESOURCE: text}}}]}}
    with bounded():
        assert kube_client.allocatable(made, RESOURCE) == number
        assert Pod(pod).requests.get(RESOURCE, 0) == number
        room = rollout_room.Room(fleet_snapshot.FleetSnapshot({"a": made}, {}, disruption_budgets.Budgets(())))
        assert room.totals.get(RESOURCE, {}).get("allocatable", 0) == number
        views = report_status.node_views({"a": made}, [], 0)
        assert views["a"]["allocatable"][RESOURCE] == number


@given(st.one_of(st.text(max_size=6), st.sampled_from(("²", "٣", "9" * 5000, "1.5", "", "-1", "k", "1e999", "NaN"))))
def test_what_is_no_whole_number_is_none(text):
    """No API server stores it. It must not end the look at all the other nodes."""
    made = node("a", allocatable={RESOURCE: text})
    with bounded():
        assert isinstance(kube_client.allocatable(made, RESOURCE), int)
        Pod({"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {RESOURCE: text}}}]}})
        rollout_room.Room(fleet_snapshot.FleetSnapshot({"a": made}, {}, disruption_budgets.Budgets(())))
        report_status.node_views({"a": made}, [], 0)
