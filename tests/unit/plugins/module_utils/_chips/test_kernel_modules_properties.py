# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ELF files of any class and byte order with any sections, and files that only look like one."""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from hypothesis import given
from hypothesis import strategies as st

from support.host import driver_images
from support.properties import bounded, few

WORDS = st.text("abcxyz019_-.+~", min_size=1, max_size=12)
KERNELS = st.from_regex(r"[0-9]\.[0-9]{1,2}\.[0-9]-[0-9]{1,3}[0-9A-Za-z._+~-]{0,40}", fullmatch=True)
KINDS = st.fixed_dictionaries({"bits": st.sampled_from((32, 64)), "byte_order": st.sampled_from("<>")})
MACHINES = st.sampled_from(("x86_64", "aarch64"))
SECTIONS = st.lists(
    st.tuples(st.sampled_from((".text", ".modinfo.x", ".data", ".note", "modinfo")), st.binary(max_size=40)), max_size=4
)
FIELDS = st.lists(
    st.tuples(WORDS, st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)), max_size=6
)


def check(content, path="/lib/x.ko"):
    """The fields of ``content`` if they have the documented form, or None if it is refused as documented."""
    try:
        with bounded():
            fields = kernel_modules.parse_modinfo(content, path)
            versions = kernel_modules.symbol_versions(content, path)
    except NpuError as exc:
        assert path in exc.message
        return None
    assert all(isinstance(name, str) and all(isinstance(value, str) for value in listed) for name, listed in fields.items())
    assert all(isinstance(name, str) and isinstance(crc, int) for name, crc in versions.items())
    return fields


@given(FIELDS, SECTIONS, SECTIONS, KINDS, MACHINES)
def test_modinfo_is_read_as_it_was_written(fields, before, behind, kind, machine):
    text = b"".join(("%s=%s" % pair).encode("utf-8") + b"\0" for pair in fields)
    content = driver_images.elf([*before, (".modinfo", text), *behind], machine, **kind)
    wanted = {}
    for name, value in fields:
        wanted.setdefault(name, []).append(value)
    assert check(content) == wanted
    assert kernel_modules.elf_machine(content) == machine


@st.composite
def damaged_modules(draw):
    content = bytearray(
        driver_images.module(
            depends="a,b-c", machine=draw(MACHINES), versions={"a": 1, "b": 2}, extended=draw(st.booleans()), **draw(KINDS)
        )
    )
    for _number in range(draw(st.integers(1, 4))):
        # The offsets and sizes are in the header and in the table at the end.
        place = draw(
            st.one_of(st.integers(0, 63), st.integers(0, len(content) - 1), st.integers(len(content) - 200, len(content) - 1))
        )
        bytes_ = draw(
            st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from((b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7)))
        )
        content[place : place + len(bytes_)] = bytes_
    return bytes(content[: draw(st.integers(0, len(content)))]) if draw(st.booleans()) else bytes(content)


@given(st.one_of(damaged_modules(), st.binary(max_size=80), st.binary(max_size=80).map(lambda rest: b"\x7fELF" + rest)))
def test_a_damaged_module_is_read_or_refused(content):
    check(content)
    assert kernel_modules.elf_machine(content) is None or content[:4] == b"\x7fELF"


@few
@given(KINDS, st.integers(0, 255), st.integers(1, 2**20))
def test_megabytes_are_read_or_refused_in_time(kind, byte, size):
    check(driver_images.elf([(".text", bytes([byte]) * 2**20), (".modinfo", b"a=" + bytes([byte or 1]) * size)], "x86_64", **kind))
    # As many sections as an ELF file can have, all in one place.
    header = bytearray(driver_images.module(machine="x86_64", **kind))
    place, order = (0x3A, "little") if kind["bits"] == 64 else (0x2E, "little")
    order = "little" if kind["byte_order"] == "<" else "big"
    header[place : place + 4] = (0).to_bytes(2, order) + (0xFFFE).to_bytes(2, order)
    check(bytes(header))


@given(
    st.one_of(damaged_modules(), st.binary(max_size=60)),
    st.sampled_from((bytes, lzma.compress, gzip.compress)),
    st.sampled_from(kernel_modules.SUFFIXES),
    st.integers(0, 40),
)
def test_a_packed_module_is_read_or_refused(content, pack, suffix, cut):
    """Whatever its suffix says, complete or truncated."""
    packed = pack(content)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "drv" + suffix)
        with open(path, "wb") as stream:
            stream.write(packed[: len(packed) - cut])
        try:
            module = kernel_modules.Module(path)
        except NpuError as exc:
            assert path in exc.message
        else:
            assert module.name == "drv" and kernel_modules._NAME.match(module.name) and module.kernel


@given(KERNELS, st.sampled_from((" SMP mod_unload", " preempt", "  ", "")), st.lists(WORDS, max_size=4))
def test_vermagic_and_dependencies(kernel, behind, depends):
    fields = kernel_modules.parse_modinfo(driver_images.module(kernel, ",".join(depends), machine="x86_64"), "x.ko")
    fields["vermagic"] = [kernel + behind]
    assert kernel_modules._vermagic_kernel(fields, "x.ko") == kernel
    valid = all(kernel_modules._NAME.match(name.replace("-", "_")) for name in depends)
    try:
        assert kernel_modules._depends(fields, "x.ko") == [name.replace("-", "_") for name in depends] and valid
    except NpuError:
        assert not valid


@st.composite
def graphs(draw):
    count = draw(st.one_of(st.integers(0, 8), st.sampled_from((3000,))))
    names = ["m%d" % number for number in range(count)]
    if count > 100:
        return {"/x/%s.ko" % name: names[number + 1 : number + 2] for number, name in enumerate(names)}
    wanted = st.lists(st.sampled_from([*names, "i2c_core", "vfio"]), max_size=3, unique=True)
    return {"/x/%s.ko" % name: draw(wanted) for name in names}


@given(graphs())
def test_modules_load_after_what_they_depend_on(graph):
    """In any graph of dependencies, and in a chain of thousands; a cycle is refused."""
    try:
        with bounded():
            foreign, order = kernel_modules.order(graph)
    except NpuError as exc:
        assert "cycle" in exc.message
        names = exc.message.partition(": ")[2].split(" -> ")
        assert names[0] == names[-1] and all(there in graph["/x/%s.ko" % here] for here, there in zip(names, names[1:]))
        return
    assert sorted(order) == sorted(graph) and foreign == sorted({n for listed in graph.values() for n in listed if n[0] != "m"})
    place = {path: number for number, path in enumerate(order)}
    assert all(place["/x/%s.ko" % n] < place[path] for path, listed in graph.items() for n in listed if n[0] == "m")
