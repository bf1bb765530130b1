# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin as users run it: ansible-inventory, with an API server behind it."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import ansible_collections.kubernetes.core as kubernetes_core
import ansible_collections.npuops.ascend as npuops_ascend
import pytest
import yaml
from ansible.release import __version__
from ansible_collections.npuops.ascend.plugins.doc_fragments.kubernetes_auth import ModuleDocFragment
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support import controller, hostile
from support.kube.big_cluster import BigCluster
from support.kube.stub import node

COLLECTION = pathlib.Path(next(iter(npuops_ascend.__path__))).resolve()
NODES = "/api/v1/nodes"
LINUX = {"kubernetes.io/os": "linux"}
PRESENT = {**LINUX, "openfuyao.com/npu.present": ""}
STRICT = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}


class Inventory:
    """A directory with an inventory source in it, and ansible-inventory on it."""

    def __init__(self, directory, api=None):
        self.directory = directory
        self.environment = {"COLUMNS": "10000", "TMPDIR": str(directory)}
        self.python = {}  # of the environment, what a process that has loaded Ansible does not heed
        if api:
            self.environment.update(K8S_AUTH_HOST=api.address, K8S_AUTH_API_KEY="token")

    def run(self, *arguments, file="npu_nodes.yml", **options):
        source = self.directory / file
        source.write_text(yaml.safe_dump({"plugin": "npuops.ascend.npu_nodes", **options}), encoding="utf-8")
        command = ["ansible-inventory", "-i", str(source), *(arguments or ["--list"])]
        if not self.python:
            return controller.run(command, self.directory, environ=STRICT, more=self.environment)
        environ = {**controller.environment(self.directory), **STRICT, **self.environment, **self.python}
        command[:1] = [sys.executable, "-m", "ansible", "inventory"]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, cwd=self.directory)

    def read(self, *arguments, **options):
        """(variables of each host, hosts of each group, what was said on standard error, in one line)"""
        done = self.run("--list", *arguments, **options)
        assert done.returncode == 0, done.stderr
        parsed = json.loads(done.stdout, object_hook=_without_mark)
        variables = parsed.pop("_meta")["hostvars"]
        return variables, {name: group.get("hosts", []) for name, group in parsed.items()}, " ".join(done.stderr.split())

    def refused(self, **options):
        """What it says when it fails, in one line."""
        done = self.run(**options)
        assert done.returncode != 0, done.stdout
        return " ".join(done.stderr.split())


def _without_mark(item):
    """Ansible prints a string that is no template as an object."""
    return item.get("__ansible_unsafe", item)


@pytest.fixture
def inventory(tmp_path, api):
    return Inventory(tmp_path, api)


def at(item, *addresses):
    item["status"]["addresses"] = [{"type": "InternalIP", "address": address} for address in addresses]
    return item


# --- hosts and groups ---


def test_hosts_groups_and_their_order(inventory, api):
    api.put(
        NODES,
        at(node("npu-a", labels={**PRESENT, "npuops.ascend/chip": "910B", "npuops.ascend/driver-version": "25.5.0"}), "10.0.0.1"),
        at(node("npu-b", labels={**PRESENT, "npu.openfuyao.com/driver-upgrade-state": "drain-required"}, ready=False), "10.0.0.2"),
        at(node("cpu-a", labels=LINUX), "10.0.0.3"),
        at(node("windows", labels={"kubernetes.io/os": "windows"}), "10.0.0.4"),
    )
    variables, groups, said = inventory.read()
    assert {name: values["ansible_host"] for name, values in variables.items()} == {
        "cpu-a": "10.0.0.3",
        "npu-a": "10.0.0.1",
        "npu-b": "10.0.0.2",
    }
    assert groups["npu_present"] == ["npu-a", "npu-b"]
    assert (groups["npu_chip_910b"], groups["npu_driver_25_5_0"]) == (["npu-a"], ["npu-a"])
    assert (groups["npu_state_up_to_date"], groups["npu_state_drain_required"]) == (["npu-a"], ["npu-b"])
    assert groups["npu_not_ready"] == ["npu-b"]
    assert "WARNING" not in said
    assert variables["npu-b"]["node_info"]["kubeletVersion"] == "v1.34.4"
    assert variables["npu-b"]["node_labels"]["npu.openfuyao.com/driver-upgrade-state"] == "drain-required"


def test_a_group_of_ours_is_there_even_when_empty_and_wins_over_npu_nodes(inventory, api):
    api.put(NODES, at(node("a", labels={**PRESENT, "npuops.ascend/chip": "910B"}), "10.0.0.1"))
    group_vars = inventory.directory / "group_vars"
    group_vars.mkdir()
    (group_vars / "npu_nodes.yml").write_text("npu_driver_version: 25.5.0\n", encoding="utf-8")
    (group_vars / "npu_chip_910b.yml").write_text("npu_driver_version: 25.5.1\n", encoding="utf-8")
    variables, _groups, _said = inventory.read()
    assert variables["a"]["npu_driver_version"] == "25.5.1"
    shown = inventory.run("--graph", "npu_wedged")
    assert (shown.returncode, shown.stdout.strip()) == (0, "@npu_wedged:")


def test_the_pool_and_a_selector_of_ones_own(inventory, api):
    api.put(
        NODES,
        at(node("a", labels={"pool": "train.1"}), "10.0.0.1"),
        at(node("b", labels={"pool": "web"}), "10.0.0.2"),
        at(node("c"), "10.0.0.3"),
    )
    _variables, groups, _said = inventory.read(label_selector="pool,pool!=web", pool_label="pool")
    assert groups["npu_pool_train_1"] == ["a"] and "npu_pool_web" not in groups
    variables, _groups, _said = inventory.read(label_selector="")
    assert set(variables) == {"a", "b", "c"}


def test_constructed_options(inventory, api):
    api.put(
        NODES,
        at(node("a", labels={**LINUX, "zone": "z-1"}, annotations={"owner": "team b"}), "10.0.0.1"),
        at(node("b", labels=LINUX, unschedulable=True), "10.0.0.2"),
    )
    options = {
        "compose": {"zone": "node_labels.zone", "ansible_host": "node_labels.via | default('proxy.example.com')"},
        "groups": {"cordoned": "node_unschedulable", "ready": "node_ready"},
        "keyed_groups": [
            {"key": "node_labels.zone", "prefix": "zone", "parent_group": "npu_nodes"},
            {"key": "node_annotations.owner", "separator": ""},
            {"key": "node_info.kubeletVersion"},
        ],
        "leading_separator": False,
    }
    variables, groups, _said = inventory.read(**options)
    plain = {
        host: {name: value for name, value in values.items() if name in options["compose"]} for host, values in variables.items()
    }
    assert plain == {"a": {"zone": "z-1", "ansible_host": "proxy.example.com"}, "b": {"ansible_host": "proxy.example.com"}}
    assert (groups["cordoned"], groups["ready"]) == (["b"], ["a", "b"])
    assert (groups["zone_z_1"], groups["team_b"], groups["v1_34_4"]) == (["a"], ["a"], ["a", "b"])
    # What b does not have is an error only if the user wants it to be one.
    assert "Could not set zone for host b" in inventory.refused(strict=True, **options)


@pytest.mark.parametrize("form", range(len(hostile.templates(""))))
def test_what_the_cluster_says_is_never_a_template(inventory, api, form):
    """A client that may annotate a node must not run anything on the controller."""
    canary = inventory.directory / "trapped"
    trap = hostile.templates(canary)[form]
    item = at(
        node("a", labels=LINUX, annotations={"note": trap, "address": trap}, taints=[{"key": "k", "value": trap}]), "10.0.0.1"
    )
    item["status"]["nodeInfo"].update(osImage=trap, kernelVersion=trap)
    item["status"]["addresses"].append({"type": "Hostname", "address": trap})
    api.put(NODES, item)
    options = {
        "address_annotation": "address",
        "compose": {
            "copied": "node_annotations.note",
            "made_of_it": "'os: ' ~ node_info.osImage",
            "all_of_it": "node_info",
            "bare": "[node_taints[0].value, node_addresses] | last",
        },
        "groups": {"asked": "'touch' in node_annotations.note"},
        "keyed_groups": [{"key": "node_info.osImage", "prefix": "os"}, {"key": "node_annotations", "prefix": "note"}],
    }
    variables, groups, said = inventory.read(**options)
    assert not canary.exists()
    assert "a: its annotation address is not an address" in said and groups["asked"] == ["a"]
    everything = "{{ [copied, made_of_it, all_of_it, bare, node_annotations, node_info, node_taints, node_addresses] }}"
    source = inventory.directory / "npu_nodes.yml"
    # AWX keeps what ansible-inventory prints, and gives it to Ansible again.
    kept = inventory.directory / "kept.sh"
    kept.write_text("#!/bin/sh\ncat <<'END'\n%s\nEND\n" % inventory.run("--list", "--export", **options).stdout, encoding="utf-8")
    kept.chmod(0o755)
    for where in (source, kept):
        command = ["ansible", "-i", str(where), "a", "-c", "local", "-m", "ansible.builtin.debug", "-a", "msg=" + everything]
        done = controller.run(command, inventory.directory, environ=STRICT, more=inventory.environment)
        assert done.returncode == 0 and done.stdout.count("lookup(") >= 9, done.stdout + done.stderr
        assert not canary.exists(), where


def test_a_node_whose_name_is_none_is_no_host(inventory, api):
    """The API server checks names; who stands in for it does not."""
    canary = inventory.directory / "trapped"
    names = [*hostile.templates(canary), "-oProxyCommand=x", "a/b", "localhost,", "localhost", "all", "x\n"]
    api.put(NODES, *[at(node(name, labels=LINUX), "10.0.0.1") for name in [*names, "a"]])
    variables, _groups, said = inventory.read()
    assert list(variables) == ["a"] and not canary.exists()
    assert "is not a valid name" in said and "-oProxyCommand=x" in said


def test_what_the_cluster_says_is_marked_whatever_it_looks_like(inventory, api):
    """No string is judged by its look: which of them Ansible takes for a template is Ansible's affair."""
    api.put(NODES, at(node("a", labels=LINUX, annotations={"note": "harmless"}), "10.0.0.1"))
    done = json.loads(inventory.run("--list").stdout)
    variables = done["_meta"]["hostvars"]["a"]
    assert variables["node_annotations"]["note"] == {"__ansible_unsafe": "harmless"}
    assert variables["ansible_host"] == {"__ansible_unsafe": "10.0.0.1"}


def test_nodes_without_address_are_told_once(inventory, api):
    api.put(NODES, *[node(name, labels=LINUX) for name in "abc"], at(node("d", labels=LINUX), "10.0.0.4"))
    variables, _groups, said = inventory.read()
    assert set(variables) == set("abcd") and "ansible_host" not in variables["a"]
    assert said.count("WARNING") == 1
    assert "a, b, c: it has no address of the types InternalIP, ExternalIP, Hostname. Ansible connects to the node's name" in said


def test_no_node_matches(inventory, api):
    api.put(NODES, at(node("a", labels=LINUX), "10.0.0.1"))
    variables, groups, said = inventory.read(label_selector="accelerator=ascend")
    assert variables == {} and "npu_nodes" in groups
    assert "no node of %s matches the label_selector 'accelerator=ascend'" % api.address in said


# --- big clusters, and the cache ---


def listings(api):
    return [path for method, path in api.requests if path == NODES]


def test_requests_grow_with_pages(tmp_path):
    others = {}
    for nodes, pages in ((400, 1), (2000, 4)):
        directory = tmp_path / str(nodes)
        directory.mkdir()
        with BigCluster(nodes, 0) as api:
            variables, groups, _said = Inventory(directory, api).read()
            assert len(variables) == nodes and len(groups["npu_present"]) == nodes
            assert len(listings(api)) == pages
            others[nodes] = len(api.requests) - pages
    assert others[400] == others[2000] <= 4


def test_cache(inventory, api):
    api.put(NODES, at(node("a", labels=LINUX, annotations={"note": "x" * 300}), "10.0.0.1"))
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(inventory.directory / "cache")}
    first, _groups, _said = inventory.read(**cached)
    api.put(NODES, at(node("b", labels=LINUX), "10.0.0.2"))
    api.requests.clear()
    second, _groups, _said = inventory.read(**cached)
    assert api.requests == [] and second == first
    # What is made of the nodes is no part of it; what is asked for is.
    third, _groups, _said = inventory.read(address_types=["ExternalIP"], **cached)
    assert api.requests == [] and "ansible_host" not in third["a"]
    other, _groups, _said = inventory.read(label_selector="", **cached)
    assert set(other) == {"a", "b"} and len(listings(api)) == 1
    assert "x" * 300 not in "".join(path.read_text(encoding="utf-8") for path in (inventory.directory / "cache").iterdir())


@pytest.mark.skipif(__version__.startswith("2.18."), reason="ansible-inventory has --flush-cache since ansible-core 2.19")
def test_flushed_cache(inventory, api):
    api.put(NODES, at(node("a", labels=LINUX), "10.0.0.1"))
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(inventory.directory / "cache")}
    inventory.read(**cached)
    api.put(NODES, at(node("b", labels=LINUX), "10.0.0.2"))
    api.requests.clear()
    flushed, _groups, _said = inventory.read("--flush-cache", **cached)
    assert set(flushed) == {"a", "b"} and len(listings(api)) == 1
    assert set(inventory.read(**cached)[0]) == {"a", "b"} and len(listings(api)) == 1


# --- options, credentials, errors ---


def test_options_for_authentication_are_those_of_kubernetes_core():
    options = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    assert set(options) == set(kube_client.AUTH_ARG_SPEC)
    for name, spec in kube_client.AUTH_ARG_SPEC.items():
        assert options[name]["type"] == spec.get("type", "str"), name
        assert set(options[name].get("aliases", [])) == set(spec.get("aliases", [])), name


def test_templates_in_options_for_authentication(inventory, api):
    api.put(NODES, at(node("a", labels=LINUX), "10.0.0.1"))
    inventory.environment["WHERE"] = inventory.environment.pop("K8S_AUTH_HOST")
    del inventory.environment["K8S_AUTH_API_KEY"]
    host = "{{ lookup('ansible.builtin.env', 'WHERE') }}"
    assert set(inventory.read("-e", "secret=token", host=host, api_key="{{ secret }}")[0]) == {"a"}


def test_a_kubeconfig(inventory, api):
    api.put(NODES, at(node("a", labels=LINUX), "10.0.0.1"))
    for name in ("K8S_AUTH_HOST", "K8S_AUTH_API_KEY"):
        del inventory.environment[name]
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": {"token": "t"}}],
              "clusters": [{"name": "c", "cluster": {"server": api.address}}],
              "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}  # fmt: skip
    (inventory.directory / "config").write_text(json.dumps(config), encoding="utf-8")
    assert set(inventory.read(kubeconfig="config")[0]) == {"a"}
    assert set(inventory.read(kubeconfig=config)[0]) == {"a"}
    # AWX and others set variables to nothing.
    inventory.environment.update(K8S_AUTH_KUBECONFIG="config", K8S_AUTH_HOST="", K8S_AUTH_VERIFY_SSL="", K8S_AUTH_SSL_CA_CERT="")
    assert set(inventory.read()[0]) == {"a"}


def test_only_files_with_that_name_are_taken(inventory, api):
    assert "npu_nodes" in inventory.read(file="production.npu_nodes.yaml")[1]
    assert "could not be verified by inventory plugin" in inventory.refused(file="nodes.yml")


def test_wrong_options(inventory):
    message = inventory.refused(lable_selector="x", adress_types=["InternalIP"], nonsense=1)
    assert "Unknown option adress_types: did you mean address_types?; unknown option lable_selector: did you mean" in message
    assert "unknown option nonsense. Every option: ansible-doc -t inventory npuops.ascend.npu_nodes" in message
    assert re.search("Invalid value .*InternalIp.* for .*address_types", inventory.refused(address_types=["InternalIp"]))


def test_no_credentials(inventory, tmp_path):
    for name in ("K8S_AUTH_HOST", "K8S_AUTH_API_KEY"):
        del inventory.environment[name]
    message = inventory.refused(kubeconfig=str(tmp_path / "missing"))
    assert "No usable credentials for the Kubernetes API" in message
    assert "in kubeconfig in the inventory source or K8S_AUTH_KUBECONFIG" in message
    (tmp_path / "broken").write_text("{", encoding="utf-8")
    assert "The Kubernetes credentials cannot be read" in inventory.refused(kubeconfig=str(tmp_path / "broken"))


def test_the_right_that_is_missing_is_named(inventory, api):
    api.faults[("GET", NODES)] = (
        403,
        'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope',
    )
    assert 'Allow "list" on "nodes" to this user, or use other credentials' in inventory.refused()


def test_a_selector_that_the_server_refuses(inventory, api):
    api.faults[("GET", NODES)] = (400, "unable to parse requirement: found '=', expected: identifier")
    assert "answered 400: unable to parse requirement" in inventory.refused(label_selector="==")


def test_nobody_answers(inventory):
    inventory.environment["K8S_AUTH_HOST"] = "http://127.0.0.1:9"
    assert "The Kubernetes API at 127.0.0.1:9 cannot be reached" in inventory.refused()


@pytest.mark.parametrize("missing", ["kubernetes", "kubernetes.core"])
def test_what_to_install(inventory, missing, tmp_path):
    """As on a controller that has neither, or one of them only."""
    if missing == "kubernetes":
        hidden = tmp_path / "hidden" / "kubernetes"
        hidden.mkdir(parents=True)
        (hidden / "__init__.py").write_text("raise ImportError(\"No module named 'kubernetes'\")\n", encoding="utf-8")
        inventory.python["PYTHONPATH"] = str(hidden.parent)
    else:
        # Ansible prefers a collection in the configured path to the one in its own package.
        broken = tmp_path / "collections" / "ansible_collections"
        (broken / "kubernetes" / "core").mkdir(parents=True)
        (broken / "npuops").mkdir()
        (broken / "npuops" / "ascend").symlink_to(COLLECTION)
        assert pathlib.Path(next(iter(kubernetes_core.__path__))) != broken / "kubernetes" / "core"
        inventory.python["ANSIBLE_COLLECTIONS_PATH"] = str(broken.parent)
    message = inventory.refused()
    assert "lacks the Kubernetes client: No module named" in message
    assert "-m pip install kubernetes) and the collection kubernetes.core" in message
