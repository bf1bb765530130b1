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
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrParameters is EINVAL as kmod words it: what a kernel says if the CRC of a symbol differs.
var ErrParameters = errors.New("Invalid parameters") //nolint:staticcheck // kmod's own text

// layout is the symbol that each module needs. A kernel answers ENOEXEC if its CRC differs.
const layout = "module_layout"

// root is the directory of the node's files.
var root = "/"

// fits is what a kernel checks before it loads a module: the release, or, where kernel and module have CRCs, these.
func fits(file *elf.File, vermagic string) error {
	wanted := versions(file)
	exported := symvers()
	if len(wanted) == 0 || exported[layout] == 0 {
		if kernel, _, _ := strings.Cut(vermagic, " "); kernel != Release() {
			return ErrFormat
		}
		return nil
	}
	if wanted[layout] != exported[layout] {
		return ErrFormat
	}
	for name, crc := range wanted {
		if other, there := exported[name]; there && other != crc {
			return ErrParameters
		}
	}
	return nil
}

// versions are the CRCs of the symbols that a module takes from elsewhere, by name. An entry of __versions has 64 bytes: an unsigned
// long, and the name. Since Linux 6.14, a module may have them in two sections, which then count.
func versions(file *elf.File) map[string]uint32 {
	found := map[string]uint32{}
	crcs, names := data(file, "__version_ext_crcs"), strings.Split(string(data(file, "__version_ext_names")), "\x00")
	for i := 0; i*4+4 <= len(crcs) && i < len(names); i++ {
		found[names[i]] = file.ByteOrder.Uint32(crcs[i*4:])
	}
	if len(found) > 0 {
		return found
	}
	entries := data(file, "__versions")
	if linked := linkedVersions(entries, file.ByteOrder); len(linked) > 0 {
		return linked
	}
	for ; len(entries) >= 64; entries = entries[64:] {
		name, _, _ := bytes.Cut(entries[8:64], []byte{0})
		found[string(name)] = uint32(file.ByteOrder.Uint64(entries))
	}
	return found
}

// linkedVersions are the CRCs where the entries are those of Ubuntu's kernels since 6.2: the offset of the next entry, the CRC, and a name
// of any length. An empty entry is the last. Nil if the entries have 64 bytes.
func linkedVersions(entries []byte, order binary.ByteOrder) map[string]uint32 {
	found := map[string]uint32{}
	some := uint32(0)
	for len(entries) >= 8 {
		next, crc := order.Uint32(entries), order.Uint32(entries[4:])
		if next == 0 {
			break
		}
		if next < 12 || next%4 != 0 || int64(next) > int64(len(entries)) {
			return nil
		}
		name, _, _ := bytes.Cut(entries[8:next], []byte{0})
		found[string(name)] = crc
		some |= crc
		entries = entries[next:]
	}
	// In an entry of 64 bytes, the upper half of the CRC is zero.
	if some == 0 {
		return nil
	}
	return found
}

func data(file *elf.File, name string) []byte {
	if section := file.Section(name); section != nil {
		content, _ := section.Data()
		return content
	}
	return nil
}

// symvers are the CRCs of the symbols that the kernel exports, by name. The lab's kernel has CRCs if the node has that file.
func symvers() map[string]uint32 {
	found := map[string]uint32{}
	for _, path := range []string{"lib/modules/" + Release() + "/symvers.gz", "boot/symvers-" + Release() + ".gz"} {
		file, err := os.Open(root + "/" + path)
		if err != nil {
			continue
		}
		defer file.Close()
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			continue
		}
		content, err := io.ReadAll(unpacked)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(content), "\n") {
			fields := strings.Split(line, "\t")
			if len(fields) < 3 || fields[2] != "vmlinux" {
				continue
			}
			if crc, err := strconv.ParseUint(fields[0], 0, 32); err == nil {
				found[fields[1]] = uint32(crc)
			}
		}
		break
	}
	return found
}
