# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver trees and images for tests: real ELF files written by hand, real layers, no compiler."""

from __future__ import annotations

import json
import os
import struct

from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests, oci

KERNEL = "6.6.0-145.0.4.135.oe2403sp3.x86_64"
MACHINES = {"x86_64": 62, "aarch64": 183}
SIGNATURE = b"\0" * 40 + b"~Module signature appended~\n"


def elf(sections=(), machine=None, bits=64, byte_order="<"):
    """An ELF file with the given (name, content) sections."""
    number = MACHINES[machine or os.uname().machine]
    names = b"\0" + b"".join(name.encode("ascii") + b"\0" for name, dummy in sections) + b".shstrtab\0"
    header_size, entry_size = (64, 64) if bits == 64 else (52, 40)
    body = b""
    entries = [(0, 0, 0)]
    position = 1
    for name, content in list(sections) + [(".shstrtab", names)]:
        entries.append((position, header_size + len(body), len(content)))
        position += len(name) + 1
        body += content
    table = header_size + len(body)
    count = len(entries)
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1 if byte_order == "<" else 2, 1]) + b"\0" * 9
    if bits == 64:
        header = struct.pack(byte_order + "HHIQQQIHHHHHH", 1, number, 1, 0, 0, table, 0, 64, 0, 0, entry_size, count, count - 1)
        rows = [struct.pack(byte_order + "IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in entries]
    else:
        header = struct.pack(byte_order + "HHIIIIIHHHHHH", 1, number, 1, 0, 0, table, 0, 52, 0, 0, entry_size, count, count - 1)
        rows = [struct.pack(byte_order + "IIIIIIIIII", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in entries]
    return ident + header + body + b"".join(rows)


def module(
    kernel=KERNEL,
    depends="",
    version="25.5.0",
    machine=None,
    signed=False,
    srcversion="0",
    versions=None,
    extended=False,
    linked=False,
    exports=(),
    flags="SMP preempt mod_unload modversions",
    **more,
):
    """The bytes of a kernel module.

    ``versions``: symbol -> CRC, ``extended``: in the sections of Linux 6.14; ``linked``: in the entries of Ubuntu's kernels
    since 6.2; ``exports``: symbols; ``flags``: in the vermagic; ``more``: as for ``elf``.
    """
    info = [("license", "GPL"), ("version", version), ("srcversion", srcversion), ("depends", depends)]
    info += [("vermagic", "%s %s " % (kernel, flags))] if kernel else []
    content = b"\0".join(("%s=%s" % pair).encode("ascii") for pair in info) + b"\0"
    sections = [(".text", b"\x90" * 32), (".modinfo", content)]
    if exports:
        sections.append(("__ksymtab_strings", "".join(name + "\0" for name in exports).encode("ascii")))
    order, long_and_name = more.get("byte_order", "<"), "Q56s" if more.get("bits", 64) == 64 else "I60s"
    if versions and extended:
        sections.append(("__version_ext_crcs", struct.pack("%s%dI" % (order, len(versions)), *versions.values())))
        sections.append(("__version_ext_names", "".join(name + "\0" for name in versions).encode("ascii")))
    elif versions and linked:
        names = [name.encode("ascii") + b"\0" * (4 - len(name) % 4) for name in versions]
        packed = [struct.pack(order + "II", 8 + len(name), crc) + name for name, crc in zip(names, versions.values())]
        sections.append(("__versions", b"".join(packed) + bytes(8)))
    elif versions:
        packed = [struct.pack(order + long_and_name, crc, name.encode("ascii")) for name, crc in versions.items()]
        sections.append(("__versions", b"".join(packed)))
    return elf(sections, machine, **more) + (SIGNATURE if signed else b"")


def symvers(versions, by="vmlinux"):
    """The bytes of a Module.symvers for a dict symbol -> CRC."""
    return "".join("0x%08x\t%s\t%s\tEXPORT_SYMBOL\t\n" % (crc, name, by) for name, crc in versions.items()).encode("ascii")


# The order in which these load is not that of their names.
MODULES = {
    "drv_seclib_host": "",
    "asdrv_pbl": "drv_seclib_host",
    "drv_pcie_host": "asdrv_pbl",
    "drv_pcie_hdc_host": "drv_pcie_host,asdrv_pbl",
    "asdrv_dms": "drv_pcie_hdc_host,i2c-core",
    "drv_vascend": "asdrv_pbl,vfio",
}


def write(path, content, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def write_tree(tree, version="25.5.0", kernel=KERNEL, machine=None, modules=None, signed=False, versions=None):
    """Write an installed driver tree to ``tree`` (a Path) and return it."""
    write(tree / "version.info", ("Version=%s\nascendhal_version=7.35.23\n" % version).encode("ascii"), 0o444)
    write(tree / "tools" / "npu-smi", elf(machine=machine), 0o555)
    for name in ("driver/libdcmi.so", "driver/libascend_hal.so", "common/libc_sec.so"):
        write(tree / "lib64" / name, elf(machine=machine) + name.encode("ascii"), 0o444)
    for name, depends in (MODULES if modules is None else modules).items():
        write(tree / "host" / (name + ".ko"), module(kernel, depends, version, machine, signed, versions=versions), 0o440)
    return tree


def push(registry, repository, tag, top, prefix="", annotations=None, workdir=None, architecture=None):
    """Store the directory ``top`` as an image in the test registry; returns its digest."""
    layer = oci.write_layer(str(top), prefix or ".", str((workdir or top.parent) / "layer.tar.gz"))
    with open(layer.path, "rb") as stream:
        registry.put_blob(stream.read())
    os.unlink(layer.path)
    config = oci.config(architecture or manifests.architecture(), [layer], {})
    registry.put_blob(config)
    return registry.put_manifest(repository, tag, json.loads(oci.manifest(config, [layer], annotations or {})))
