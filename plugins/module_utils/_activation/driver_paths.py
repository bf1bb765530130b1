# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files and links outside of the driver's directory by which the kernel, programs and people find the driver.

Each function yields Change and Missing of _host.system.
"""

from __future__ import annotations

import functools
import os

from ansible_collections.npuops.ascend.plugins.module_utils._host import system as host_system
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._host.system import Change, Missing
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info

# Programs of the driver that people run on the host; hccn_tool only with chips that have a network.
TOOLS = ("npu-smi", "hccn_tool")


def content_of(path, root):
    """The content of the file ``path`` for a driver below ``root``."""
    if path == "/lib/davinci.conf":
        return "DAVINCI_HOME_PATH=%s\n" % root
    return "".join("%s/driver/%s\n" % (root, lib) for lib in ("lib64/common", "lib64/driver", "lib64"))


def driver_paths(root, fs=""):
    """The files outside of ``root`` with the location of the driver."""
    yield from _file(
        "/lib/davinci.conf",
        content_of("/lib/davinci.conf", root),
        "the kernel modules do not find the files in %s/driver/device, and chips that boot from the host's files instead of their "
        "own flash do not start. Add the file to the OS image" % root,
        fs,
    )
    info = version_info.parse(read_text(fs + "/etc/ascend_install.info") or "")
    info.update(
        UserName=host_system.DRIVER_USER,
        UserGroup=host_system.DRIVER_USER,
        Driver_Install_Type="full",
        Driver_Install_Path_Param=root,
        Driver_Install_For_All="no",
        Driver_Install_Mode="normal",
        Driver_Install_Status="complete",
    )
    yield from _file(
        "/etc/ascend_install.info",
        "".join("%s=%s\n" % item for item in info.items()),
        "npu-smi prints a warning that the driver may not be completely installed",
        fs,
    )


def library_path(root, fs=""):
    """The driver's libraries in the host's loader cache. Apply it when ``root``/driver exists."""
    conf = "/etc/ld.so.conf.d/ascend_driver_so.conf"
    content = content_of(conf, root)
    cost = "programs on the host find the driver's libraries only through LD_LIBRARY_PATH"
    if not os.path.isdir(fs + os.path.dirname(conf)):
        return
    for step in _file(conf, content, cost, fs):
        if isinstance(step, Change):
            yield Change(step.reason, lambda step=step: (step.apply(), host_system.refresh_loader_cache(fs)))
        else:
            yield step


def tool_links(root):
    """{path: target} of the links by which users of the host find the driver's programs.

    Not in /usr/local/sbin: the driver runs npu-smi from there to create virtual NPUs again, which npu-vnpu does.
    """
    return {"/usr/local/bin/" + name: "%s/driver/tools/%s" % (root, name) for name in TOOLS}


def tools(root, tree, fs=""):
    """The links to the programs of the driver in ``tree``. A program that the host has already is not replaced."""
    unlinked = []
    for path, target in tool_links(root).items():
        name = os.path.basename(path)
        if not os.path.exists("%s/tools/%s" % (tree, name)):
            continue
        if any(os.path.lexists("%s/usr/local/%s/%s" % (fs, place, name)) for place in ("bin", "sbin")):
            continue
        if os.access(fs + os.path.dirname(path), os.W_OK):
            yield Change("link %s" % path, functools.partial(os.symlink, target, fs + path))
        else:
            unlinked.append(target)
    if unlinked:
        yield Missing(
            "/usr/local/bin cannot be written (the file system is read-only). Run the driver's programs by their paths: %s"
            % " and ".join(unlinked)
        )


def _file(path, content, cost, fs):
    """The file ``path`` with ``content``; ``cost``: the consequences without it."""
    if read_text(fs + path) == content:
        return
    if not os.access(fs + os.path.dirname(path), os.W_OK):
        yield Missing("%s cannot be written (the file system is read-only). Without it, %s" % (path, cost))
        return
    yield Change("write %s" % path, functools.partial(write_atomic, fs + path, content))
