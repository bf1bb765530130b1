# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible.inventory.group import to_safe_group_name
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import inventory as node_inventory

from support.kube.stub import node

PRESENT = "openfuyao.com/npu.present"
STATE = "npu.openfuyao.com/driver-upgrade-state"


def with_addresses(*pairs, annotations=None):
    item = node("a", annotations=annotations)
    item["status"]["addresses"] = [{"type": kind, "address": address} for kind, address in pairs]
    return item


def host_of(item, **settings):
    (host,) = node_inventory.hosts([node_inventory.slim(item)], node_inventory.InventorySettings(**settings))
    return host


def groups(labels=None, annotations=None, ready=True, **settings):
    return set(host_of(node("a", labels=labels, annotations=annotations, ready=ready), **settings).groups)


# --- groups ---


def test_a_node_without_chips_is_in_no_group_but_the_first():
    assert groups({"kubernetes.io/os": "linux", "npuops.ascend/skip": "true"}) == set()


@pytest.mark.parametrize(
    "labels, expected",
    [
        ({PRESENT: ""}, {"npu_present", "npu_state_up_to_date"}),
        ({PRESENT: "", STATE: "upgrade-failed"}, {"npu_present", "npu_state_upgrade_failed"}),
        ({PRESENT: "", STATE: "pod-deletion-required"}, {"npu_present", "npu_state_pod_deletion_required"}),
        # The label of the chips went, and a rollout is still under way.
        ({STATE: "uncordon-required"}, {"npu_state_uncordon_required"}),
        ({"npuops.ascend/chip": "910B"}, {"npu_chip_910b"}),
        ({"npuops.ascend/chip": ""}, set()),
        ({"npuops.ascend/driver-version": "25.5.0"}, {"npu_driver_25_5_0"}),
        ({"npuops.ascend/driver-version": "24.1.RC2-b1"}, {"npu_driver_24_1_RC2_b1"}),
        ({"npuops.ascend/firmware-version": "7.8.0.5.216"}, {"npu_firmware_7_8_0_5_216"}),
    ],
)
def test_groups_by_label(labels, expected):
    assert groups(labels) == expected


def test_a_wedged_node_has_the_annotation_however_long():
    long = json.dumps({"since": "2026-11-21T10:00:00Z", "reason": "x" * 4000})
    for value in ("by hand", long):
        assert groups({PRESENT: ""}, {"npuops.ascend/wedged": value}) == {"npu_present", "npu_state_up_to_date", "npu_wedged"}
    # An upgrade also asks for a reboot.
    assert "npu_wedged" not in groups({"npu.openfuyao.com/reboot-required": "true"})


def test_not_ready_and_never_reported():
    assert groups(ready=False) == {"npu_not_ready"}
    item = node("a")
    del item["status"]["conditions"]
    assert host_of(item).groups == ("npu_not_ready",)
    assert host_of(item).variables["node_ready"] is False


def test_pools():
    labels = {"example.com/pool": "train-1.A", "other": "x"}
    assert groups(labels) == set()
    assert groups(labels, pool_label="example.com/pool") == {"npu_pool_train_1_A"}
    assert groups(labels, pool_label="example.com/absent") == set()


def test_standing_groups_are_those_that_hosts_are_put_into():
    standing = node_inventory.standing_groups()
    assert standing[0] == "npu_nodes" and len(set(standing)) == len(standing)
    assert {"npu_present", "npu_wedged", "npu_not_ready", "npu_chip_910b", "npu_chip_310p", "npu_state_up_to_date"} < set(standing)
    for step in ("approval-required", "validation-required", "upgrade-failed"):
        assert groups({STATE: step}) < set(standing)


def test_every_group_name_is_one_that_ansible_takes_as_it_is():
    names = set(node_inventory.standing_groups()) | groups(
        {STATE: "some.other-state", "npuops.ascend/chip": "9-1.0", "npuops.ascend/driver-version": "1.2-3", "pool": "A.b-c_1"},
        pool_label="pool",
    )
    for name in names:
        assert to_safe_group_name(name, force=True, silent=True) == name


# --- addresses ---

USUAL = (("Hostname", "node-a"), ("ExternalIP", "203.0.113.7"), ("InternalIP", "10.0.0.7"), ("InternalIP", "fd00::7"))


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "10.0.0.7"),
        ({"ip_family": "ipv4"}, "10.0.0.7"),
        ({"ip_family": "ipv6"}, "fd00::7"),
        ({"address_types": ("ExternalIP", "InternalIP")}, "203.0.113.7"),
        # No such address of the first type: the next type counts.
        ({"address_types": ("ExternalIP", "InternalIP"), "ip_family": "ipv6"}, "fd00::7"),
        ({"address_types": ("InternalDNS", "Hostname"), "ip_family": "ipv6"}, "node-a"),
        ({"address_annotation": "example.com/absent"}, "10.0.0.7"),
    ],
)
def test_address(settings, expected):
    host = host_of(with_addresses(*USUAL), **settings)
    assert (host.variables["ansible_host"], host.trouble) == (expected, None)


@pytest.mark.parametrize("value", ["192.0.2.9", "2001:db8::9", "fe80::9%eth0", "bmc-side.example.com", "node_9"])
def test_the_annotation_wins(value):
    item = with_addresses(*USUAL, annotations={"example.com/address": value})
    assert host_of(item, address_annotation="example.com/address", ip_family="ipv4").variables["ansible_host"] == value
    assert host_of(item).variables["ansible_host"] == "10.0.0.7"


@pytest.mark.parametrize("value", ["", "-oProxyCommand=id", "a b", "a;id", "$(id)", "{{ 1 }}", "a\n", "fe80::1%;id", "x" * 254])
def test_what_is_no_address_reaches_no_command_line(value):
    by_annotation = host_of(with_addresses(*USUAL, annotations={"x": value}), address_annotation="x")
    assert "ansible_host" not in by_annotation.variables
    assert by_annotation.trouble == "its annotation x is not an address: %r" % value
    assert "ansible_host" not in host_of(with_addresses(("InternalIP", value))).variables


def test_no_usable_address():
    host = host_of(with_addresses(("InternalIP", "10.0.0.7")), ip_family="ipv6", address_types=("InternalIP", "ExternalIP"))
    assert "ansible_host" not in host.variables
    assert host.trouble == "it has no address of the types InternalIP, ExternalIP of the family ipv6"
    assert host_of(node("a")).trouble == "it has no address of the types InternalIP, ExternalIP, Hostname"


def test_an_unknown_family():
    with pytest.raises(NpuError, match="ip_family is 'ipv5'; choose one of any, ipv4, ipv6"):
        host_of(node("a"), ip_family="ipv5")


# --- variables ---


def test_variables():
    item = node(
        "a",
        labels={"l": "1"},
        annotations={"short": "x" * 256, "long": "x" * 257},
        unschedulable=True,
        taints=[{"key": "k", "effect": "NoSchedule"}],
    )
    item["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    item["status"]["nodeInfo"].update(kernelVersion="6.6.0", osImage="openEuler 24.03", machineID="secret-ish")
    item["status"]["images"] = [{"names": ["x"]}]
    variables = host_of(item).variables
    assert variables["node_labels"] == {"l": "1"}
    assert variables["node_annotations"] == {"short": "x" * 256}
    assert variables["node_taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert (variables["node_ready"], variables["node_unschedulable"], variables["node_deleting"]) == (True, True, True)
    assert variables["node_info"] == {
        "kernelVersion": "6.6.0",
        "osImage": "openEuler 24.03",
        "kubeletVersion": "v1.34.4",
        "containerRuntimeVersion": "containerd://2.1.5",
    }
    # Preflight takes an unknown variable that begins so for a typing error.
    assert not [name for name in variables if name.startswith("npu_")]


def test_what_is_cached_is_plain_and_small():
    item = node("a", annotations={"record": "x" * 100000})
    item["status"]["images"] = [{"names": ["x" * 100]}] * 50
    item["metadata"]["managedFields"] = [{"fieldsV1": {"f:x": {}}}] * 50
    slim = node_inventory.slim(item)
    assert json.loads(json.dumps(slim)) == slim
    assert len(json.dumps(slim)) < 600


def test_hosts_come_in_order():
    nodes = [node_inventory.slim(node(name)) for name in ("c", "a", "b")]
    assert [host.name for host in node_inventory.hosts(nodes, node_inventory.InventorySettings())] == ["a", "b", "c"]


# --- the cache's key ---


def kubeconfig(server="https://one:6443", token="t", current="x"):
    return {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": current,
    }


def test_another_server_or_selector_is_another_key(tmp_path):
    def key(auth, selector="a=b", **environment):
        return node_inventory.cache_identity(auth, selector, environment)

    config, other = tmp_path / "config", tmp_path / "other"
    config.write_text(json.dumps(kubeconfig()), encoding="utf-8")
    other.write_text(json.dumps(kubeconfig("https://two:6443")), encoding="utf-8")
    keys = [
        key({"host": "https://one:6443"}),
        key({"host": "https://two:6443"}),
        key({"host": "https://one:6443"}, ""),
        key({"kubeconfig": str(config)}),
        key({"kubeconfig": str(other)}),
        key({"kubeconfig": "%s:%s" % (config, other)}),
        key({"kubeconfig": str(config), "context": "y"}),
        key({"kubeconfig": kubeconfig(current="z")}),
        key({"kubeconfig": str(tmp_path / "missing")}),
        key({}, KUBERNETES_SERVICE_HOST="10.96.0.1", KUBERNETES_SERVICE_PORT="443"),
    ]
    assert len(set(keys)) == len(keys)
    assert key({"kubeconfig": str(config)}) == key({}, KUBECONFIG=str(config)) == key({"kubeconfig": kubeconfig()})
    assert key({"kubeconfig": str(config)}) == key({}, K8S_AUTH_KUBECONFIG=str(config), K8S_AUTH_HOST="", KUBECONFIG=str(other))
    assert key({"host": "https://one:6443/"}) == key({}, K8S_AUTH_HOST="https://one:6443") == keys[0]
    assert key({"kubeconfig": str(config), "context": "y"}) == key({"kubeconfig": str(config)}, K8S_AUTH_CONTEXT="y")


def test_no_credential_is_part_of_the_key():
    """It is a file's name, and a token that is renewed asks for the same nodes."""

    def key(**auth):
        return node_inventory.cache_identity(auth, "", {})

    assert key(host="h", api_key="1") == key(host="h", api_key="2") == key(host="h", username="u", password="p")
    assert key(kubeconfig=kubeconfig(token="1")) == key(kubeconfig=kubeconfig(token="2"))
