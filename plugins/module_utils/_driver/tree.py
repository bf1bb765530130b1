# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver trees (what a .run package installs as /usr/local/Ascend/driver): find one in an image, check that it fits the host."""

from __future__ import annotations

import os
import re
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._driver import kernel_fit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info

# The path of npu-smi inside a tree, and alternative paths in images (relative to their root).
NPU_SMI = "tools/npu-smi"
_NPU_SMI_ELSEWHERE = ("usr/local/sbin/npu-smi", "usr/local/bin/npu-smi")

# The directory of the modules inside a tree, also for modules that an image has outside of its tree.
MODULES = "host"

# The file that the boot script reads, inside the tree.
LOAD_PLAN = "modules.load"

# Huawei's installer ignores errors of these: they are for virtual NPUs, or for devices that not every host has.
OPTIONAL_MODULES = ("drv_vascend", "host_notify", "tc_pcidev", "ascend_dms_mng", "npu_peermem")

# Valid in a line of the load plan.
_MODULE_PATH = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_./+~-]*\Z")

# A driver has some ten modules for each kernel, with some hundred symbols each.
MAX_SYMBOLS = 2**20

# Maximum depth of a driver tree in an image, in directories.
_MAX_DEPTH = 8


class DriverTree:
    """The result of ``inspect``.

    ``path``: the tree; ``version``: from its version.info; ``extra``: dict of paths inside the tree -> files of the image to copy
    there; ``modules``: paths inside the tree of the modules to load, in order; ``plan``: lines for the boot script.
    """

    def __init__(self, path, version, extra, modules, plan):
        self.path = path
        self.version = version
        self.extra = extra
        self.modules = modules
        self.plan = plan


def find(top, path=None):
    """The driver tree below ``top`` (the root of an image).

    ``path``: its path inside the image, for images with more than one. Raises NpuError if there is none, or if there are several
    with different versions.
    """
    if path:
        tree = os.path.normpath(os.path.join(top, path.lstrip("/")))
        if os.path.commonpath([os.path.realpath(top), os.path.realpath(tree)]) != os.path.realpath(top):
            raise NpuError("The path %s leads out of the image" % path)
        if not is_tree(tree):
            raise NpuError("The image has no driver tree at %s (no version.info with lib64 beside it)" % path)
        image_files.check(tree)
        return tree
    found = _trees(top)
    if not found:
        raise NpuError(
            "The image has no driver tree (a directory with version.info and libraries in lib64), so it is not a driver image. "
            "Build one with the playbook npuops.ascend.build_driver_image"
        )
    for tree in found:
        image_files.check(tree)
    versions = {read_version(tree) for tree in found}
    if len(versions) > 1:
        inside = ", ".join(sorted("/" + os.path.relpath(tree, top) for tree in found))
        raise NpuError("The image has several driver trees (%s). Set npu_driver_image_path to one of them" % inside)
    return min(found, key=lambda tree: (tree.count("/"), tree))


def _trees(top):
    """The driver trees in the image at ``top``, without trees inside another tree."""
    found = []
    for inside, dummy in image_files.entries(top):
        directory, name = os.path.split(inside)
        if name != "version.info" or inside.count("/") > _MAX_DEPTH:
            continue
        path = os.path.join(top, directory).rstrip("/")
        # Entries of a directory come before those of its subdirectories.
        if not any(image_files.is_inside(tree, path) for tree in found) and is_tree(path):
            found.append(path)
    return found


def is_tree(path):
    """Whether the directory ``path`` is a driver tree: it has a version.info, and libraries below lib64.

    Ignores links that leave it, and entries that are not files.
    """
    return image_files.is_file(path, os.path.join(path, "version.info")) and any(libraries(path))


def libraries(tree):
    """Sorted paths, relative to ``tree``, of everything in its lib64 that has the name of a shared library."""
    top = os.path.join(tree, "lib64")
    if not os.path.isdir(top) or not image_files.is_inside(os.path.realpath(tree), os.path.realpath(top)):
        return []
    return sorted(
        os.path.join("lib64", inside)
        for inside, info in image_files.entries(top)
        if re.search(r"\.so(\.|\Z)", os.path.basename(inside)) and not stat.S_ISDIR(info.st_mode)
    )


def read_version(tree):
    """The version in version.info of ``tree``, such as "25.5.0"; raises NpuError if there is none."""
    return version_info.read(tree)["Version"]


def another_version(image, found, wanted):
    """The NpuError for an ``image`` that contains another driver than ``wanted``."""
    return NpuError("%s contains driver %s instead of %s: its tag or npu_driver_version is wrong" % (image, found, wanted))


def inspect(top, tree, kernel, machine, version=None, signature_demand=None, symvers=None):
    """Check that the tree at ``tree`` in the image at ``top`` fits the host; returns the ``DriverTree``.

    ``kernel``: ``uname -r`` when the driver is used; ``machine``: ``uname -m``. ``version``: required version, None for any.
    ``signature_demand``: why the host's kernel requires signed modules, or None. ``symvers``: the Symvers of that kernel, or None.
    Raises NpuError if the tree does not fit.
    """
    # After this check, everything that is opened in the tree is a file inside the tree.
    image_files.check(tree)
    found_version = read_version(tree)
    if version and found_version != version:
        raise another_version("The image", found_version, version)
    extra = {}
    _check_programs(top, tree, machine, extra)
    modules = _modules_for(top, tree, kernel, symvers)
    for module in modules.values():
        if module.machine != machine:
            raise NpuError("Kernel module %s is for %s, but this host is %s" % (module.name, module.machine, machine))
    unsigned = sorted(module.name for module in modules.values() if not module.signed)
    if signature_demand and unsigned:
        raise NpuError(
            "This host loads only signed kernel modules (%s), but these are not signed: %s. Sign them with a key that the host "
            "trusts, and build the image again" % (signature_demand, ", ".join(unsigned))
        )
    for path, module in modules.items():
        if os.path.join(tree, path) != module.path:
            extra[path] = module.path
    ordered, plan = load_plan(modules)
    if symvers is not None:
        kernel_fit.check([modules[path] for path in ordered], plan, symvers)
    return DriverTree(tree, found_version, extra, ordered, plan)


def check_staged(tree, symvers):
    """``kernel_fit.check`` for the tree of a staged release."""
    plan = (image_files.read_text(os.path.join(tree, LOAD_PLAN)) or "").splitlines()
    paths = [line.split(" ")[1] for line in plan if line.startswith("insmod ")]
    kernel_fit.check([kernel_modules.Module(os.path.join(tree, path)) for path in paths], plan, symvers)


def _check_programs(top, tree, machine, extra):
    """Check that npu-smi and all libraries are ELF files for ``machine``."""
    source = os.path.join(tree, NPU_SMI)
    if not os.path.isfile(source):
        outside = [os.path.join(top, path) for path in _NPU_SMI_ELSEWHERE]
        source = next((path for path in outside if image_files.is_file(top, path) and not os.path.islink(path)), "")
        if not source:
            raise NpuError("The driver tree has no %s" % NPU_SMI)
        extra[NPU_SMI] = source
    for path in [source] + [os.path.join(tree, name) for name in libraries(tree)]:
        if os.path.islink(path):
            continue
        found = kernel_modules.elf_machine(image_files.head(path, 20))
        if found is None and path != source and os.path.getsize(path) < 4096:
            # A linker script instead of a library.
            continue
        name = os.path.basename(path)
        if found is None:
            raise NpuError("%s in the image is not an ELF file: the image is damaged" % name)
        if found != machine:
            raise NpuError("%s in the image is for %s, but this host is %s" % (name, found, machine))


def _modules_for(top, tree, kernel, symvers):
    """Path inside the tree -> Module, for the modules for ``kernel`` that a host without virtual NPUs loads.

    If there are none, those for another kernel that ``kernel`` also loads. Modules in the rest of the image are used only if the
    tree has none.
    """
    files = module_files(tree) or module_files(top)
    if not files:
        raise NpuError("The image has no kernel modules (*.ko)%s" % _packed_otherwise(top))
    normal = normal_modules(tree)
    by_kernel = {}
    symbols = 0
    for path in files:
        module = kernel_modules.Module(path)
        symbols += len(module.versions) + len(module.exports)
        if symbols > MAX_SYMBOLS:
            raise NpuError("The kernel modules in the image have more than %d symbols: it is not a driver image" % MAX_SYMBOLS)
        by_name = by_kernel.setdefault(module.kernel, {})
        if normal is None or module.name in normal:
            by_name.setdefault(module.name, []).append(module)
    by_name = kernel_fit.choose(by_kernel, kernel, symvers, OPTIONAL_MODULES)
    modules = {}
    for name in sorted(by_name):
        # The same module may also exist for virtual machines, in vnpu_host and vnpu_guest. The one in host is the normal one.
        module = min(by_name[name], key=lambda one: (os.path.basename(os.path.dirname(one.path)) != MODULES, one.path))
        inside = os.path.relpath(module.path, tree)
        if inside.startswith(".."):
            inside = os.path.join(MODULES, os.path.basename(module.path))
        modules[inside] = module
    if not modules:
        raise NpuError("All kernel modules in the image are for virtual NPUs, which are not supported")
    return modules


def module_files(top):
    """All kernel module files below ``top``, sorted, without links. Raises NpuError for other entries with the name of a module."""
    found = []
    for inside, info in image_files.entries(top):
        if kernel_modules.is_module(inside) and not stat.S_ISLNK(info.st_mode) and not stat.S_ISDIR(info.st_mode):
            if not stat.S_ISREG(info.st_mode):
                told = image_files.kind(info.st_mode)
                raise NpuError("%s in the image is %s, not a kernel module" % (printable(inside), told))
            found.append(os.path.join(top, inside))
    return sorted(found)


def _packed_otherwise(top):
    """The rest of the message if there are modules in an unsupported format."""
    names = [inside for inside, dummy in image_files.entries(top) if inside.endswith(kernel_modules.UNREADABLE_SUFFIX)]
    if not names:
        return ""
    told = printable(names[0])
    return ". It has %s, whose zstd compression is not supported: build the image with .ko or .ko.xz files" % told


def normal_modules(tree):
    """Names of the modules that a host without virtual NPUs loads, or None if the tree does not list them.

    Packages have the list in a shell variable: mode_normal="a|b|c".
    """
    text = image_files.read_text(os.path.join(tree, "script", "specific_func.inc")) or ""
    line = re.search(r'^mode_normal="([^"]*)"', text, re.MULTILINE)
    return set(line.group(1).split("|")) if line else None


def load_plan(modules):
    """(paths in load order, lines of modules.load) for a dict path -> Module.

    A line is ``modprobe NAME WEIGHT`` or ``insmod PATH WEIGHT``; WEIGHT is ``required`` or ``optional``. A module of the kernel
    itself that only optional modules need is also optional.
    """
    for path in modules:
        if not _MODULE_PATH.match(path):
            raise NpuError("Kernel module %s: its path is not valid for a module" % printable(path))
    dummy, ordered = kernel_modules.order({path: module.depends for path, module in modules.items()})
    own = {module.name for module in modules.values()}
    needed = {name for module in modules.values() for name in module.depends}
    weights = {}
    for path in ordered:
        name = modules[path].name
        optional = name in OPTIONAL_MODULES and name not in needed
        weights[path] = "optional" if optional else "required"
    foreign = {}
    for path in ordered:
        for name in modules[path].depends:
            if name not in own and foreign.get(name) != "required":
                foreign[name] = weights[path]
    plan = ["modprobe %s %s" % (name, foreign[name]) for name in sorted(foreign)]
    plan.extend("insmod %s %s" % (path, weights[path]) for path in ordered)
    return ordered, plan
