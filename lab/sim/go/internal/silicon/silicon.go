// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package silicon plays the part of a node that has no software to it: chips, and the kernel's list of modules.
package silicon

import (
	"encoding/json"
	"errors"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
	"npuops/labsim/internal/kmod"
)

// Run is where the state of this boot is.
const Run = "/run/npusim"

// Silicon is the simulated hardware of one node.
type Silicon struct {
	mutex sync.Mutex
	node  hardware.Node
	chips []hardware.Chip
	delay time.Duration
	run   string // state and /sys/module's files
	dev   string // device nodes
	state state
	// What is in the flash of each chip, by physical ID, and the file that keeps it.
	flash     []Cell
	flashFile string
	writing   map[int]bool // whose flash is being written
	// The last time that files and device nodes were gone through, and with which faults.
	shown       time.Time
	shownBroken faults.Set
}

// state lasts until the next reboot, also when the daemon is restarted.
type state struct {
	Modules []kmod.Info
	// Up is when the driver's last module came; zero while it is not complete.
	Up time.Time
	// Wedged: a driver was removed from under running chips. They answer to nobody until the next reboot.
	Wedged bool
	// VNPUs are the virtual NPUs of all chips.
	VNPUs []VNPU
	// Addresses of the ports by physical ID, where the node booted with a file of them or hccn_tool has applied one; else nil.
	Addresses map[int]string
}

// New makes the silicon of a node; delay is the time from the driver's last module to its device nodes.
//
// The first one of a boot, which finds no state in the directory run, starts the chips with the firmware that the file flash has.
func New(node hardware.Node, delay time.Duration, run, dev, flash string) (*Silicon, error) {
	chips, err := node.Chips()
	if err != nil {
		return nil, err
	}
	s := &Silicon{node: node, chips: chips, delay: delay, run: run, dev: dev, flashFile: flash, writing: map[int]bool{}}
	if err := s.readFlash(); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(s.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		if err := s.powerOn(); err != nil {
			return nil, err
		}
		s.recoverVNPUs()
		s.forgetAddresses()
		return s, s.keep()
	}
	if err == nil {
		err = json.Unmarshal(content, &s.state)
	}
	return s, err
}

// Errors of the kernel as kmod words them.
var (
	ErrExists  = errors.New("File exists")
	ErrSymbol  = errors.New("Unknown symbol in module")
	ErrDevice  = errors.New("No such device")
	ErrMissing = errors.New("is not currently loaded")
)

// Load is the kernel's init_module.
func (s *Silicon) Load(module kmod.Info) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	broken := s.broken(module)
	switch {
	case s.loaded(module.Name) != nil:
		return ErrExists
	case broken.Has("hang") && module.Name == "drv_pcie_host":
		freeze()
	case broken.Has("load-fails") && broken.Word("load-fails", 0, "drv_pcie_host") == module.Name:
		return ErrDevice
	}
	for _, name := range module.Depends {
		if s.loaded(name) == nil && !kmod.InKernel(name) {
			return ErrSymbol
		}
	}
	s.state.Modules = append(s.state.Modules, module)
	if s.state.Up.IsZero() && s.complete() {
		s.state.Up = time.Now()
		log.Printf("driver %s is complete", s.version(broken))
	}
	return s.save()
}

// broken are the faults of the hardware and those that come with a bad driver, loaded or being loaded.
func (s *Silicon) broken(loading ...kmod.Info) faults.Set {
	set := faults.Read()
	for _, module := range slices.Concat(s.state.Modules, loading) {
		set.Add(module.Simulate)
	}
	return set
}

// freeze stops every process of the node but init, which has nobody left to talk to. It does not return.
var freeze = func() {
	log.Print("hang: nothing moves until a power cycle")
	syscall.Kill(-1, syscall.SIGSTOP) //nolint:errcheck // nobody could be told
	select {}
}

// Unload is the kernel's delete_module. Chips do not survive it.
func (s *Silicon) Unload(name string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.loaded(name) == nil {
		return ErrMissing
	}
	if users := s.users(name); len(users) > 0 {
		return errors.New("is in use by: " + strings.Join(users, " "))
	}
	if !s.state.Up.IsZero() && s.isDriver(name) && !s.state.Wedged {
		s.state.Wedged = true
		log.Printf("%s was removed while chips were running: wedged until the next reboot", name)
	}
	s.state.Modules = slices.DeleteFunc(s.state.Modules, func(m kmod.Info) bool { return m.Name == name })
	if !s.complete() {
		s.state.Up = time.Time{}
	}
	return s.save()
}

// Modules are the loaded modules, in order, with who uses them.
func (s *Silicon) Modules() map[string][]string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	users := map[string][]string{}
	for _, module := range s.state.Modules {
		users[module.Name] = s.users(module.Name)
	}
	return users
}

func (s *Silicon) loaded(name string) *kmod.Info {
	for i := range s.state.Modules {
		if s.state.Modules[i].Name == name {
			return &s.state.Modules[i]
		}
	}
	return nil
}

func (s *Silicon) users(name string) []string {
	var users []string
	for _, module := range s.state.Modules {
		if slices.Contains(module.Depends, name) {
			users = append(users, module.Name)
		}
	}
	return users
}

// complete says whether a driver for this node's chips is loaded.
func (s *Silicon) complete() bool {
	pcie := s.loaded("drv_pcie_host")
	if pcie == nil || s.loaded("drv_pcie_hdc_host") == nil || len(s.node.Functions) == 0 {
		return false
	}
	manager := s.loaded("asdrv_dms") != nil || s.loaded("drv_devmng_host") != nil
	return manager && slices.ContainsFunc(s.node.Functions, func(f hardware.Function) bool { return Matches(*pcie, f) })
}

// Matches says whether the module drives the PCI function, by its alias.
func Matches(module kmod.Info, f hardware.Function) bool {
	device := "d0000" + strings.ToUpper(strings.TrimPrefix(f.Device, "0x"))
	return slices.ContainsFunc(module.Aliases, func(alias string) bool { return strings.Contains(alias, device) })
}

func (s *Silicon) isDriver(name string) bool { return !s.loaded(name).InTree }

func (s *Silicon) version(broken faults.Set) string {
	if broken.Has("wrong-version") {
		return broken.Word("wrong-version", 0, "24.1.rc2.2")
	}
	if pcie := s.loaded("drv_pcie_host"); pcie != nil {
		return pcie.Version
	}
	return ""
}

func (s *Silicon) stateFile() string { return filepath.Join(s.run, "state.json") }

func (s *Silicon) save() error {
	err := s.keep()
	if err == nil {
		s.reconcile()
	}
	return err
}

func (s *Silicon) keep() error { return writeJSON(s.stateFile(), s.state) }

// dead says whether the chips answer to nobody.
func (s *Silicon) dead() bool { return s.state.Wedged || !s.fits() }
