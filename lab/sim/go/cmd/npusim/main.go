// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command npusim is a node's simulated hardware and, under other names, the programs that load its drivers.
package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"npuops/labsim/internal/boot"
	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
	"npuops/labsim/internal/kmod"
	"npuops/labsim/internal/query"
	"npuops/labsim/internal/runc"
	"npuops/labsim/internal/silicon"
)

// root has all that a daemon has in a node's root. For tests, which have no node.
var root = os.Getenv("NPUSIM_ROOT")

func main() {
	log.SetFlags(0)
	name, arguments := filepath.Base(os.Args[0]), os.Args[1:]
	if name == "npusim" && len(arguments) > 0 {
		name, arguments = arguments[0], arguments[1:]
	}
	os.Exit(run(name, arguments))
}

func run(name string, arguments []string) int {
	kernel := silicon.Kernel{Socket: root + silicon.Socket}
	switch name {
	case "insmod":
		return kmod.Insmod(kernel, arguments, os.Stderr)
	case "rmmod":
		return kmod.Rmmod(kernel, arguments, os.Stderr)
	case "modprobe":
		return kmod.Modprobe(kernel, arguments, os.Stdout, os.Stderr)
	case "lsmod":
		return kmod.Lsmod("/sys/module", os.Stdout)
	case "runc":
		return status(runc.Exec(os.Args))
	case "show-devices":
		return status(runc.ShowDevices(os.Stdin))
	case "boot":
		return status(prepare())
	case "daemon":
		return status(daemon())
	case "state":
		fmt.Print(query.Text("npusim"))
		return 0
	case "flash":
		return status(flash(kernel, arguments))
	}
	fmt.Fprintln(os.Stderr, "usage: npusim boot|daemon|state|flash [factory [VERSION]]|insmod|rmmod|modprobe|lsmod")
	return 2
}

func status(err error) int {
	if err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func prepare() error {
	node, err := hardware.Load(hardware.File)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(silicon.Run, 0o755); err != nil {
		return err
	}
	return boot.Run(node, silicon.Run)
}

// flash shows what is in the flash of each chip, as JSON, or makes the chips new.
func flash(kernel silicon.Kernel, arguments []string) error {
	switch {
	case len(arguments) == 0:
		content, err := os.ReadFile(root + silicon.FlashFile)
		os.Stdout.Write(content)
		return err
	case arguments[0] == "factory" && len(arguments) <= 2:
		return kernel.Factory(strings.Join(arguments[1:], ""))
	}
	return fmt.Errorf("flash: %q is no operation: it is factory", arguments)
}

func daemon() error {
	for i, directory := range faults.Directories {
		faults.Directories[i] = root + directory
	}
	silicon.NetworkConfig = root + silicon.NetworkConfig
	node, err := hardware.Load(root + hardware.File)
	if err != nil {
		return err
	}
	delay := 3.0
	if text := os.Getenv("NPUSIM_DELAY"); text != "" {
		if delay, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("NPUSIM_DELAY: %w", err)
		}
	}
	chips, err := silicon.New(node, time.Duration(delay*float64(time.Second)), root+silicon.Run, root+"/dev", root+silicon.FlashFile)
	if err != nil {
		return err
	}
	address := os.Getenv("NPUSIM_ADDRESS") // as of those who ask
	if address == "" {
		address = fmt.Sprintf(":%d", query.Port)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	failed := make(chan error)
	go func() { failed <- chips.ServeQueries(listener) }()
	go func() { failed <- chips.ServeControl(root + silicon.Socket) }()
	go chips.Watch()
	if err := ready(); err != nil {
		return err
	}
	coldplug(node, silicon.Kernel{Socket: root + silicon.Socket})
	return <-failed
}

// ready waits for the control socket and tells systemd, so that nothing loads a module before.
func ready() error {
	for range 100 {
		if _, err := os.Stat(root + silicon.Socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	connection, err := net.Dial("unixgram", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = connection.Write([]byte("READY=1"))
	return err
}

// coldplug does what udev does at boot: installed modules whose PCI alias fits a chip are loaded. That is how drivers
// come back that were installed by a package, not by us.
func coldplug(node hardware.Node, kernel kmod.Kernel) {
	for name, path := range kmod.Installed() {
		info, err := kmod.ReadFile(path)
		if err != nil {
			continue
		}
		for _, f := range node.Functions {
			if silicon.Matches(info, f) {
				if err := kmod.LoadWithDependencies(kernel, name); err != nil {
					log.Print(err)
				}
				break
			}
		}
	}
}
