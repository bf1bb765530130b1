# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_nodes
short_description: Hosts and groups from the nodes of a Kubernetes cluster
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Every node that O(label_selector) matches becomes a host, in groups that tell what it is and what is due on it. The playbooks
    of this collection run on them, so no list of hosts is kept by hand.
  - The name of a host is the name of its Node.
  - The source is a YAML file whose name ends in C(npu_nodes.yml) or C(npu_nodes.yaml). Variables beside it, in C(group_vars)
    and C(host_vars), count as with any inventory.
  - Values of the options for authentication may be templates.
notes:
  - The user needs the right V(list) on V(nodes), nothing else. The nodes are listed in pages of 500.
  - "A node that has no usable address is a host without C(ansible_host), with a warning: Ansible connects to its name. One that
    is being deleted is a host until it is deleted; its variable C(node_deleting) is true."
  - A plain C(ansible-playbook) goes on with no host when an inventory source fails. C([inventory] any_unparsed_is_failed=true) in
    C(ansible.cfg) ends it instead.
  - "Each host has the variables C(node_labels), C(node_annotations) (values of at most 256 characters), C(node_taints),
    C(node_addresses), C(node_ready), C(node_unschedulable), C(node_deleting) and C(node_info) (V(architecture),
    V(containerRuntimeVersion), V(kernelVersion), V(kubeletVersion), V(osImage)), for O(compose), O(groups) and O(keyed_groups)
    too. What stands in them and in C(ansible_host) is data of the cluster: all of it is marked as such, and Ansible never evaluates
    it as a template. C(ansible-inventory --list) prints such a string as C({\"__ansible_unsafe\": \"...\"})."
  - A Node whose name cannot be the name of a host, for example V(localhost), is left out, with a warning.
  - "Groups that always exist, even if they are empty: V(npu_nodes), all hosts; and as its children V(npu_present) (the label
    V(openfuyao.com/npu.present)), V(npu_chip_<chip>) (V(npuops.ascend/chip)), V(npu_state_<state>)
    (V(npu.openfuyao.com/driver-upgrade-state), without it V(npu_state_up_to_date) for nodes in V(npu_present)),
    V(npu_wedged) (the annotation V(npuops.ascend/wedged)) and V(npu_not_ready)."
  - "Groups as needed, children of V(npu_nodes): V(npu_driver_<version>) (V(npuops.ascend/driver-version)),
    V(npu_firmware_<version>) (V(npuops.ascend/firmware-version)) and V(npu_pool_<value>) (O(pool_label)). Characters that a group
    name cannot have become V(_)."
  - Being its children, these groups win over V(npu_nodes) in C(group_vars); where two of them disagree, the one that comes later
    in the alphabet does. Groups of O(groups) and O(keyed_groups) stand beside V(npu_nodes) unless a V(parent_group) says otherwise.
requirements:
  - kubernetes.core >= 6.0.0, < 7.0.0
  - kubernetes (Python)
extends_documentation_fragment:
  - npuops.ascend.kubernetes_auth
  - constructed
  - inventory_cache
options:
  plugin:
    description:
      - Says that the file is for this plugin.
    type: str
    required: true
    choices: [npuops.ascend.npu_nodes]
  label_selector:
    description:
      - The nodes to take, as C(kubectl get nodes --selector) has it; empty for all. Nodes without a chip are not changed, but
        each is inspected over SSH, so name your accelerator pool in a large cluster.
    type: str
    default: kubernetes.io/os=linux
  address_types:
    description:
      - Which of a node's addresses becomes C(ansible_host). The first type that it has an address of counts.
    type: list
    elements: str
    choices: [InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS]
    default: [InternalIP, ExternalIP, Hostname]
  address_annotation:
    description:
      - Name of an annotation whose value, an IP address or a DNS name, wins over the addresses. For hosts with a network for
        administration that Kubernetes does not know.
    type: str
  ip_family:
    description:
      - Take IP addresses of this family only. Names are taken with any.
    type: str
    choices: [any, ipv4, ipv6]
    default: any
  pool_label:
    description:
      - Name of the label that tells a node's pool. There is a group V(npu_pool_<value>) for each value.
    type: str
"""

EXAMPLES = r"""
# npu_nodes.yml: all Linux nodes of the cluster in the current kubeconfig.
plugin: npuops.ascend.npu_nodes
---
# One pool of a big cluster; the listing is kept for ten minutes.
plugin: npuops.ascend.npu_nodes
kubeconfig: /home/ops/.kube/config
context: production
label_selector: node.example.com/accelerator=ascend
pool_label: node.example.com/pool
address_annotation: example.com/admin-address
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/npu_nodes
cache_timeout: 600
---
# The token from a secret store, and groups of one's own.
plugin: npuops.ascend.npu_nodes
host: https://kubernetes.example.com:6443
api_key: "{{ lookup('ansible.builtin.file', '/run/secrets/token') }}"
ca_cert: /etc/pki/kubernetes-ca.pem
strict: true
keyed_groups:
  # kernel_6_6_0_145_0_4_135_oe2403sp3_aarch64, for example: driver images are per kernel.
  - key: node_info.kernelVersion
    prefix: kernel
groups:
  control_plane: "'node-role.kubernetes.io/control-plane' in node_labels"
compose:
  ansible_user: "'core' if 'KubeOS' in node_info.osImage else 'root'"
"""

import difflib
import os
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import inventory as node_inventory


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "npuops.ascend.npu_nodes"

    def verify_file(self, path: str) -> bool:
        return super().verify_file(path) and path.endswith(("npu_nodes.yml", "npu_nodes.yaml"))

    def parse(self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._check_names(self._read_config_data(path))
        try:
            self._fill(self._nodes(path, cache))
        except NpuError as exc:
            raise AnsibleParserError(exc.message) from exc

    def _check_names(self, config: dict[str, Any]) -> None:
        """Ansible would ignore a misspelt option."""
        known = {name for option, entry in self.option_definitions.items() for name in (option, *entry.get("aliases", ()))}
        told = []
        for name in sorted(set(config) - known, key=str):
            near = difflib.get_close_matches(str(name), known, 1, 0.75)
            told.append("unknown option %s%s" % (name, ": did you mean %s?" % near[0] if near else ""))
        if told:
            raise AnsibleParserError("%s Every option: ansible-doc -t inventory %s" % (sentence("; ".join(told)), self.NAME))

    def _nodes(self, path: str, cache: bool) -> list[Any]:
        """The nodes, from the cache if there is one and ``cache`` says that it may be read."""
        # kubernetes.core may know more of them than we do. Without it there are none, and connect() tells.
        auth = {name: self._templated(name) for name in kube_client.AUTH_ARG_SPEC if self.has_option(name)}
        selector = self.get_option("label_selector")
        if not self.get_option("cache"):
            return self._read(auth, selector)
        key = "%s_%s" % (self.get_cache_key(path), node_inventory.cache_identity(auth, selector, os.environ))
        if cache:
            try:
                return self._cache[key]
            except KeyError:
                pass  # not there, or too old
        nodes = self._read(auth, selector)
        self._cache[key] = nodes
        return nodes

    def _read(self, auth: dict[str, Any], selector: str) -> list[Any]:
        cluster = kube_client.connect(auth, "kubeconfig in the inventory source")
        nodes = node_inventory.read(cluster, selector)
        if not nodes:
            self.display.warning("%s: no node of %s matches the label_selector %r." % (self.NAME, cluster.address, selector))
        return nodes

    def _templated(self, name: str) -> Any:
        value = self.get_option(name)
        if not self.templar.is_template(value):
            return value
        self.templar.available_variables = self._vars
        return self.templar.template(value)

    def _fill(self, nodes: list[Any]) -> None:
        for group in node_inventory.standing_groups():
            self._add_group(group)
        settings = node_inventory.InventorySettings(
            address_types=tuple(self.get_option("address_types")),
            address_annotation=self.get_option("address_annotation"),
            ip_family=self.get_option("ip_family"),
            pool_label=self.get_option("pool_label"),
        )
        troubles: dict[str, list[str]] = {}
        named, unnamed = node_inventory.by_name(nodes)
        for name in unnamed:
            self.display.warning("%s: %r is not a valid name of an Ansible host. The node is skipped." % (self.NAME, name))
        for host in node_inventory.hosts(named, settings):
            self._add_host(host)
            if host.trouble:
                troubles.setdefault(host.trouble, []).append(host.name)
        for trouble, names in troubles.items():
            self.display.warning("%s: %s: %s. Ansible connects to the node's name." % (self.NAME, ", ".join(names), trouble))

    def _add_group(self, name: str) -> None:
        self.inventory.add_group(name)
        if name != node_inventory.ALL:
            self.inventory.add_child(node_inventory.ALL, name)

    def _add_host(self, host: node_inventory.InventoryHost) -> None:
        self.inventory.add_host(host.name, group=node_inventory.ALL)
        for group in host.groups:
            self._add_group(group)
            self.inventory.add_child(group, host.name)
        # All of it is marked, however harmless it looks: a first line "#jinja2:" makes a template of any string. Ansible 2.18
        # needs the mark; newer ones evaluate only what is marked as trusted, which nothing of this is.
        variables = wrap_var(host.variables)
        for name, value in variables.items():
            self.inventory.set_variable(host.name, name, value)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, host.name, strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host.name, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host.name, strict)
