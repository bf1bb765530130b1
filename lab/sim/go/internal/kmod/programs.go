// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package kmod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel is what the programs ask.
type Kernel interface {
	Load(Info) error
	Unload(name string) error
	Modules() (map[string][]string, error)
}

// Insmod is insmod(8): a file and parameters.
func Insmod(kernel Kernel, arguments []string, errs io.Writer) int {
	arguments = slices.DeleteFunc(slices.Clone(arguments), func(a string) bool { return strings.HasPrefix(a, "-") })
	if len(arguments) == 0 {
		fmt.Fprintln(errs, "insmod: ERROR: missing filename.")
		return 1
	}
	info, err := ReadFile(arguments[0])
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(errs, "insmod: ERROR: could not load module %s: No such file or directory\n", arguments[0])
		return 1
	}
	if err == nil {
		err = kernel.Load(info)
	}
	if err != nil {
		fmt.Fprintf(errs, "insmod: ERROR: could not insert module %s: %v\n", arguments[0], err)
		return 1
	}
	return 0
}

// Rmmod is rmmod(8): names.
func Rmmod(kernel Kernel, arguments []string, errs io.Writer) int {
	status := 0
	for _, argument := range arguments {
		if strings.HasPrefix(argument, "-") {
			continue
		}
		if err := kernel.Unload(Name(argument)); err != nil {
			fmt.Fprintf(errs, "rmmod: ERROR: Module %s %v\n", Name(argument), err)
			status = 1
		}
	}
	return status
}

// Modprobe is modprobe(8), as far as boot scripts and container tools use it.
func Modprobe(kernel Kernel, arguments []string, out, errs io.Writer) int {
	options, names := modprobeOptions(arguments)
	quiet, remove, dry, show := options['q'], options['r'], options['n'], options['D']
	if len(names) == 0 {
		fmt.Fprintln(errs, "modprobe: ERROR: missing parameters. See -h.")
		return 1
	}
	if !options['a'] && !remove {
		names = names[:1] // the rest are parameters
	}
	status := 0
	for _, name := range names {
		err := error(nil)
		switch {
		case remove && !dry:
			err = unloadWithDependencies(kernel, Name(name))
		case show:
			err = showDepends(Name(name), out)
		case !remove && !dry:
			err = LoadWithDependencies(kernel, Name(name))
		}
		if err != nil {
			status = 1
			if !quiet {
				fmt.Fprintf(errs, "modprobe: %v\n", err)
			}
		}
	}
	return status
}

// modprobeOptions splits a command line into options, by their letters, and names.
func modprobeOptions(arguments []string) (map[rune]bool, []string) {
	long := map[string]rune{"--quiet": 'q', "--all": 'a', "--remove": 'r', "--dry-run": 'n', "--show-depends": 'D'}
	withValue := []string{"-C", "--config", "-d", "--dirname", "-S", "--set-version"}
	options, names := map[rune]bool{}, []string{}
	for i := 0; i < len(arguments); i++ {
		switch argument := arguments[i]; {
		case argument == "--":
			return options, append(names, arguments[i+1:]...)
		case slices.Contains(withValue, argument):
			i++
		case strings.HasPrefix(argument, "--"):
			options[long[argument]] = true
		case strings.HasPrefix(argument, "-"):
			for _, letter := range argument[1:] {
				options[letter] = true
			}
		default:
			names = append(names, argument)
		}
	}
	return options, names
}

// LoadWithDependencies loads an installed module or one of the kernel's own.
func LoadWithDependencies(kernel Kernel, name string) error {
	loaded, err := kernel.Modules()
	if err != nil {
		return err
	}
	if _, there := loaded[name]; there {
		return nil
	}
	path, installed := Installed()[name]
	if !installed {
		if _, err := os.Stat(filepath.Join("/sys/module", name)); err == nil {
			return nil
		}
		if !InKernel(name) {
			return fmt.Errorf("FATAL: Module %s not found in directory %s", name, Directory())
		}
		return kernel.Load(Info{Name: name, InTree: true, Size: 16384})
	}
	info, err := ReadFile(path)
	if err != nil {
		return fmt.Errorf("ERROR: could not insert '%s': %w", name, err)
	}
	for _, needed := range info.Depends {
		if err := LoadWithDependencies(kernel, needed); err != nil {
			return fmt.Errorf("ERROR: could not insert '%s': Unknown symbol in module, or unknown parameter (see dmesg)", name)
		}
	}
	if err := kernel.Load(info); err != nil {
		return fmt.Errorf("ERROR: could not insert '%s': %w", name, err)
	}
	return nil
}

func unloadWithDependencies(kernel Kernel, name string) error {
	loaded, err := kernel.Modules()
	if err != nil {
		return err
	}
	if _, there := loaded[name]; !there {
		return fmt.Errorf("FATAL: Module %s is not loaded", name)
	}
	if err := kernel.Unload(name); err != nil {
		return fmt.Errorf("FATAL: Module %s %w", name, err)
	}
	if info, err := ReadFile(Installed()[name]); err == nil {
		for _, needed := range info.Depends {
			if loaded, _ := kernel.Modules(); len(loaded[needed]) == 0 {
				unloadWithDependencies(kernel, needed) //nolint:errcheck // as modprobe: others may need it
			}
		}
	}
	return nil
}

func showDepends(name string, out io.Writer) error {
	path, installed := Installed()[name]
	if !installed {
		if InKernel(name) {
			fmt.Fprintf(out, "builtin %s\n", name)
			return nil
		}
		return fmt.Errorf("FATAL: Module %s not found in directory %s", name, Directory())
	}
	info, err := ReadFile(path)
	if err != nil {
		return err
	}
	for _, needed := range info.Depends {
		if err := showDepends(needed, out); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "insmod %s\n", path)
	return nil
}

// Lsmod is lsmod(8), which is no more than a view of /sys/module.
func Lsmod(sysfs string, out io.Writer) int {
	fmt.Fprintf(out, "%-26s %-7s %s\n", "Module", "Size", "Used by")
	files, _ := filepath.Glob(filepath.Join(sysfs, "*", "initstate"))
	for _, file := range files {
		directory := filepath.Dir(file)
		holders, _ := filepath.Glob(filepath.Join(directory, "holders", "*"))
		for i := range holders {
			holders[i] = filepath.Base(holders[i])
		}
		fmt.Fprintf(out, "%-24s %9s  %s %s\n", filepath.Base(directory), read(directory, "coresize"),
			read(directory, "refcnt"), strings.Join(holders, ","))
	}
	return 0
}

func read(directory, name string) string {
	content, _ := os.ReadFile(filepath.Join(directory, name))
	return strings.TrimSpace(string(content))
}
