# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files by which people and tests use the lab: kubectl, ssh_config, inventory."""

from __future__ import annotations

import json

from . import addons, agent_image, binaries, upstream
from .files import write
from .registry import credentials
from .settings import PULL_SECRET, Lab
from .tasks import Step


def write_outputs(lab: Lab, step: Step) -> None:
    """Everything but the kubeconfigs, which pki.py and addons.py write."""
    step.say("writing files")
    link_kubectl(lab)
    known_hosts = lab.state / "known_hosts"
    write(
        known_hosts,
        "".join(
            f"{lab.node_address(node)} {(lab.pki / f'ssh-host-{node.name}.pub').read_text(encoding='ascii')}" for node in lab.nodes
        ),
    )
    write(
        lab.ssh_config,
        "".join(
            f"Host {node.name}\n  HostName {lab.node_address(node)}\n  User root\n  IdentityFile {lab.pki / 'ssh'}\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {known_hosts}\n\n"
            for node in lab.nodes
        ),
    )
    write(lab.inventory, _inventory(lab), mode=0o600)


def link_kubectl(lab: Lab) -> None:
    lab.kubectl.parent.mkdir(parents=True, exist_ok=True)
    new = lab.kubectl.with_name("kubectl.new")
    new.unlink(missing_ok=True)
    new.symlink_to(binaries.programs(lab, binaries.kubernetes(lab)) / "kubectl")
    new.replace(lab.kubectl)


def _inventory(lab: Lab) -> str:
    """What users would write for their own clusters; every `lab up` writes it again."""
    login = credentials(lab)
    variables = {
        "ansible_user": "root",
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(lab.pki / "ssh"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={lab.state / 'known_hosts'} -o IdentitiesOnly=yes",
        "npu_kubernetes_auth": {"kubeconfig": str(lab.controller_kubeconfig)},
        "npu_driver_repository": f"{lab.registry}/{addons.DRIVER_REPOSITORY}",
        "npu_driver_version": addons.DRIVER_VERSION,
        # There are only two versions, between which people try upgrades.
        "npu_upgrade_allow_older": True,
        "npu_registry_username": login.username,
        "npu_registry_password": login.password,
        "npu_registry_plain_http": True,
        "npu_device_plugin_image": _component_image(lab, "device-plugin", "npu_device_plugin_version"),
        "npu_node_agent_image": agent_image.reference(lab),
        "npu_exporter_image": _component_image(lab, "exporter", "npu_exporter_version"),
        **_optional_components(lab),
        "npu_image_pull_secrets": [PULL_SECRET],
    }
    if upstream.version_line_of(lab):
        variables["npu_mindcluster_version_line"] = upstream.version_line_of(lab)
    # The path is install's promise (docs/install.md): it brings that Python.
    python = "      ansible_python_interpreter: /var/lib/npuops/python/current/python3\n"
    hosts = "".join(
        f"    {node.name}:\n      ansible_host: {lab.node_address(node)}\n{'' if node.python else python}" for node in lab.nodes
    )
    settings = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in variables.items())
    head = "---\n# Written by 'lab/lab up'; holds the registry's password.\n"
    return f"{head}npu_nodes:\n  hosts:\n{hosts}  vars:\n{settings}"


def _optional_components(lab: Lab) -> dict[str, object]:
    """Upstream's resources would not fit beside the other components."""
    resources = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    variables: dict[str, object] = {}
    for part, repository in addons.OPTIONAL_REPOSITORIES.items():
        release = "npu_volcano_version" if part.startswith("volcano_") else f"npu_{part}_version"
        variables[f"npu_{part}_image"] = f"{lab.registry}/{repository}:{{{{ {release} }}}}"
        variables[f"npu_{part}_resources"] = resources
    return variables


def _component_image(lab: Lab, name: str, version: str) -> str:
    """The image of a component of MindCluster, in whatever release a play asks for."""
    return f"{lab.registry}/{upstream.repository(lab, name)}:{{{{ {version} }}}}"
