# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd, API server, controller manager and scheduler: plain processes on the machine, bound to the lab's addresses."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

from . import binaries, daemons
from .pki import user_kubeconfig
from .settings import LAB_SOURCE, SERVICE_RANGE, Lab, LabError
from .tasks import Step

AUDIT_POLICY = LAB_SOURCE / "files" / "audit-policy.yaml"
READY_TIMEOUT = 90


def start_control_plane(lab: Lab, step: Step) -> None:
    """Start what does not run yet and wait until the API server says it is ready."""
    programs = binaries.programs(lab, binaries.kubernetes(lab))
    etcd, peer = f"http://{lab.loopback}:2379", f"http://{lab.loopback}:2380"
    daemons.start(
        lab,
        step,
        "etcd",
        programs / "etcd",
        f"--data-dir={lab.state / 'etcd'}",
        "--name=lab",
        f"--listen-client-urls={etcd}",
        f"--advertise-client-urls={etcd}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    pki = lab.pki
    daemons.start(
        lab,
        step,
        "kube-apiserver",
        programs / "kube-apiserver",
        f"--etcd-servers={etcd}",
        f"--bind-address={lab.address}",
        f"--advertise-address={lab.address}",
        "--secure-port=6443",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki / 'service-account.pub'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
        f"--audit-policy-file={AUDIT_POLICY}",
        f"--audit-log-path={lab.logs / 'audit.log'}",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=2",
        "--profiling=false",
    )
    step.wait_for("the API server", lambda: _api_ready(lab), READY_TIMEOUT)
    for name, flags in (
        (
            "kube-controller-manager",
            (
                f"--root-ca-file={pki / 'ca.crt'}",
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={pki / 'service-account.key'}",
                f"--cluster-signing-cert-file={pki / 'ca.crt'}",
                f"--cluster-signing-key-file={pki / 'ca.key'}",
            ),
        ),
        ("kube-scheduler", ()),
    ):
        kubeconfig = user_kubeconfig(lab, name)
        daemons.start(
            lab,
            step,
            name,
            programs / name,
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--bind-address={lab.address}",
            "--leader-elect=false",
            "--profiling=false",
            *flags,
        )


def _api_ready(lab: Lab) -> bool:
    if "kube-apiserver" not in daemons.running(lab):
        raise LabError(f"kube-apiserver does not run; see {lab.logs / 'kube-apiserver.log'}")
    context = ssl.create_default_context(cafile=str(lab.pki / "ca.crt"))
    try:
        with urllib.request.urlopen(f"{lab.api_url}/readyz", context=context, timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
