// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package library finds the driver's libdcmi.so as upstream's components do, and refuses it for the same reasons.
// The simulated components are static programs: what the library would tell them they ask the silicon themselves.
package library

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const maxDepth = 20

// Manager is the device every call of the library goes through.
const Manager = "/dev/davinci_manager"

// Check returns why the library cannot be used, or nil.
func Check() error {
	path, err := find("libdcmi.so")
	if err != nil {
		return err
	}
	if err := trusted(path); err != nil {
		return err
	}
	if err := complete(path, map[string]bool{}); err != nil {
		return err
	}
	if _, err := os.Stat(Manager); err != nil {
		return fmt.Errorf("%s: %w", Manager, errors.Unwrap(err))
	}
	return nil
}

// find looks in LD_LIBRARY_PATH, then in the loader's cache.
func find(name string) (string, error) {
	for _, directory := range strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":") {
		path := filepath.Join(directory, name)
		if _, err := os.Stat(path); err == nil && directory != "" {
			return filepath.EvalSymlinks(path)
		}
	}
	out, _ := exec.Command("/sbin/ldconfig", "-p").Output()
	if match := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(name) + ` .*=> (\S+)$`).FindSubmatch(out); match != nil {
		return filepath.EvalSymlinks(string(match[1]))
	}
	return "", fmt.Errorf("cannot found valid driver lib, %s is neither in LD_LIBRARY_PATH nor in the loader's cache", name)
}

// trusted checks that only root can have put the file where it is.
func trusted(path string) error {
	depth := 0
	for current := path; ; current = filepath.Dir(current) {
		stat, err := os.Lstat(current)
		if err != nil {
			return err
		}
		if stat.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%s: group or other may write it (mode %04o)", current, stat.Mode().Perm())
		}
		if owner := stat.Sys().(*syscall.Stat_t).Uid; owner != 0 {
			return fmt.Errorf("%s: owner is %d, not root", current, owner)
		}
		if depth++; depth > maxDepth {
			return fmt.Errorf("%s: too deep", path)
		}
		if current == "/" {
			return nil
		}
	}
}

// complete checks what the loader would: that everything the library needs is found, for this machine.
func complete(path string, seen map[string]bool) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer file.Close()
	needed, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range needed {
		if seen[name] || strings.HasPrefix(name, "libc.") || strings.HasPrefix(name, "ld-linux") {
			continue
		}
		seen[name] = true
		next, err := find(name)
		if err != nil {
			return err
		}
		if err := complete(next, seen); err != nil {
			return err
		}
	}
	return nil
}
