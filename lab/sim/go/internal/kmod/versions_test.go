// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package kmod

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

type section struct {
	name    string
	content []byte
}

// module writes an ELF relocatable with these sections.
func module(t *testing.T, sections ...section) string {
	t.Helper()
	names := []byte{0}
	sections = append(sections, section{name: ".shstrtab"})
	headers := []elf.Section64{{}}
	var body bytes.Buffer
	for i, one := range sections {
		header := elf.Section64{Name: uint32(len(names)), Type: uint32(elf.SHT_PROGBITS)}
		names = append(names, one.name+"\x00"...)
		if i == len(sections)-1 {
			one.content, header.Type = names, uint32(elf.SHT_STRTAB)
		}
		header.Off, header.Size = uint64(64+body.Len()), uint64(len(one.content))
		body.Write(one.content)
		headers = append(headers, header)
	}
	header := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: uint64(64 + body.Len()),
		Ehsize: 64, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1),
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var content bytes.Buffer
	for _, part := range []any{header, body.Bytes(), headers} {
		if err := binary.Write(&content, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "drv.ko")
	if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func basic(versions map[string]uint32) section {
	var content []byte
	for name, crc := range versions {
		entry := make([]byte, 64)
		binary.LittleEndian.PutUint64(entry, uint64(crc))
		copy(entry[8:], name)
		content = append(content, entry...)
	}
	return section{"__versions", content}
}

// linked are entries of Ubuntu's kernels since 6.2.
func linked(versions map[string]uint32) section {
	var content []byte
	for name, crc := range versions {
		padded := append([]byte(name), make([]byte, 4-len(name)%4)...)
		content = binary.LittleEndian.AppendUint32(content, uint32(8+len(padded)))
		content = binary.LittleEndian.AppendUint32(content, crc)
		content = append(content, padded...)
	}
	return section{"__versions", append(content, make([]byte, 8)...)}
}

func TestReleaseOrSymbolVersions(t *testing.T) {
	root = t.TempDir()
	defer func() { root = "/" }()
	info := func(release string) section {
		return section{".modinfo", []byte("name=drv\x00vermagic=" + release + " SMP preempt mod_unload modversions \x00")}
	}
	export := func(layout, printk uint32) {
		var content bytes.Buffer
		packed := gzip.NewWriter(&content)
		fmt.Fprintf(packed, "0x%08x\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t\n0x%08x\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n", layout, printk)
		packed.Close()
		path := filepath.Join(root, "boot", "symvers-"+Release()+".gz")
		if os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, content.Bytes(), 0o600) != nil {
			t.Fatal(path)
		}
	}
	crcs := map[string]uint32{"module_layout": 1, "_printk": 2, "of_a_module": 3}
	extended := []section{
		{"__version_ext_crcs", []byte{1, 0, 0, 0, 2, 0, 0, 0}},
		{"__version_ext_names", []byte("module_layout\x00_printk\x00")},
		basic(map[string]uint32{"module_layout": 9}),
	}
	own, other := info(Release()), info("5.10.0-other")
	check := func(what string, expected error, sections ...section) {
		t.Helper()
		if _, err := ReadFile(module(t, sections...)); !errors.Is(err, expected) {
			t.Errorf("%s: %v, wanted %v", what, err, expected)
		}
	}
	// Without symvers, the lab's kernel has no CRCs.
	check("own release", nil, own, basic(crcs))
	check("other release", ErrFormat, other, basic(crcs))
	export(1, 2)
	check("same CRCs", nil, own, basic(crcs))
	check("other release with the same CRCs", nil, other, basic(crcs))
	check("other release in extended sections", nil, append(extended, other)...)
	check("other release in linked entries", nil, other, linked(crcs))
	check("other release without CRCs", ErrFormat, other)
	export(1, 7)
	check("rebuilt kernel", ErrParameters, own, basic(crcs))
	check("rebuilt kernel, extended sections", ErrParameters, append(extended, own)...)
	check("rebuilt kernel, linked entries", ErrParameters, own, linked(crcs))
	export(7, 2)
	check("rebuilt kernel with another layout", ErrFormat, own, basic(crcs))
	export(0, 0)
	check("kernel without CRCs", nil, own, basic(crcs))
	check("other release, kernel without CRCs", ErrFormat, other, basic(crcs))
}
