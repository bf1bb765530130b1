# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ToolBox image leaves on this host while it is used, and how all of that is removed.

containerd's namespace npuops-acceptance   the image, and the container; staging a driver empties its own namespace only
/run/npuops/acceptance                     credentials, what the pull printed, the script that ends the container, and its FIFOs
/var/lib/npuops/acceptance-image           the name of the image; exists as long as anything else of it may, also after a boot
"""

from __future__ import annotations

import os
import shlex
import shutil

from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import make_directory, remove_file, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._image.ctr import DEFAULT_ADDRESS, Containerd
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime

NAMESPACE = "npuops-acceptance"
UNIT = "npuops-acceptance.service"
MARK = "/var/lib/npuops/acceptance-image"
RUN = "/run/npuops/acceptance"
CONTAINER = "ascend-dmi"

_NO_CRIO = "The kubelet of this host uses CRI-O, but ToolBox images are run by containerd"
_FREE = 150  # seconds to free the disk of an image with CANN
# ctr forwards signals to the container, whose first process may ignore them, and leaves it running when it is killed or, as that of
# 1.7, when containerd is restarted (cmd/ctr/commands/run/run.go and signals.go in containerd/containerd). So systemd runs this when
# the unit has ended, whatever ended it; it has 90 seconds. The output would overwrite the beginning of the unit's log.
_END = """\
exec >/dev/null 2>&1
rm -rf %(hosts)s
for pause in 0 1 2 4 8 16 16 16; do
    sleep "$pause"
    %(ctr)s tasks rm --force %(container)s
    %(ctr)s containers rm %(container)s
    left=$(%(ctr)s containers ls -q) && [ -z "$left" ] && exit 0
done
"""


def access(fs=""):
    """The Containerd to use. Raises NpuError if this host has none."""
    address, ctr = kubelet_runtime.containerd_access(fs, _NO_CRIO)
    address = address or DEFAULT_ADDRESS
    if not os.path.exists(address):
        raise NpuError("ToolBox images are run by containerd, whose socket %s does not exist on this host" % address)
    return Containerd(address, ctr, fs + RUN, NAMESPACE)


def prepare(containerd, image, fs=""):
    """Write what ``clear`` and systemd need to remove everything of ``image``, before there is anything. Raises NpuError."""
    containerd.open()
    make_directory(os.path.dirname(fs + MARK))
    write_atomic(fs + MARK, image + "\n", 0o644)
    ctr = " ".join(map(shlex.quote, containerd.command([])))
    text = _END % {"hosts": shlex.quote(containerd.hosts), "ctr": ctr, "container": CONTAINER}
    write_atomic(end_script(fs), text, 0o600)


def end_script(fs=""):
    """The path of the script that ends the container and removes credentials."""
    return fs + RUN + "/end"


def unit_properties(fs=""):
    """Those of a unit that uses the image: nothing outlives it, nor does it wait for a container that ignores signals."""
    return ["KillSignal=SIGKILL", "TimeoutStopSec=90", "ExecStopPost=-/bin/sh %s" % end_script(fs)]


def exist(fs=""):
    """Whether there may be anything of an image."""
    return os.path.lexists(fs + MARK)


def clear(fs=""):
    """End the unit that uses an image, and remove all that there is of it, if there is anything. Raises NpuError."""
    if not exist(fs):
        return
    transient_unit.stop(UNIT)
    containerd = access(fs)
    containerd.open()
    containerd.remove_containers()
    containerd.purge(_FREE)
    shutil.rmtree(fs + RUN)
    remove_file(fs + MARK)
