# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver that a host has: on its disk, in its kernel, and on trial."""

from __future__ import annotations

import os

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_object, read_text
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info

IMAGE_ROOT = "/var/lib/Ascend"

PACKAGE_ROOT = "/usr/local/Ascend"

# Modules that all generations of the driver have.
PROBE_MODULES = ("drv_pcie_host", "drv_pcie_hdc_host")

# Prefixes of the driver's modules, in old and new driver packages.
MODULE_PREFIXES = ("drv_", "asdrv_", "ascend_")


def trial(fs=""):
    """The release that npu-driver-select recorded as the trial of this boot, or None."""
    found = read_object(fs + "/var/lib/npuops/trial") or {}
    return found.get("release") if found.get("boot_id") == host_boot.boot_id(fs) else None


def driver_facts(root=IMAGE_ROOT, source="image", fs=""):
    """The driver as {root, managed, package, tree, version, release, complete, good, next, loaded, loaded_release,
    loaded_version, ready, failed, problem}.

    managed: whether ``driver`` is a link of this collection. complete: whether the release that it points to is complete. package:
    the directory in which a .run package installed a driver, or None. ready, failed: what the boot unit published in this boot, or
    None. problem: why install cannot continue with ``source``, or None.
    """
    layout = Layout(fs + root)
    release = layout.target("driver")
    package = package_root(root, fs)
    if source == "preinstalled":
        root = preinstalled_root(root, fs) or root
    tree = root + "/driver"
    try:
        version = version_info.read(fs + tree)["Version"]
    except NpuError:
        version = None
    modules = kernel_modules.loaded(fs + "/sys/module")
    # A partially loaded driver counts as loaded, because no other driver can replace it in this boot.
    present = [name for name in PROBE_MODULES if name in modules]
    present += sorted(name for name in modules if name.startswith(MODULE_PREFIXES) and name not in present)
    facts = {
        "root": root,
        "managed": release is not None,
        "package": package,
        "tree": tree if version else None,
        "version": version,
        "release": release,
        "complete": release is not None and layout.damage(release) is None,
        "good": layout.target("good"),
        "next": layout.target("next"),
        "loaded": bool(present),
        "loaded_release": (read_text(fs + "/run/npuops/driver-loading") or "").strip() or None if present else None,
        "loaded_version": next((modules[name] for name in present if modules[name]), None),
        "ready": host_boot.read_marker("driver-ready", fs),
        "failed": host_boot.read_marker("driver-failed", fs),
    }
    facts["problem"] = _driver_problem(facts, source, fs)
    return facts


def preinstalled_root(root=IMAGE_ROOT, fs=""):
    """The directory that contains a preinstalled ``driver``; None if there is none."""
    for candidate in (root, IMAGE_ROOT, PACKAGE_ROOT, package_root(root, fs)):
        if candidate and os.path.isfile("%s%s/driver/version.info" % (fs, candidate)):
            return candidate
    return None


def tree(given=None):
    """``given``, or without it the driver tree that this host has, and if it has none, where an image would put it."""
    return (preinstalled_root() or IMAGE_ROOT) + "/driver" if given is None else given


def package_root(root=IMAGE_ROOT, fs=""):
    """The directory in which a .run package installed a driver that still exists, or None. Ignores this collection's ``root``."""
    info = version_info.parse(read_text(fs + "/etc/ascend_install.info") or "")
    path = info.get("Driver_Install_Path_Param", "").rstrip("/")
    for candidate in (path, PACKAGE_ROOT):
        tree = "%s%s/driver" % (fs, candidate)
        # A link of this collection, or a link to its tree, is not a package.
        if candidate and candidate != root and not os.path.islink(tree) and os.path.isfile(tree + "/version.info"):
            if os.path.realpath(tree) != os.path.realpath("%s%s/driver" % (fs, root)):
                return candidate
    return None


def autoloading_module(fs="", kernel=None):
    """The path of a driver module in /lib/modules, which the host loads automatically, or None."""
    top = "/lib/modules/%s" % (kernel or os.uname().release)
    for directory in ("updates", "updates/dkms", "extra", "weak-updates"):
        try:
            names = os.listdir(fs + top + "/" + directory)
        except OSError:
            continue
        for name in names:
            if kernel_modules.is_module(name) and kernel_modules.module_name(name) in PROBE_MODULES:
                return "%s/%s/%s" % (top, directory, name)
    return None


def _driver_problem(facts, source, fs):
    if source == "preinstalled":
        if not facts["tree"]:
            return (
                "npu_driver_source is preinstalled, but neither %s/driver nor %s/driver contains a driver. Install the driver on "
                "the host, or set npu_driver_source to image" % (IMAGE_ROOT, PACKAGE_ROOT)
            )
        return None
    module = autoloading_module(fs)
    if facts["package"] or module:
        return (
            "The driver on this host was installed by a .run package (%s) and is loaded at boot. Migration from a package to "
            "driver images is not supported yet: set npu_driver_source to preinstalled to use the existing driver, or uninstall "
            "the package and reboot the host" % (facts["package"] + "/driver" if facts["package"] else module)
        )
    # If the release is known, this collection loaded the driver before an uninstall, and can activate it again.
    if facts["loaded"] and not facts["managed"] and not facts["loaded_release"]:
        return (
            "The loaded driver%s was not installed by npuops.ascend. Set npu_driver_source to preinstalled to use it, or remove it "
            "and reboot the host" % (" (version %s)" % facts["loaded_version"] if facts["loaded_version"] else "")
        )
    return None
