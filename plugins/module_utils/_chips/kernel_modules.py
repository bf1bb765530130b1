# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules: metadata and symbol versions of .ko files, load order, loaded modules, demand for signatures.

Parses ELF itself, because modinfo is not available on every host, nor where images are built.
"""

from __future__ import annotations

import lzma
import os
import re
import struct
import zlib

from ansible_collections.npuops.ascend.plugins.module_utils._chips import zstd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files

SUFFIXES = (".ko", ".ko.xz", ".ko.gz")
# No boot script loads these, and not each host can read them: kernels have them, drivers must not.
UNREADABLE_SUFFIX = ".ko.zst"
_SIGNATURE = b"~Module signature appended~\n"

# Modules have a few MiB, with debug information some tens of MiB.
_MAX_MODULE = 256 * 2**20
# Also of symbol versions: 16384 symbols of 64 bytes.
_MAX_SECTION = 2**20
# Memory limit for xz: its highest compression level requires 65 MiB.
_XZ_MEMORY = 128 * 2**20

# Valid for the kernel, modprobe and the load plan: one word that is not an option.
_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]{0,127}\Z")
_KERNEL = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~-]{0,127}\Z")

# e_machine of ELF -> uname -m.
MACHINES = {3: "i686", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}


def is_module(path):
    """Whether ``path`` has the suffix of a kernel module."""
    return path.endswith(SUFFIXES)


def module_name(path):
    """The kernel's name of the module in ``path``: without directory and suffix, and with "_" instead of "-"."""
    return os.path.basename(path).partition(".ko")[0].replace("-", "_")


def read_module(path):
    """The decompressed bytes of the module in ``path``; raises NpuError if that fails or exceeds the limit."""
    return unpack(image_files.read(path, _MAX_MODULE), path, _MAX_MODULE, "Kernel module")


def unpack(content, path, limit, what):
    """``content`` without the compression that the suffix of ``path`` names (.xz, .gz, .zst, or none).

    Raises NpuError, in which ``what`` is the kind of the file, if that fails or if there are more than ``limit`` bytes.
    """
    try:
        if path.endswith(".xz"):
            return _unpack(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), content, path, limit, what)
        if path.endswith(".gz"):
            return _unpack(zlib.decompressobj(wbits=31), content, path, limit, what)
        if path.endswith(".zst"):
            return _unpack_zstd(content, path, limit, what)
        return content
    except (lzma.LZMAError, zlib.error, EOFError) as exc:
        raise NpuError("%s %s cannot be read: %s" % (what, printable(path), exc)) from None


def _unpack_zstd(content, path, limit, what):
    try:
        unpacked = zstd.unpack(content, limit)
    except NpuError as exc:
        raise NpuError("%s %s cannot be read: %s" % (what, printable(path), exc.message)) from None
    return _checked(unpacked, path, limit, what)


def _checked(unpacked, path, limit, what):
    if len(unpacked) > limit:
        raise NpuError("%s %s unpacks to more than %d MiB, which is the limit" % (what, printable(path), limit // 2**20))
    return unpacked


def _unpack(decompressor, content, path, limit, what):
    unpacked = _checked(decompressor.decompress(content, limit + 1), path, limit, what)
    if not decompressor.eof:
        raise EOFError("it is truncated")
    return unpacked


def modinfo(path):
    """What ``modinfo`` prints for ``path``: a dict of lists of strings, e.g. {"depends": ["a,b"], ...}.

    Raises NpuError if ``path`` is not a kernel module.
    """
    return parse_modinfo(read_module(path), path)


def parse_modinfo(content, path):
    """The same for the bytes of a module; ``path`` is for messages only."""
    fields = {}
    section = _section(content, ".modinfo", path)
    if section is None:
        raise NpuError("%s is not a kernel module: it has no .modinfo section" % printable(path))
    for entry in section.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            fields.setdefault(name.decode("utf-8", "replace"), []).append(value.decode("utf-8", "replace"))
    return fields


def symbol_versions(content, path):
    """The symbols that a module takes from elsewhere, as a dict name -> CRC; empty if it was built without CONFIG_MODVERSIONS.

    ``content``: bytes of the module; ``path`` is for messages only. Raises NpuError if the sections are damaged.
    """
    # As kernel/module/version.c: since Linux 6.14, the extended sections count, which also have names that do not fit the others.
    crcs = _section(content, "__version_ext_crcs", path)
    names = _section(content, "__version_ext_names", path)
    versions = _section(content, "__versions", path)
    order = "<" if content[5] == 1 else ">"
    if crcs is not None and names is not None:
        listed = names.split(b"\0")
        numbers = struct.unpack_from("%s%dI" % (order, len(crcs) // 4), crcs)
        if len(listed) < len(numbers):
            raise NpuError("%s is damaged: it has more symbol versions than symbols" % printable(path))
        pairs = list(zip(numbers, listed))
    elif versions is not None:
        # An entry has 64 bytes: an unsigned long, and the name in the rest.
        entry = struct.Struct(order + ("Q56s" if content[4] == 2 else "I60s"))
        pairs = _linked_versions(versions, order) or list(entry.iter_unpack(versions[: len(versions) // entry.size * entry.size]))
    else:
        return {}
    return {name.partition(b"\0")[0].decode("utf-8", "replace"): number for number, name in pairs}


def _linked_versions(content, order):
    """The pairs of CRC and name in ``content`` if its entries are those of Ubuntu's kernels since 6.2, else [].

    Such an entry is as long as its name requires: 32 bits with the offset of the next entry from here, 32 bits with the CRC, the
    name, filled up with zeros. The offset in the last, empty entry is 0. Source: "modpost: support arbitrary symbol length in
    modversion" (linux-kbuild, January 2023), which Ubuntu carries. No flag tells the two layouts apart, so all entries must fit.
    """
    head, pairs, at = struct.Struct(order + "II"), [], 0
    while len(content) - at >= head.size:
        following, crc = head.unpack_from(content, at)
        if not following:
            break
        name, zeros = content[at + head.size : at + following].partition(b"\0")[::2]
        if following % 4 or at + following > len(content) or not name or zeros.strip(b"\0"):
            return []
        pairs.append((crc, name))
        at += following
    # In an entry of 64 bytes, the upper half of the CRC is zero.
    return pairs if not content[at:].strip(b"\0") and any(crc for crc, _name in pairs) else []


def vermagic_kernel(path):
    """The kernel release (``uname -r``) that the module in ``path`` was built for."""
    return _vermagic_kernel(modinfo(path), path)


def vermagic_flags(path):
    """What the vermagic of the module in ``path`` has after the kernel release, such as "SMP preempt mod_unload modversions"."""
    return _vermagic_flags(modinfo(path))


def _vermagic_flags(fields):
    return fields.get("vermagic", [""])[0].partition(" ")[2].strip()


def _vermagic_kernel(fields, path):
    words = fields.get("vermagic", [""])[0].split()
    if not words or not _KERNEL.match(words[0]):
        raise NpuError(
            "Kernel module %s does not state the kernel that it was built for (%s)"
            % (printable(path), "its vermagic is not a kernel release" if words else "no vermagic")
        )
    return words[0]


class Module:
    """A module file: ``path``, ``name``, ``kernel``, ``depends`` (names), ``signed``, ``machine`` (uname -m).

    ``flags``: see ``vermagic_flags``; ``versions``: symbols that it takes from elsewhere, see ``symbol_versions``; ``exports``: set
    of the symbols that it has for others.
    """

    def __init__(self, path):
        content = read_module(path)
        fields = parse_modinfo(content, path)
        self.path = path
        self.name = module_name(path)
        if not _NAME.match(self.name):
            raise NpuError("Kernel module %s: its file name is not a valid module name" % printable(path))
        self.kernel = _vermagic_kernel(fields, path)
        self.depends = _depends(fields, path)
        self.signed = content.endswith(_SIGNATURE)
        self.machine = elf_machine(content)
        self.flags = _vermagic_flags(fields)
        self.versions = symbol_versions(content, path)
        exports = _section(content, "__ksymtab_strings", path) or b""
        self.exports = {name.decode("utf-8", "replace") for name in exports.split(b"\0")}


def _depends(fields, path):
    names = [name.replace("-", "_") for name in ",".join(fields.get("depends", [])).split(",") if name]
    # They become arguments of modprobe.
    for name in names:
        if not _NAME.match(name):
            raise NpuError("Kernel module %s depends on %s, which is not a valid module name" % (printable(path), printable(name)))
    return names


def load_order(paths):
    """(sorted names of the kernel's own modules that the others need; ``paths`` in load order).

    Raises NpuError that names the modules if there is a dependency cycle or a duplicate name.
    """
    return order({path: _depends(modinfo(path), path) for path in paths})


def order(depends):
    """``load_order`` for a dict path -> names of the modules that it depends on."""
    own = {}
    for path in sorted(depends):
        if module_name(path) in own:
            raise NpuError("Kernel module %s exists twice: %s, %s" % (module_name(path), own[module_name(path)], path))
        own[module_name(path)] = path
    foreign = set()
    done = {}
    # Names from a module to one that it needs, with what remains to be visited of each. No recursion: a chain may be long.
    above = {}

    def enter(name):
        if name in above:
            names = list(above)
            raise NpuError("Kernel modules have a dependency cycle: %s" % " -> ".join(names[names.index(name) :] + [name]))
        above[name] = iter(sorted(depends[own[name]]))

    for name in sorted(own):
        if name not in done:
            enter(name)
        while above:
            last = next(reversed(above))
            needed = next(above[last], None)
            if needed is None:
                del above[last]
                done[last] = own[last]
            elif needed not in own:
                foreign.add(needed)
            elif needed not in done:
                enter(needed)
    return sorted(foreign), list(done.values())


def loaded(sysfs="/sys/module"):
    """The loaded modules as a dict name -> version (None if a module has none). Built-in modules are omitted."""
    modules = {}
    try:
        names = os.listdir(sysfs)
    except OSError:
        return modules
    for name in names:
        if os.path.exists(os.path.join(sysfs, name, "initstate")):
            version = read_text(os.path.join(sysfs, name, "version"))
            modules[name] = version.strip() if version else None
    return modules


def signature_demand(sys="/sys"):
    """Why this kernel loads only signed modules, as a phrase, or None if it also loads unsigned modules."""
    enforce = (read_text(os.path.join(sys, "module/module/parameters/sig_enforce")) or "").strip()
    if enforce in ("Y", "1"):
        return "module.sig_enforce is on"
    lockdown = re.search(r"\[(\w+)\]", read_text(os.path.join(sys, "kernel/security/lockdown")) or "")
    if lockdown and lockdown.group(1) in ("integrity", "confidentiality"):
        return "the kernel is locked down (%s)" % lockdown.group(1)
    return None


def elf_machine(content):
    """The machine (``uname -m``) of an ELF file, from its first 20 bytes; None if it is not an ELF file."""
    if len(content) < 20 or content[:4] != b"\x7fELF":
        return None
    number = struct.unpack_from("<H" if content[5:6] == b"\x01" else ">H", content, 18)[0]
    return MACHINES.get(number, "ELF machine %d" % number)


def _section(content, wanted, path):
    """The content of the section ``wanted`` of the ELF file ``content``, or None if it has none."""
    try:
        if content[:4] != b"\x7fELF" or content[4] not in (1, 2) or content[5] not in (1, 2):
            raise ValueError
        byte_order = "<" if content[5] == 1 else ">"
        if content[4] == 2:
            table = struct.unpack_from(byte_order + "Q", content, 0x28)[0]
            entry_size, count, names = struct.unpack_from(byte_order + "HHH", content, 0x3A)
            header = struct.Struct(byte_order + "II8x8xQQ")
        else:
            table = struct.unpack_from(byte_order + "I", content, 0x20)[0]
            entry_size, count, names = struct.unpack_from(byte_order + "HHH", content, 0x2E)
            header = struct.Struct(byte_order + "II4x4xII")
        sections = [header.unpack_from(content, table + index * entry_size) for index in range(count)]
        name_offset, name_size = sections[names][2:4]
        strings = content[name_offset : name_offset + name_size]
        called = wanted.encode("ascii") + b"\0"
        for name, dummy, offset, size in sections:
            if strings.startswith(called, name):
                if offset + size > len(content) or size > _MAX_SECTION:
                    raise ValueError
                return content[offset : offset + size]
    except (struct.error, IndexError, ValueError, OverflowError):
        raise NpuError("%s is damaged or not a kernel module" % printable(path)) from None
    return None
