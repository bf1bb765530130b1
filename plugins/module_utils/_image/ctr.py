# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Use images with the host's containerd: pull into a namespace of this collection, mount or run, and free the disk again.

The kubelet's image garbage collection does not see that namespace. Everything in it is temporary: the next run removes what a
killed run left. Credentials reach ctr through a hosts.toml in /run that only root can read and that is always removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import exclusive, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import (
    ImageNotFound,
    RegistryDenied,
    RegistryUnreachable,
)

NAMESPACE = "npuops"
RUN_DIRECTORY = "/run/npuops/staging"

DEFAULT_ADDRESS = host_distributions.PLAIN.address

# Where to look for ctr besides PATH.
_CTR_PATHS = tuple(argv for one in (host_distributions.PLAIN,) + host_distributions.EMBEDDING for argv in one.ctr)

# A lease that is created only to be removed.
_SWEEP = "npuops-sweep"

# Seconds for calls that only read or remove.
_SHORT = 60


class Containerd:
    """containerd at the socket ``address``, used through its own ``ctr`` (a command line as a list, None to search for it).

    ``namespace``: containerd's, which belongs to the caller, as ``run_directory`` does.
    """

    def __init__(self, address=None, ctr=None, run_directory=None, namespace=NAMESPACE):
        self.address = address or DEFAULT_ADDRESS
        self.run_directory = run_directory or RUN_DIRECTORY
        self.hosts = os.path.join(self.run_directory, "hosts")
        self._mount_point = os.path.join(self.run_directory, "image")
        self._ctr = list(ctr) if ctr else _find_ctr()
        self._namespace = namespace

    def open(self):
        """Create the run directory, which only root can enter. Raises NpuError if containerd has no socket."""
        if not os.path.exists(self.address):
            raise NpuError(
                "containerd's socket %s does not exist on this host. Check systemctl status containerd; if containerd uses another "
                "socket, set containerd_address" % self.address
            )
        os.makedirs(self.run_directory, exist_ok=True)
        os.chmod(self.run_directory, 0o700)

    @contextlib.contextmanager
    def session(self, timeout):
        """Exclusive use of the namespace, which is empty at the start and always at the end.

        Waits at most ``timeout`` seconds for another run, then raises NpuError.
        """
        self.open()
        with exclusive(os.path.join(self.run_directory, "lock"), timeout, "pulling a driver image"):
            self.purge()
            try:
                yield self
            except BaseException:
                # The first error matters more; the next run removes what is left.
                with contextlib.suppress(NpuError):
                    self.purge()
                raise
            self.purge()

    def purge(self, timeout=_SHORT):
        """Remove mount, images, leases and credentials, and with them their content and snapshots. ``timeout``: seconds to free
        the disk.
        """
        self.remove_credentials()
        self._unmount()
        images = self._list("images")
        if images:
            self._call(["images", "rm"] + images, _SHORT)
        # Removing a lease with --sync waits for containerd's garbage collection. Without it, a partial or damaged layer would
        # remain, and the next pull would continue with it.
        self._call(["leases", "create", "--id", _SWEEP], _SHORT, check=False)
        self._call(["leases", "rm", "--sync"] + sorted({_SWEEP}.union(self._list("leases"))), timeout)

    def remove_containers(self):
        """End and remove all containers."""
        for name in self._list("containers"):
            # One that has ended has no task. Something else may be removing it too.
            self._call(["tasks", "rm", "--force", name], _SHORT, check=False)
            self._call(["containers", "rm", name], _SHORT, check=False)
        left = self._list("containers")
        if left:
            raise NpuError("containerd did not remove the containers %s" % ", ".join(left))

    def command(self, arguments):
        """The command line of ctr with these arguments."""
        return self._ctr + ["-a", self.address, "-n", self._namespace] + arguments

    def pull_command(self, reference):
        """The command line that pulls ``reference`` with the credentials that were written, and unpacks it."""
        argv = ["images", "pull", "--hosts-dir", self.hosts]
        if "--local" in self._call(["images", "pull", "--help"], _SHORT).stdout:
            # ctr fetches, not the daemon: credentials stay in this process, and the transfer service of containerd 1.7 does not
            # support --hosts-dir.
            argv.append("--local")
        return self.command(argv + [reference])

    def pull(self, name, digest, client, repository, ca_file=None, timeout=1800):
        """Pull ``name@digest`` and unpack it; returns the reference to mount.

        ``client``: the ``RegistryClient`` for the registry of ``repository``. ``timeout``: seconds.
        """
        reference = "%s@%s" % (name, digest)
        argv = self.pull_command(reference)
        for attempt in (1, 2):
            header = client.authorization(repository)
            self.write_credentials(client, header, ca_file)
            try:
                result = host_command.run(argv, timeout, die_with_us=True)
            finally:
                self.remove_credentials()
            if result.rc == 0:
                return reference
            error = explain(result, reference, timeout, secrets=[header])
            # A token may expire during the pull. containerd keeps the layers that it has.
            expired = isinstance(error, RegistryDenied) and (header or "").startswith("Bearer ")
            if attempt == 2 or not expired:
                raise error

    @contextlib.contextmanager
    def mounted(self, reference):
        """Mount the pulled image ``reference`` read-only for the duration of the context; its root directory."""
        os.makedirs(self._mount_point, exist_ok=True)
        self._call(["images", "mount", reference, self._mount_point], 600)
        try:
            yield self._mount_point
        finally:
            self._unmount()

    def _unmount(self):
        if self._mount_point in host_mounts.points():
            result = host_command.run(["umount", self._mount_point], _SHORT)
            if result.rc != 0:
                host_command.run(["umount", "-l", self._mount_point], _SHORT)
        if os.path.isdir(self._mount_point):
            # Not recursive, because the image may still be mounted.
            with contextlib.suppress(OSError):
                os.rmdir(self._mount_point)

    def _list(self, kind):
        return self._call([kind, "ls", "-q"], _SHORT).stdout.split()

    def _call(self, arguments, timeout, check=True):
        result = host_command.run(self.command(arguments), timeout, die_with_us=True)
        if check and result.rc != 0:
            raise explain(result, " ".join(arguments[:2]), timeout)
        return result

    def write_credentials(self, client, header, ca_file):
        """For ``pull_command``: ``header`` is the Authorization header, or None."""
        directory = os.path.join(self.hosts, client.registry)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        write_atomic(os.path.join(directory, "hosts.toml"), hosts_toml(client.base, header, ca_file), 0o600)

    def remove_credentials(self):
        """Those of a pull that has ended, or was killed."""
        if os.path.lexists(self.hosts):
            shutil.rmtree(self.hosts)


def hosts_toml(base, header=None, ca_file=None):
    """The hosts.toml of the registry at the URL ``base``, with the Authorization header to send.

    Source: https://github.com/containerd/containerd/blob/main/docs/hosts.md
    """
    # A JSON string of printable ASCII is a TOML string.
    lines = [
        "server = %s" % json.dumps(base),
        "[host.%s]" % json.dumps(base),
        '  capabilities = ["pull", "resolve"]',
    ]
    if ca_file:
        lines.append("  ca = %s" % json.dumps(ca_file))
    if header:
        lines.append("  [host.%s.header]" % json.dumps(base))
        lines.append("    Authorization = %s" % json.dumps(header))
    return "\n".join(lines) + "\n"


def explain(result, what, timeout, secrets=()):
    """The NpuError for a failed ctr call (``_host.command.Result``), from its last lines of output."""
    text = (result.stderr.strip() or result.stdout.strip())[-2000:]
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***").replace(secret.partition(" ")[2], "***")
    # ctr prints progress first and the error last, with its name as prefix.
    line = " ".join(text.splitlines()[-1].split()) if text else "no output, exit status %s" % result.rc
    line = re.sub(r"^ctr: ", "", line)[-600:]
    low = text.lower()

    def said(*phrases):
        return any(phrase in low for phrase in phrases)

    if result.timed_out:
        return NpuError("containerd did not finish %s within %d seconds" % (what, timeout))
    if said("no space left on device", "disk quota exceeded"):
        return NpuError("The disk of containerd (its root, often /var/lib/containerd) is full: %s" % line)
    if said("pull access denied", "no basic auth credentials", "401 unauthorized", "403 forbidden", "authorization failed"):
        return RegistryDenied("The registry did not let containerd pull %s: %s" % (what, line))
    if said("unexpected commit digest", "failed size validation", "invalid checksum", "mismatched image rootfs") or (
        said("failed to extract layer", "failed to apply", "error unpacking", "unpack") and not said("permission denied")
    ):
        return NpuError(
            "%s is damaged: a layer does not match the manifest, or cannot be unpacked. Push the image again. "
            "containerd reports: %s" % (what, line)
        )
    if said("containerd.sock", "failed to dial") and said("connection refused", "no such file", "permission denied", "deadline"):
        return NpuError("containerd does not respond: %s" % line)
    if said("connection refused", "no such host", "i/o timeout", "no route to host", "network is unreachable", "x509:"):
        return RegistryUnreachable("containerd cannot reach the registry for %s: %s" % (what, line))
    if said(": not found", "404 not found"):
        return ImageNotFound("The registry no longer has %s: %s" % (what, line))
    if said("unexpected eof", "connection reset", "500 internal", "502 bad", "503 service", "504 gateway"):
        return RegistryUnreachable("The registry failed while containerd pulled %s: %s" % (what, line))
    return NpuError("containerd failed (%s): %s" % (what, line))


def _find_ctr():
    found = shutil.which("ctr")
    problem = None
    for argv in (((found,),) if found else ()) + _CTR_PATHS:
        if os.access(argv[0], os.X_OK):
            problem = host_process.unsafe(argv[0])
            if problem is None:
                return list(argv)
    if problem:
        raise NpuError("The only ctr on this host can be changed by users other than root, so it is not run: %s" % problem)
    raise NpuError("This host has no ctr, which is part of containerd: install containerd, or set ctr to its path")
