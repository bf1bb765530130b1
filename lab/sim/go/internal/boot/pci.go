// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package boot

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"npuops/labsim/internal/hardware"
)

// A function as sysfs shows it. Real directories, not links: pods mount /sys elsewhere.
type function struct {
	address                              string
	vendor, device, subVendor, subDevice uint16
	class                                uint32
	revision                             uint8
	physfn, virtfn                       string // address of the other one
}

// What a server has besides NPUs; the vendor of some is Huawei, too, and the class of a Kunpeng's engine is that of an NPU.
var others = []function{
	other("0000:00:00.0", 0x060000, 0x8086, 0x2020, 0xd129), // host bridge
	other("0000:03:00.0", 0x030000, 0x19e5, 0x1711, 0x0101), // the management controller's graphics
	other("0000:1a:00.0", 0x020000, 0x19e5, 0x0222, 0x0051), // network
	other("0000:3b:00.0", 0x010802, 0x144d, 0xa80a, 0xa801), // disk
	other("0000:75:00.0", 0x120000, 0x19e5, 0xa250, 0x0000), // compression engine of the CPU
	other("0000:76:00.0", 0x100000, 0x19e5, 0xa255, 0x0000), // encryption engine of the CPU
}

func other(address string, class uint32, vendor, device, subDevice uint16) function {
	return function{address: address, class: class, vendor: vendor, device: device,
		subVendor: vendor, subDevice: subDevice, revision: 1}
}

const acceleratorClass = 0x120000

func pciView(node hardware.Node, run string) error {
	top := filepath.Join(run, "pci")
	for _, f := range append(functions(node), others...) {
		if err := f.write(filepath.Join(top, f.address)); err != nil {
			return err
		}
	}
	return bind(top, "/sys/bus/pci/devices")
}

// functions are the node's NPUs. The first 910B has a virtual function, which is no chip.
func functions(node hardware.Node) []function {
	var all []function
	for i, f := range node.Functions {
		one := function{address: f.Address, vendor: 0x19e5, device: id(f.Device), subVendor: id(f.SubsystemVendor),
			subDevice: id(f.SubsystemDevice), class: acceleratorClass, revision: 0x20}
		if i == 0 && one.device == 0xd802 {
			virtual := one
			virtual.address = strings.TrimSuffix(f.Address, "0") + "1"
			virtual.physfn, virtual.revision = f.Address, 0x71
			one.virtfn = virtual.address
			all = append(all, virtual)
		}
		all = append(all, one)
	}
	return all
}

func (f function) write(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	modalias := fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", f.vendor, f.device, f.subVendor, f.subDevice,
		f.class>>16, f.class>>8&0xff, f.class&0xff)
	files := map[string]string{
		"vendor":           hex(f.vendor),
		"device":           hex(f.device),
		"subsystem_vendor": hex(f.subVendor),
		"subsystem_device": hex(f.subDevice),
		"class":            fmt.Sprintf("0x%06x", f.class),
		"revision":         fmt.Sprintf("0x%02x", f.revision),
		"irq":              "0",
		"enable":           "1",
		"numa_node":        "0",
		"local_cpulist":    "0-1",
		"resource":         strings.TrimSpace(strings.Repeat(strings.Repeat(" 0x0000000000000000", 3)[1:]+"\n", 13)),
		"modalias":         modalias,
		"uevent": fmt.Sprintf("PCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s",
			f.class, f.vendor, f.device, f.subVendor, f.subDevice, f.address, modalias),
	}
	if f.virtfn != "" {
		files["sriov_numvfs"], files["sriov_totalvfs"] = "1", "1"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{"physfn": f.physfn, "virtfn0": f.virtfn} {
		if to != "" {
			if err := os.Symlink("../"+to, filepath.Join(directory, link)); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(directory, "config"), f.config(), 0o644)
}

// config is the PCI configuration space; lspci wants its first 64 bytes.
func (f function) config() []byte {
	c := make([]byte, 256)
	binary.LittleEndian.PutUint16(c[0x00:], f.vendor)
	binary.LittleEndian.PutUint16(c[0x02:], f.device)
	binary.LittleEndian.PutUint16(c[0x04:], 0x0006) // memory space, bus master
	binary.LittleEndian.PutUint32(c[0x08:], f.class<<8|uint32(f.revision))
	binary.LittleEndian.PutUint16(c[0x2c:], f.subVendor)
	binary.LittleEndian.PutUint16(c[0x2e:], f.subDevice)
	return c
}

func hex(number uint16) string { return fmt.Sprintf("0x%04x", number) }

func id(text string) uint16 {
	number, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 16)
	if err != nil {
		panic(fmt.Sprintf("%s: %q is no PCI ID", hardware.File, text))
	}
	return uint16(number)
}
