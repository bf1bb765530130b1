# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates, keys and kubeconfigs of the cluster, and the SSH keys of its nodes. Made once per lab."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from .files import write
from .settings import API_SERVICE_ADDRESS, Lab
from .tasks import Step

DAYS = "3650"


def make_pki(lab: Lab, step: Step) -> None:
    """Everything below <state>/pki, <state>/kubeconfig and the SSH keys; what exists is kept."""
    lab.pki.mkdir(parents=True, exist_ok=True)
    lab.pki.chmod(0o700)
    for authority in ("ca", "front-proxy-ca"):
        _authority(lab.pki, authority, step)
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    _certificate(
        lab.pki,
        "ca",
        "apiserver",
        "/CN=kube-apiserver",
        step,
        [*(f"DNS:{name}" for name in names), f"IP:{lab.address}", f"IP:{API_SERVICE_ADDRESS}"],
    )
    _certificate(lab.pki, "ca", "apiserver-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", step)
    _certificate(lab.pki, "front-proxy-ca", "front-proxy-client", "/CN=front-proxy-client", step)
    _key(lab.pki / "service-account.key", step)
    if not (lab.pki / "service-account.pub").exists():
        public = step.run("openssl", "pkey", "-in", lab.pki / "service-account.key", "-pubout").stdout
        write(lab.pki / "service-account.pub", public)

    _user(lab, "admin", "/O=system:masters/CN=kubernetes-admin", step, lab.kubeconfig)
    for component in ("kube-controller-manager", "kube-scheduler", "kube-proxy"):
        _user(lab, component, f"/CN=system:{component}", step)
    for node in lab.nodes:
        _user(lab, f"kubelet-{node.name}", f"/O=system:nodes/CN=system:node:{node.name}", step)
        _certificate(
            lab.pki,
            "ca",
            f"kubelet-{node.name}-server",
            f"/O=system:nodes/CN=system:node:{node.name}",
            step,
            [f"DNS:{node.name}", f"IP:{lab.node_address(node)}"],
        )
        _ssh_key(lab.pki / f"ssh-host-{node.name}", node.name, step)
    _ssh_key(lab.pki / "ssh", f"{lab.name} controller", step)


def user_kubeconfig(lab: Lab, user: str) -> Path:
    return lab.pki / f"{user}.kubeconfig"


def _key(path: Path, step: Step) -> None:
    if not path.exists():
        text = step.run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", quiet=True).stdout
        write(path, text, mode=0o600)


def _authority(directory: Path, name: str, step: Step) -> None:
    _key(directory / f"{name}.key", step)
    if not (directory / f"{name}.crt").exists():
        text = step.run(
            "openssl",
            "req",
            "-x509",
            "-new",
            "-key",
            directory / f"{name}.key",
            "-subj",
            f"/CN={name}",
            "-days",
            DAYS,
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        ).stdout
        write(directory / f"{name}.crt", text)


def _certificate(
    directory: Path, authority: str, name: str, subject: str, step: Step, alternative_names: Sequence[str] = ()
) -> None:
    """A key and a certificate for it; for a server if it has alternative names, else for a client."""
    _key(directory / f"{name}.key", step)
    if (directory / f"{name}.crt").exists():
        return
    extensions = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature"]
    if alternative_names:
        extensions += ["-addext", f"subjectAltName={','.join(alternative_names)}", "-addext", "extendedKeyUsage=serverAuth"]
    else:
        extensions += ["-addext", "extendedKeyUsage=clientAuth"]
    text = step.run(
        "openssl",
        "req",
        "-x509",
        "-new",
        "-key",
        directory / f"{name}.key",
        "-subj",
        subject,
        "-days",
        DAYS,
        "-CA",
        directory / f"{authority}.crt",
        "-CAkey",
        directory / f"{authority}.key",
        *extensions,
    ).stdout
    write(directory / f"{name}.crt", text)


def _user(lab: Lab, name: str, subject: str, step: Step, kubeconfig: Path | None = None) -> None:
    """A client of the API: certificate and a kubeconfig that holds everything itself."""
    _certificate(lab.pki, "ca", name, subject, step)
    kubeconfig = kubeconfig or user_kubeconfig(lab, name)
    if kubeconfig.exists():
        return
    crt = lab.pki / f"{name}.crt"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": lab.name,
        "clusters": [
            {"name": lab.name, "cluster": {"server": lab.api_url, "certificate-authority-data": _base64(lab.pki / "ca.crt")}}
        ],
        "users": [
            {"name": name, "user": {"client-certificate-data": _base64(crt), "client-key-data": _base64(crt.with_suffix(".key"))}}
        ],
        "contexts": [{"name": lab.name, "context": {"cluster": lab.name, "user": name}}],
    }
    write(kubeconfig, json.dumps(config, indent=2) + "\n", mode=0o600)  # JSON is YAML


def _ssh_key(path: Path, comment: str, step: Step) -> None:
    if not path.with_suffix(".pub").exists():
        path.unlink(missing_ok=True)
        step.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
