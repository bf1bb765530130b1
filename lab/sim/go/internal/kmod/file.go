// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package kmod is what kmod's programs do, with the simulated silicon in the kernel's place.
package kmod

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Info is what a module file says about itself.
type Info struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Vermagic string   `json:"vermagic"`
	Depends  []string `json:"depends"`
	Aliases  []string `json:"aliases"`
	InTree   bool     `json:"in_tree"`
	// Simulate is a fault (as in lab/fault) that the chips have while this module is loaded: a bad driver.
	Simulate string `json:"simulate"`
	// Firmware is the lowest and the highest firmware with which chips run under this driver; empty: any.
	Firmware []string `json:"firmware"`
	Size     int64    `json:"size"`
}

// ErrFormat is ENOEXEC as kmod words it.
var ErrFormat = errors.New("Invalid module format") //nolint:staticcheck // kmod's own text

// ReadFile reads .modinfo of an ELF relocatable, and fails if the kernel would not load it.
func ReadFile(path string) (Info, error) {
	info := Info{Name: Name(path)}
	stat, err := os.Stat(path)
	if err != nil {
		return info, err
	}
	info.Size = stat.Size()
	file, err := elf.Open(path)
	if err != nil {
		return info, ErrFormat
	}
	defer file.Close()
	section := file.Section(".modinfo")
	if file.Type != elf.ET_REL || section == nil {
		return info, ErrFormat
	}
	content, err := section.Data()
	if err != nil {
		return info, ErrFormat
	}
	for _, entry := range strings.Split(string(content), "\x00") {
		key, value, _ := strings.Cut(entry, "=")
		switch key {
		case "name":
			info.Name = value
		case "version":
			info.Version = value
		case "vermagic":
			info.Vermagic = value
		case "simulate":
			info.Simulate = value
		case "simulate_firmware":
			info.Firmware = strings.Split(value, ",")
		case "alias":
			info.Aliases = append(info.Aliases, value)
		case "depends":
			info.Depends = strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
		}
	}
	return info, fits(file, info.Vermagic)
}

// Name is the module's name by its file's name.
func Name(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// KernelFile has the release of a node's kernel, where that is not the machine's: lab/kernel.
const KernelFile = "/run/npusim/kernel"

// Release is `uname -r`.
func Release() string {
	if release, err := os.ReadFile(KernelFile); err == nil {
		return string(release)
	}
	var uts syscall.Utsname
	if err := syscall.Uname(&uts); err != nil {
		panic(err)
	}
	var release strings.Builder
	for _, c := range uts.Release {
		if c == 0 {
			break
		}
		release.WriteByte(byte(c))
	}
	return release.String()
}

// Directory is where modprobe looks.
func Directory() string { return "/lib/modules/" + Release() }

// Installed are the module files a driver package put there, by name.
func Installed() map[string]string {
	found := map[string]string{}
	paths, _ := filepath.Glob(Directory() + "/updates/*.ko")
	for _, path := range paths {
		found[Name(path)] = path
	}
	return found
}

// InKernel says whether the running kernel has the module built in, or it is one that every distribution has.
func InKernel(name string) bool {
	if _, err := os.Stat("/sys/module/" + name); err == nil {
		return true
	}
	return strings.Contains(inTree, " "+name+" ")
}

// Modules of ordinary distributions, which drivers, containerd and kubelet may ask for. mdev and vfio are not among
// them: drv_vascend needs those and fails on most hosts.
const inTree = " fat vfat overlay br_netfilter bridge veth nf_conntrack nf_nat ip_tables ip6_tables iptable_nat " +
	"iptable_filter iptable_mangle xt_conntrack xt_comment xt_mark xt_MASQUERADE nf_tables ip_vs ip_vs_rr ip_vs_wrr ip_vs_sh " +
	"ip_set loop tun fuse dummy nls_utf8 nls_cp437 nls_iso8859_1 ipmi_msghandler ipmi_devintf ipmi_si "
