# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/controller-access*.yml: enough for what the roles make and for what the plans ask, and as narrow as names can make it."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import (
    collective,
    collective_nodes,
    collective_pairs,
    collective_runs,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollout_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import install_permissions, stack_checks

from support.fleet.fake_fleet import Clock
from support.kube.collective_stub import MANIFEST as REDUCE
from support.kube.collective_stub import CollectiveApi
from support.kube.manifests import AGENT, CLUSTERD, EXPORTER, NODED, OPERATOR, PLUGIN, ROLES, VOLCANO, render_all

NAMESPACE = "npu-operator"
ACCOUNT = {"kind": "ServiceAccount", "name": "npu-controller", "namespace": NAMESPACE}
MANIFEST = pathlib.Path(ROLES).parent / "docs" / "controller-access.yml"
# What goes beyond that, for the components that most do not install.
MINDCLUSTER = MANIFEST.with_name("controller-access-mindcluster.yml")
CLUSTERD_AND_NODED = MANIFEST.with_name("controller-access-clusterd.yml")
TAINTS = MANIFEST.with_name("controller-access-device-taints.yml")
VOLCANOS = MANIFEST.with_name("controller-access-volcano.yml")
MORE = {"volcano": VOLCANOS, "ascend_operator": MINDCLUSTER, "clusterd": CLUSTERD_AND_NODED, "noded": CLUSTERD_AND_NODED}
# And for the DaemonSets of another installation.
ADOPT = MANIFEST.with_name("controller-access-adopt.yml")
PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}
CLUSTER_WIDE = (
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
FAMILIES = list(PLUGIN["__npu_version_line"]["device_plugin"]["families"])
TEMPLATES = [
    ("npu_device_plugin", "device-plugin.yaml.j2", dict(PLUGIN, __npu_device_plugin_families=FAMILIES)),
    (
        "npu_device_plugin",
        "device-plugin.yaml.j2",
        dict(PLUGIN, __npu_device_plugin_families=FAMILIES, npu_device_plugin_kubelet_pods=True),
    ),
    ("npu_device_plugin", "admission-policy.yaml.j2", PLUGIN),
    ("npu_exporter", "npu-exporter.yaml.j2", EXPORTER),
    ("npu_exporter", "service-monitor.yaml.j2", EXPORTER),
    ("npu_node_agent", "node-agent.yaml.j2", AGENT),
    ("npu_node_agent", "monitoring.yaml.j2", AGENT),
    ("npu_node_agent", "admission-policy.yaml.j2", AGENT),
    ("npu_node_agent", "namespace.yaml.j2", AGENT),
]
OPTIONAL = {
    "volcano": (VOLCANO, ("namespaces.yaml.j2", "crds.yaml.j2", "access.yaml.j2", "volcano.yaml.j2")),
    "ascend_operator": (OPERATOR, ("namespace.yaml.j2", "ascendjob-crd.yaml.j2", "access.yaml.j2", "ascend-operator.yaml.j2")),
    "clusterd": (CLUSTERD, ("namespaces.yaml.j2", "access.yaml.j2", "clusterd.yaml.j2")),
    "noded": (
        dict(NODED, npu_noded_profiling_dir="/user/cluster-info/profiling"),
        ("admission-policy.yaml.j2", "namespaces.yaml.j2", "access.yaml.j2", "noded.yaml.j2"),
    ),
}
TAINTING = [("npu_node_agent", "node-agent.yaml.j2", dict(AGENT, npu_node_agent_device_taints=True))]
EACH = pytest.mark.parametrize("part", mindcluster_stack.PARTS)


def optional(part):
    """The templates of an optional component, with each version line."""
    variables, templates = OPTIONAL[part]
    return [
        (
            "npu_" + part,
            template,
            {**variables, "__npu_version_line": mindcluster.component(version_line, "npu_" + part, {})},
        )
        for template in templates
        for version_line in mindcluster.names()
    ]


class Granted:
    """What RBAC grants by the manifests, as the API server would look it up."""

    def __init__(self, *manifests):
        self.objects = [item for one in manifests for item in yaml.safe_load(one.read_text(encoding="utf-8"))["items"]]
        roles = {self._key(item): item["rules"] for item in self.objects if item["kind"] in ("Role", "ClusterRole")}
        self.rules = {}
        for item in self.objects:
            if item["kind"] in ("RoleBinding", "ClusterRoleBinding"):
                assert item["subjects"] == [ACCOUNT]
                namespace = item["metadata"].get("namespace")
                role = item["roleRef"]
                self.rules.setdefault(namespace, []).extend(
                    roles[role["kind"], role["name"], namespace if role["kind"] == "Role" else None]
                )

    @staticmethod
    def _key(item):
        return item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")

    def allows(self, verb, resource, group="", namespace=None, name=None):
        rules = self.rules[None] + (self.rules.get(namespace, []) if namespace else [])
        return any(
            verb in rule["verbs"]
            and resource in rule["resources"]
            and group in rule["apiGroups"]
            and ("resourceNames" not in rule or name in rule["resourceNames"])
            for rule in rules
        )


@pytest.fixture(scope="module")
def granted():
    return Granted(MANIFEST)


@pytest.fixture(scope="module")
def granted_all():
    return Granted(MANIFEST, MINDCLUSTER, CLUSTERD_AND_NODED, TAINTS, VOLCANOS, ADOPT)


def made(templates):
    """(kind, API group, namespace, name) of everything that the roles' templates make."""
    for role, template, variables in templates:
        for item in render_all(role, template, variables):
            group = item["apiVersion"].rpartition("/")[0]
            yield item["kind"], group, item["metadata"].get("namespace"), item["metadata"]["name"]


@pytest.mark.parametrize("kind, group, namespace, name", sorted(set(made(TEMPLATES)), key=str))
def test_install_may_make_change_and_remove_it(granted, kind, group, namespace, name):
    assert_may_make_change_and_remove(granted, kind, group, namespace, name)


@EACH
def test_with_more_rights_it_may_do_so_with_an_optional_component(part):
    granted = Granted(MANIFEST, MORE[part])
    for kind, group, namespace, name in sorted(set(made(optional(part))), key=str):
        assert_may_make_change_and_remove(granted, kind, group, namespace, name)


def assert_may_make_change_and_remove(granted, kind, group, namespace, name):
    resource = PLURALS.get(kind, kind.lower() + "s")
    if kind == "Namespace":  # an administrator makes it, and it stays
        verbs = ["get", "patch"]
    else:
        verbs = ["get", "patch", "delete"]
        assert granted.allows("create", resource, group, namespace)
    assert [verb for verb in verbs if not granted.allows(verb, resource, group, namespace, name)] == []
    if kind in CLUSTER_WIDE or namespace == "default":
        assert not granted.allows("patch", resource, group, namespace, "somebody-elses")


def test_install_asks_for_what_it_makes():
    """Preflight names, in words, every right that would be missing later."""
    asked = set(install_permissions.to_install(NAMESPACE, True, True, True, True))
    for kind, group, namespace, name in made(TEMPLATES):
        if kind.startswith("ValidatingAdmissionPolicy"):
            assert name in install_permissions._AGENT_POLICIES + install_permissions._PLUGIN_POLICIES
        if group != "monitoring.coreos.com" and kind != "Service":  # only where the Prometheus operator is
            resource = PLURALS.get(kind, kind.lower() + "s")
            assert {("patch", resource, group, namespace, name), ("patch", resource, group, namespace, None)} & asked, (kind, name)


def test_preflight_and_plan_are_content(granted):
    asked = install_permissions.to_install(NAMESPACE, True, True, True, True) + rollout_permissions.to_carry_out(NAMESPACE)
    assert [entry for entry in asked if not granted.allows(*entry)] == []


@pytest.mark.parametrize("component", mindcluster_stack.COMPONENTS, ids=lambda component: component.part)
def test_preflight_names_what_an_optional_component_needs(granted, component):
    """A user who has only the rights for all other components is told what is missing."""
    granted_more = Granted(MANIFEST, MORE[component.part])
    asked = stack_checks.permissions(NAMESPACE, True, stack_checks.Found(component, crds=tuple(crd.name for crd in component.crds)))
    for kind, group, namespace, name in made(optional(component.part)):
        resource = PLURALS.get(kind, kind.lower() + "s")
        named = {("patch", resource, group, namespace, name), ("patch", resource, group, namespace, None)}
        assert name == NAMESPACE or named & set(asked), (kind, name)
    assert [entry for entry in asked if not granted_more.allows(*entry)] == []
    assert [entry for entry in asked if not granted.allows(*entry)]
    gone = stack_checks.permissions(NAMESPACE, False, stack_checks.Found(component, installed=True))
    assert gone and [entry for entry in gone if not granted_more.allows(*entry)] == []
    assert stack_checks.permissions(NAMESPACE, False, stack_checks.Found(component)) == []


@pytest.mark.parametrize(
    "manifests, templates",
    [
        ((MANIFEST,), TEMPLATES),
        ((MANIFEST, TAINTS), TAINTING),
        *(((MANIFEST, manifest), optional(part)) for part, manifest in MORE.items()),
    ],
)
def test_the_api_server_lets_it_grant_what_components_get(manifests, templates):
    """A user may grant only the rights that the user has."""
    granted = Granted(*manifests)
    for role, template, variables in templates:
        for item in render_all(role, template, variables):
            for rule in item.get("rules", []):
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        lacks = [
                            verb
                            for verb in rule["verbs"]
                            if not granted.allows(verb, resource, group, item["metadata"].get("namespace"))
                        ]
                        assert lacks == [], (item["metadata"]["name"], resource)


def test_preflight_names_what_an_agent_needs_to_taint_chips(granted):
    """And a user who has no more than that can take the taints away again."""
    (role,) = (item for item in render_all(*TAINTING[0]) if item["kind"] == "ClusterRole")
    rules = [rule for rule in role["rules"] if rule["apiGroups"] == ["resource.k8s.io"]]
    given = {(verb, *rule["resources"], "resource.k8s.io", None, None) for rule in rules for verb in rule["verbs"]}
    assert given == set(install_permissions.TO_TAINT_CHIPS)
    with_taints = Granted(MANIFEST, TAINTS)
    assert [entry for entry in given if not with_taints.allows(*entry)] == []
    assert {entry[1] for entry in given if not granted.allows(*entry)} == {"devicetaintrules"}
    assert all(with_taints.allows(verb, "devicetaintrules", "resource.k8s.io") for verb in ("list", "delete"))


def test_no_way_to_more_rights(granted_all):
    granted = granted_all
    for rules in granted.rules.values():
        for rule in rules:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])
            assert not {"secrets", "pods/exec", "serviceaccounts/token", "nodes/exec"} & set(rule["resources"])


def test_a_collective_asks_for_nothing_that_is_not_granted(granted):
    """Accept finds out who takes part, and runs the pods of pairs; one of them fails, and says why."""
    request = {"pod": "reduce.yml", "timeout": 60, "dra_drivers": ["npu.huawei.com"], "ignored": False, "directory": None}
    asked = set()
    with CollectiveApi() as api:
        for name in "abcd":
            api.node(name)
        api.bad.add("d")
        acceptances = [
            {"host": name, "boot_id": "boot-of-" + name, "document": {"node": name, "verdict": "PASS"}, "request": request}
            for name in "abcd"
        ]
        cluster = kube_client.connect({"host": api.address, "api_key": "token"})
        groups, _others = collective_nodes.of(cluster, acceptances, lambda _path: smoke_pod.read(REDUCE))
        (group,) = groups
        tried = []
        collective_runs.run(
            collective_pairs.pairs(group.timeouts),
            lambda pair: collective.Collective(cluster, pair, group.manifest, 60, print, Clock()),
            tried,
            Clock(),
        )
        for method, path in api.requests:
            found = re.fullmatch(r"/api/v1(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+)(?:/([a-z]+))?)?", path)
            if found:
                namespace, resource, name, part = found.groups()
                verb = {"POST": "create", "DELETE": "delete", "GET": "get" if name else "list"}[method]
                asked.add((verb, resource + ("/" + part if part else ""), "", namespace, name))
    assert {entry[:2] for entry in asked} >= {
        ("get", "nodes"), ("list", "pods"), ("create", "pods"), ("get", "pods"), ("delete", "pods"), ("get", "pods/log"),
    }  # fmt: skip
    assert [entry for entry in asked if not granted.allows(*entry)] == []


def test_the_documented_rights_are_those_of_the_manifests(granted_all):
    """docs/access.md has a row for each rule."""
    granted = granted_all
    text = (MANIFEST.parent / "access.md").read_text(encoding="utf-8")
    rows = {
        tuple(cell.strip() for cell in line.strip("| \n").split(" | ")[:3]) for line in text.splitlines() if line.startswith("| ")
    }
    wanted = set()
    for item in granted.objects:
        if item["kind"] in ("Role", "ClusterRole"):
            part = item["metadata"]["name"].removeprefix("npu-controller-")
            where = item["metadata"].get("namespace") or "cluster"
            for rule in item["rules"]:
                for resource in rule["resources"]:
                    wanted.add(
                        (
                            part,
                            f"`{resource}`" + (" by name" if "resourceNames" in rule else ""),
                            f"{where}: " + ", ".join(rule["verbs"]),
                        )
                    )
    assert wanted - rows == set()


def test_an_adoption_may_change_the_daemonsets_of_mindcluster_and_no_others(granted, granted_all):
    for name, namespace in (("ascend-device-plugin-daemonset-910", "kube-system"), ("npu-exporter", "npu-exporter")):
        assert not granted.allows("patch", "daemonsets", "apps", namespace, name)
        assert all(granted_all.allows(verb, "daemonsets", "apps", namespace, name) for verb in ("get", "patch"))
        assert not granted_all.allows("patch", "daemonsets", "apps", namespace, "kube-proxy")
        assert not granted_all.allows("delete", "daemonsets", "apps", namespace, name)
