# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huawei's driver packages (.run): extract one, and create the same tree that its installer creates on a host.

Like the installer, this module treats the files of a package as follows:

    driver/               becomes the tree; filelist.csv lists the files that are moved within it
    version.info          is beside driver/ and is moved into it
    device/               images for the chip are renamed (src_names, dst_names in script/specific_func.inc)
    host/                 kernel modules; those for virtual machines are omitted (mode_normal, same file)
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import shutil

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._driver import kernel_fit
from ansible_collections.npuops.ascend.plugins.module_utils._driver import profile as driver_profile
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

# Files that the installer moves, for packages without a filelist.csv.
_KNOWN_PLACES = {"driver/lib64/libdcmi.so": "driver/lib64/driver/libdcmi.so"}

# Seconds. Extracting several hundred MB is slow on a slow disk.
_EXTRACT_TIMEOUT = 1800


def extract(package, workdir, sha256=None):
    """The directory with the content of ``package`` (a .run file, or a directory with its extracted content).

    ``sha256``: required checksum of the file, None for any. Raises NpuError.
    """
    if os.path.isdir(package):
        if sha256:
            raise NpuError(
                "%s is a directory, whose SHA-256 cannot be verified: unset the checksum, or use the .run file" % package
            )
        return package
    if not os.path.isfile(package):
        raise NpuError("The package %s does not exist" % package)
    if sha256:
        found = _sha256(package)
        if found != sha256.lower():
            raise NpuError("%s has the SHA-256 %s instead of %s: it is a different file, or damaged" % (package, found, sha256))
    target = os.path.join(workdir, "package")
    os.makedirs(workdir, exist_ok=True)
    shell = shutil.which("bash") or "sh"
    # Huawei's option first, then that of makeself, which rejects the former.
    for place in (["--extract=%s" % target], ["--target", target]):
        argv = [shell, package, "--noexec", "--nox11"] + place
        result = host_command.run(argv, _EXTRACT_TIMEOUT, die_with_us=True)
        if result.rc == 0 or result.timed_out:
            break
    if result.timed_out:
        raise NpuError("%s was not extracted within %d seconds" % (package, _EXTRACT_TIMEOUT))
    if result.rc != 0 or not os.path.isdir(target):
        raise NpuError(
            "%s cannot be extracted (exit status %s): %s"
            % (package, result.rc, " ".join(result.text.split())[-500:] or "no output")
        )
    return target


def assemble(package, target, wanted, modules_directory=None, move=False, symvers=None):
    """Create the driver tree of the extracted ``package`` at ``target`` (new); returns the kernel of its modules.

    ``wanted``: ``uname -r`` of the hosts, or the kernel in image profiles, or a complete profile ``<chip>-<kernel>-<os>``.
    ``modules_directory``: additional modules (from ``--repack``), which take precedence over those in the package.
    ``move``: whether to move the files, which must be on the same file system, instead of copying them.
    ``symvers``: the Symvers of the kernel ``wanted``; without modules for that, those for another one that it loads are used.
    """
    source = _source(package)
    outside = _modules_outside(package, source)
    if move and source != package:
        os.rename(source, target)
    else:
        # The modes are set later.
        shutil.copytree(source, target, symlinks=True)
    _make_writable(target)
    version_info = os.path.join(target, "version.info")
    if not os.path.isfile(version_info):
        outer = os.path.join(os.path.dirname(source), "version.info")
        if not os.path.isfile(outer):
            raise NpuError("The package %s has no version.info" % package)
        shutil.copy(outer, version_info)
    _place(package, target)
    _rename_device_images(target)
    if not driver_tree.is_tree(target):
        raise NpuError("The package %s has no libraries in driver/lib64: it is not a driver package" % package)
    _set_modes(target)
    return _choose_modules(outside, target, wanted, modules_directory, symvers)


def kernel_fits(kernel, wanted):
    """Whether ``kernel`` (a vermagic) matches ``wanted`` (see ``assemble``)."""
    word = driver_profile.kernel_and_os(kernel, {})[0]
    return wanted in (kernel, word) or "-%s-" % word in wanted


def machine_of(tree):
    """``uname -m`` of the hosts that ``tree`` is for, from its npu-smi or its first library."""
    for path in [driver_tree.NPU_SMI] + driver_tree.libraries(tree):
        try:
            with open(os.path.join(tree, path), "rb") as stream:
                machine = kernel_modules.elf_machine(stream.read(20))
        except OSError:
            continue
        if machine:
            return machine
    raise NpuError("Neither npu-smi nor any library in the driver tree is an ELF file: the package is damaged")


def _source(package):
    """The directory of ``package`` that becomes the tree."""
    for directory in (os.path.join(package, "driver"), package):
        if os.path.isdir(os.path.join(directory, "lib64")):
            return directory
    raise NpuError("%s has no driver/lib64: it is not an (extracted) driver package" % package)


def _place(package, target):
    """Move the files that the installer moves within the tree."""
    for here, there in _places(package, target):
        old, new = (os.path.normpath(os.path.join(target, os.path.relpath(path, "driver"))) for path in (here, there))
        inside = all(path.startswith(target + "/") for path in (old, new))
        if inside and old != new and os.path.isfile(old) and not os.path.lexists(new):
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.rename(old, new)


def _places(package, target):
    """(path in the package, path after installation) of files according to filelist.csv; both start with driver/."""
    files = (os.path.join(target, "script", "filelist.csv"), os.path.join(package, "filelist.csv"))
    text = next((text for text in map(read_text, files) if text), None)
    if text is None:
        return sorted(_KNOWN_PLACES.items())
    places = []
    for row in csv.DictReader(text.splitlines()):
        here, there = row.get("relative_path_in_pkg") or "", row.get("relative_install_path") or ""
        copied = row.get("operation") in ("copy", "copy_entity", "move")
        if copied and here.startswith("driver/") and there.startswith("driver/"):
            places.append((here, there))
    return places


def _rename_device_images(target):
    text = read_text(os.path.join(target, "script", "specific_func.inc")) or ""
    names = {}
    for variable in ("src_names", "dst_names"):
        match = re.search(r"^%s=\(([^)]*)\)" % variable, text, re.MULTILINE)
        names[variable] = match.group(1).split() if match else []
    for old, new in zip(names["src_names"], names["dst_names"]):
        old, new = (os.path.join(target, "device", os.path.basename(name)) for name in (old, new))
        if os.path.isfile(old) and not os.path.lexists(new):
            os.rename(old, new)


def _make_writable(top):
    """Packages have directories without write permission for their owner, which only root could change."""
    for directory, dummy, dummy2 in os.walk(top):
        os.chmod(directory, 0o755)


def _set_modes(target):
    """Make libraries, npu-smi and version.info readable by all; other files keep the modes of the package."""
    public = [driver_tree.NPU_SMI, "version.info"] + driver_tree.libraries(target)
    for path in public:
        path = os.path.join(target, path)
        if os.path.isfile(path) and not os.path.islink(path):
            os.chmod(path, 0o555 if path.endswith("npu-smi") else 0o444)


def _modules_outside(package, source):
    """The module files of the package that are not below ``source``."""
    if os.path.realpath(package) == os.path.realpath(source):
        return []
    return [path for path in driver_tree.module_files(package) if not path.startswith(source + "/")]


def _choose_modules(outside, target, wanted, modules_directory, symvers):
    """Keep only the modules for the wanted kernel in ``target``, all in host/; returns the kernel that they are for."""
    packaged = driver_tree.module_files(target)
    given = []
    if modules_directory:
        if not os.path.isdir(modules_directory):
            raise NpuError("The directory %s of the option modules does not exist" % modules_directory)
        given = driver_tree.module_files(modules_directory)
    normal = driver_tree.normal_modules(target)
    chosen = {}
    by_kernel = {}
    symbols = 0
    for path in given + sorted(packaged, key=_plain_first) + outside:
        module = kernel_modules.Module(path)
        by_name = by_kernel.setdefault(module.kernel, {})
        if normal is not None and module.name not in normal:
            continue
        if kernel_fits(module.kernel, wanted):
            chosen.setdefault(module.name, module)
        elif symvers is not None and symbols <= driver_tree.MAX_SYMBOLS:
            # The first one counts, as of those that fit.
            by_name.setdefault(module.name, [module])
            symbols += len(module.versions) + len(module.exports)
    kernels = sorted(by_kernel)
    if not chosen and symvers is not None and by_kernel:
        if symbols > driver_tree.MAX_SYMBOLS:
            raise NpuError("The kernel modules have more than %d symbols: it is not a driver package" % driver_tree.MAX_SYMBOLS)
        chosen = {
            name: modules[0]
            for name, modules in kernel_fit.choose(by_kernel, wanted, symvers, driver_tree.OPTIONAL_MODULES).items()
        }
    found = sorted({module.kernel for module in chosen.values()})
    if not found:
        raise NpuError(
            "There are no kernel modules for %s: the package%s %s. Build them with the package's option --repack on a host with "
            "that kernel, and set modules to their directory"
            % (
                wanted,
                " and %s" % modules_directory if modules_directory else "",
                "has modules for " + ", ".join(kernels) if kernels else "has none",
            ),
            kernels=kernels,
        )
    if len(found) > 1:
        raise NpuError(
            "Modules for several kernels match %s: %s. Set kernel to the full kernel release" % (wanted, ", ".join(found))
        )
    host = os.path.join(target, driver_tree.MODULES)
    os.makedirs(host, exist_ok=True)
    kept = set()
    for module in chosen.values():
        place = os.path.join(host, os.path.basename(module.path))
        if module.path != place:
            shutil.copyfile(module.path, place)
        os.chmod(place, 0o440)
        kept.add(place)
    for path in packaged:
        if path not in kept:
            os.unlink(path)
    return found[0]


def _plain_first(path):
    """Sort key: packages may have the same module in vnpu_host and vnpu_guest, for virtual NPUs."""
    return (os.path.basename(os.path.dirname(path)) != driver_tree.MODULES, path)


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1024 * 1024), b""):
            digest.update(block)
    return digest.hexdigest()
