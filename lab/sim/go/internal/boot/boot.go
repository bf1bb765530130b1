// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package boot prepares a node before anything else runs in it: what its firmware and kernel would have done.
package boot

import (
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
	"npuops/labsim/internal/kmod"
)

// Run does it all. Called twice in a boot, it does nothing the second time.
func Run(node hardware.Node, run string) error {
	if _, err := os.Stat(filepath.Join(run, "booted")); err == nil {
		return nil
	}
	waitForFaults()
	// Real hosts have shared mounts; a container's are private, and mount propagation and systemd-sysext would fail.
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	for _, step := range []func(string) error{bootID, kernel, moduleView, deviceView, func(run string) error { return pciView(node, run) }} {
		if err := step(run); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(run, "booted"), nil, 0o644)
}

// waitForFaults plays the time in which a host is not to be reached.
func waitForFaults() {
	if wait := faults.Read().Seconds("slow-boot", 60); wait > 0 {
		log.Printf("slow-boot: %s", wait)
		time.Sleep(wait)
	}
	for faults.Read().Has("no-return") {
		time.Sleep(500 * time.Millisecond)
	}
}

// bootID gives the boot its own ID: the machine's says nothing about this node.
func bootID(run string) error {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	file := filepath.Join(run, "boot_id")
	id := fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	if err := os.WriteFile(file, []byte(id), 0o444); err != nil {
		return err
	}
	return bind(file, "/proc/sys/kernel/random/boot_id")
}

// kernel is what the boot loader loads: the kernel of the entry that grubenv has saved. All nodes run on the machine's own, so another
// one is a name: libkernel.so, preloaded into each program that starts from now on, tells it. Static programs, such as the kubelet,
// see the machine's.
func kernel(run string) error {
	const preload = "/etc/ld.so.preload"
	content, err := os.ReadFile("/boot/grub2/grubenv")
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	release := ""
	for _, line := range strings.Split(string(content), "\n") {
		if entry, found := strings.CutPrefix(line, "saved_entry=lab-"); found {
			release = entry
		}
	}
	if release == "" {
		if err := os.Remove(preload); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	if err := os.WriteFile(kmod.KernelFile, []byte(release), 0o444); err != nil {
		return err
	}
	return os.WriteFile(preload, []byte("/usr/lib/npusim/libkernel.so\n"), 0o644)
}

// moduleView is /sys/module with room for ours: real entries are links to the real place.
func moduleView(run string) error {
	kept, view := filepath.Join(run, "module-of-kernel"), filepath.Join(run, "module")
	for _, directory := range []string{kept, view} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	if err := bind("/sys/module", kept); err != nil {
		return err
	}
	entries, err := os.ReadDir(kept)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(kept, entry.Name()), filepath.Join(view, entry.Name())); err != nil {
			return err
		}
	}
	return bind(view, "/sys/module")
}

// deviceView is /proc/devices with room for the driver's numbers, which the silicon adds to the kernel's.
func deviceView(run string) error {
	content, err := os.ReadFile("/proc/devices")
	if err != nil {
		return err
	}
	kept, view := filepath.Join(run, "devices-of-kernel"), filepath.Join(run, "devices")
	for _, file := range []string{kept, view} {
		if err := os.WriteFile(file, content, 0o444); err != nil {
			return err
		}
	}
	return bind(view, "/proc/devices")
}

func bind(source, target string) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	return nil
}
