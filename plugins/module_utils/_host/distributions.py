# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes distributions that bring their own containerd, and where each keeps what we need.

                 recognized by a running        socket of containerd                     containerd's configuration comes from
    k3s          k3s, k3s-agent                 /run/k3s/containerd/containerd.sock      config.toml.tmpl beside it
    rke2         rke2-server, rke2-agent        the same                                 the same
    k0s          k0sworker, k0scontroller       /run/k0s/containerd.sock                 drop-ins in /etc/k0s/containerd.d
    microk8s     ...microk8s.daemon-kubelite    .../microk8s/common/run/containerd.sock  containerd-template.toml beside it
    containerd   kubelet                        /run/containerd/containerd.sock          the administrator

The last row is kubeadm, and everything else with a kubelet and a containerd of their own. Paths are the defaults: what the
processes say on their command lines takes precedence.

Sources: pkg/agent and install.sh in k3s-io/k3s; bundle/ and pkg/ in rancher/rke2; pkg/constant and pkg/component/worker in
k0sproject/k0s; microk8s-resources/ and snap/ in canonical/microk8s.
"""

from __future__ import annotations

from collections import namedtuple

Distribution = namedtuple(
    "Distribution",
    [
        "name",
        "title",  # its name for people
        "units",  # those whose main process is, contains or starts the kubelet
        "address",  # containerd's socket
        "mark",  # what the path of a socket of this distribution contains
        "config",  # containerd's configuration file
        "binaries",  # the directory with containerd
        "ctr",  # how to call ctr: command lines, the best first
        "storage",  # containerd's directory for images
        # The kubelet's --root-dir, where its socket for the resources of pods is. That of device plugins is in /var/lib/kubelet
        # with every kubelet: pkg/kubelet/cm/devicemanager in kubernetes/kubernetes.
        "kubelet_dir",
        "restart_seconds",  # how long a restart of the unit of containerd may take
    ],
)

K3S = Distribution(
    "k3s",
    "k3s",
    ("k3s.service", "k3s-agent.service"),
    "/run/k3s/containerd/containerd.sock",
    "/k3s/",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/data/current/bin",
    (("/var/lib/rancher/k3s/data/current/bin/ctr",), ("/usr/local/bin/k3s", "ctr")),
    "/var/lib/rancher/k3s/agent/containerd",
    "/var/lib/kubelet",
    120,
)
RKE2 = Distribution(
    "rke2",
    "RKE2",
    ("rke2-server.service", "rke2-agent.service"),
    "/run/k3s/containerd/containerd.sock",
    "/k3s/",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/bin",
    (("/var/lib/rancher/rke2/bin/ctr",),),
    "/var/lib/rancher/rke2/agent/containerd",
    "/var/lib/kubelet",
    300,
)
K0S = Distribution(
    "k0s",
    "k0s",
    ("k0scontroller.service", "k0sworker.service"),
    "/run/k0s/containerd.sock",
    "/k0s/",
    "/etc/k0s/containerd.toml",
    "/var/lib/k0s/bin",
    (("/usr/local/bin/k0s", "ctr"), ("/usr/bin/k0s", "ctr")),
    "/var/lib/k0s/containerd",
    "/var/lib/k0s/kubelet",
    120,
)
MICROK8S = Distribution(
    "microk8s",
    "MicroK8s",
    ("snap.microk8s.daemon-kubelite.service",),
    "/var/snap/microk8s/common/run/containerd.sock",
    "/microk8s/",
    "/var/snap/microk8s/current/args/containerd.toml",
    "/snap/microk8s/current/bin",
    (("/snap/microk8s/current/bin/ctr",),),
    "/var/snap/microk8s/common/var/lib/containerd",
    "/var/snap/microk8s/common/var/lib/kubelet",
    60,
)
PLAIN = Distribution(
    "containerd",
    "Kubernetes with kubelet.service",
    ("kubelet.service",),
    "/run/containerd/containerd.sock",
    "/containerd",
    "/etc/containerd/config.toml",
    "/usr/bin",
    (("/usr/local/bin/ctr",), ("/usr/bin/ctr",), ("/opt/containerd/bin/ctr",)),
    "/var/lib/containerd",
    "/var/lib/kubelet",
    0,
)

# Those whose units embed or start the kubelet. PLAIN is last, because every other mark may also match it.
EMBEDDING = (K3S, RKE2, K0S, MICROK8S)
DISTRIBUTIONS = EMBEDDING + (PLAIN,)
# Where a containerd may keep images; a host has few of them.
STORAGE = tuple(one.storage for one in DISTRIBUTIONS)

# Units that also run the API server, and often etcd.
_SERVER_UNITS = ("k3s.service", "rke2-server.service", "k0scontroller.service")


def named(name):
    """The Distribution with this name, or None."""
    return next((one for one in DISTRIBUTIONS if one.name == name), None)


def of_address(address):
    """The Distribution to which the socket ``address`` belongs. K3S may also be RKE2, which uses the same path."""
    return next((one for one in DISTRIBUTIONS if one.mark in address), PLAIN)


def of_units(units):
    """{Distribution: its first unit} of the running ``units``."""
    found = {}
    for one in DISTRIBUTIONS:
        for unit in one.units:
            if unit in units:
                found.setdefault(one, unit)
    return found


def conflict(running):
    """Why it is not clear which containerd to configure, as a sentence; None if it is. ``running``: result of ``of_units``."""
    if len(running) < 2:
        return None
    return (
        "The kubelets of several Kubernetes distributions run on this host: %s. npuops.ascend configures the containerd of one. "
        "Stop and disable those that are not part of this cluster, then run again"
        % " and ".join("%s (%s)" % (one.title, unit) for one, unit in running.items())
    )


def restarts_control_plane(unit):
    """Whether a restart of the systemd unit ``unit`` also restarts parts of the control plane."""
    return unit in _SERVER_UNITS
