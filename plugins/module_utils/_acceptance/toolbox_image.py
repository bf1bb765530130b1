# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's ToolBox in an image: pulled with the host's containerd in one unit of systemd, and run by it in the next one.

Two units, not one: whether the chips are free is looked at when they are to be loaded, which is long after the pull began; each has
its own time limit; and a pull whose token has expired can go on with a fresh one.
"""

from __future__ import annotations

import csv
import io
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import ascend_dmi, image_traces
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec, containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_untrusted, remove_file
from ansible_collections.npuops.ascend.plugins.module_utils._image.ctr import explain
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient

LIMIT = 3600  # seconds for a pull: with CANN, it has 10 GB
ADVICE = (
    "Repair that, or install MindCluster's ToolBox on the host and leave npu_accept_toolbox_image out for it. Then run accept again"
)

_BUDGET = 45  # seconds for the questions to the registry, each time
_LOG = "/pull.log"
_MOST_OUTPUT = 64 * 1024
# A layer exists compressed and unpacked, which is about twice its size.
_SPACE_FACTOR = 3
_CREDENTIALS = re.compile(r"\b(?:Basic|Bearer) [\w.~+/=-]{8,}", re.IGNORECASE)
# ctr prints its progress to the output ten times a second, and errors elsewhere.
_PULL = 'hosts=$1; shift; "$@" >/dev/null; status=$?; rm -rf "$hosts"; exit "$status"'
# What containers with ToolBox get besides what pods get, if the host has it (hiascend.com, MindCluster 6.0.0, 7.3.0 and 26.1.0,
# ToolBox User Guide, "Use in Containers").
_MOUNTS = ("/usr/local/Ascend/firmware", "/usr/local/Ascend/version.info")


class ToolboxImage:
    """The image ``image`` (a reference); ``mirror``: the setting npu_registry_mirror; ``options``: of RegistryClient."""

    def __init__(self, image, mirror=None, fs="", **options):
        self._image, self._mirror, self._fs, self._options = image, mirror, fs, options

    def find(self):
        """What to pull on this host, as NAME@DIGEST, after all checks that need no pull. Raises NpuError."""
        containerd = image_traces.access(self._fs)
        reference = parse_reference(mirrored(self._image, self._mirror))
        client = self._client(reference)
        found, manifest = client.image(reference.repository, reference.digest or reference.tag, os.uname().machine)
        _check_space(sum(layer["size"] for layer in manifest["layers"]), containerd.address, self._fs)
        return "%s@%s" % (reference.name, found.digest)

    def pull(self, name):
        """Begin to pull ``name``, of ``find``, or go on. Raises NpuError."""
        reference, fs = parse_reference(name), self._fs
        client = self._client(reference)
        header = client.authorization(reference.repository)
        containerd = image_traces.access(fs)
        image_traces.prepare(containerd, name, fs)
        argv = ["/bin/sh", "-c", _PULL, "sh", containerd.hosts, *containerd.pull_command(name)]
        containerd.write_credentials(client, header, self._options.get("ca_file"))
        log, properties = fs + image_traces.RUN + _LOG, image_traces.unit_properties(fs)
        # systemd would overwrite the beginning of that of an earlier pull.
        if os.path.lexists(log):
            remove_file(log)
        result = transient_unit.start(image_traces.UNIT, "Pull the ToolBox of an acceptance", log, LIMIT, argv, properties)
        if result.rc != 0:
            containerd.remove_credentials()
            raise NpuError("The pull of %s was not started: systemd-run: %s" % (name, result.text or "no response within 20 s"))

    @property
    def secrets(self):
        """What no message may have, each after a word, as in the Authorization header."""
        password = self._options.get("password")
        return ["password " + password] if password else []

    def _client(self, reference):
        return RegistryClient(reference.registry, budget=_BUDGET, **self._options)


def failure(end, name, secrets=(), fs=""):
    """The NpuError for the pull of ``name`` that has come to the End ``end``; None if it has succeeded.

    ``secrets``: of the ToolboxImage, if it is known.
    """
    if end.code == 0:
        return None
    if end.code is None and not end.timed_out:
        return NpuError("The pull of %s ended in an unknown way (%s is %s)" % (name, image_traces.UNIT, end.active))
    try:
        text = (read_untrusted(fs + image_traces.RUN + _LOG, _MOST_OUTPUT) or b"").decode("utf-8", "replace")
    except OSError as exc:
        text = "its output cannot be read: %s" % exc
    text = "\n".join(printable(line, _MOST_OUTPUT) for line in text.splitlines())
    result = host_command.Result(None if end.timed_out else end.code, "", text)
    # A registry may repeat what it was sent.
    return explain(result, name, LIMIT, [*secrets, *_CREDENTIALS.findall(text)])


def run_command(name, toolbox, level, root, fs=""):
    """The command line that runs the diagnosis of ``level`` in a container of the image ``name``.

    ``toolbox``: the directory of ToolBox in the image; ``root``: the directory of the host that contains ``driver``. Raises
    NpuError.
    """
    mounts = cdi_spec.mounts(root, fs) + [(path, path) for path in _MOUNTS if os.path.exists(fs + path)]
    options = ["--rm", "--privileged", "--net-host", "--user", "0:0", "--cwd", "/", "--fifo-dir", fs + image_traces.RUN + "/fifo"]
    for source, target in mounts:
        options += ["--mount", _mount(source, target)]
    inside = ascend_dmi.command_in_image(toolbox, level, cdi_spec.LIBRARY_PATH)
    return image_traces.access(fs).command(["run", *options, name, image_traces.CONTAINER, *inside])


def _mount(source, target):
    """The value of ctr's option --mount, which is a line of CSV."""
    stream = io.StringIO()
    options = "options=" + ":".join(cdi_spec.MOUNT_OPTIONS)
    csv.writer(stream).writerow(["type=bind", "source=" + source, "destination=" + target, options])
    return stream.getvalue()[: -len("\r\n")]


def _check_space(size, address, fs):
    """Raise NpuError if containerd's disk has no space for an image with layers of ``size`` bytes."""
    needed = size * _SPACE_FACTOR
    for directory in containerd_runtime.image_places(address, fs):
        free = host_mounts.free_bytes(fs + directory)
        if free < needed:
            raise NpuError(
                "Not enough space in %s: %d MiB are free, but the ToolBox image needs %d MiB (layers of %d MiB, and unpacked)"
                % (directory, free // 2**20, -(-needed // 2**20), -(-size // 2**20))
            )
