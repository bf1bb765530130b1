// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"time"

	"npuops/labsim/internal/kmod"
)

// Socket is where kmod's programs reach the silicon; root only.
const Socket = Run + "/control.sock"

type request struct {
	Operation string // load, unload, modules, flash, factory, create-vnpu, destroy-vnpu, vnpu-cfg-recover or set-address
	Module    kmod.Info
	// Of flash: which chip's. Of flash and factory: the firmware.
	Chip    int
	Version string
	// Of create-vnpu and destroy-vnpu, whose chip is Chip.
	VNPU     int
	Template string
	// Of vnpu-cfg-recover.
	On bool
	// Of set-address, whose chip is Chip.
	Address string
}

type response struct {
	Error   string
	Modules map[string][]string
}

// ServeControl answers kmod's programs. It does not return.
func (s *Silicon) ServeControl(path string) error {
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.control(connection)
	}
}

func (s *Silicon) control(connection net.Conn) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(10 * time.Second))
	var r request
	if json.NewDecoder(connection).Decode(&r) != nil {
		return
	}
	var answer response
	var err error
	switch r.Operation {
	case "load":
		err = s.Load(r.Module)
	case "unload":
		err = s.Unload(r.Module.Name)
	case "modules":
		answer.Modules = s.Modules()
	case "flash":
		connection.SetDeadline(time.Time{}) // writing takes its time
		err = s.Write(r.Chip, r.Version)
		connection.SetDeadline(time.Now().Add(10 * time.Second))
	case "factory":
		err = s.Factory(r.Version)
	case "create-vnpu":
		err = s.CreateVNPU(r.Chip, r.Template, r.VNPU)
	case "destroy-vnpu":
		err = s.DestroyVNPU(r.Chip, r.VNPU)
	case "vnpu-cfg-recover":
		err = s.SetRecover(r.On)
	case "set-address":
		err = s.SetAddress(r.Chip, r.Address)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	json.NewEncoder(connection).Encode(answer)
}

// Kernel is the silicon as kmod's programs see it.
type Kernel struct{ Socket string }

// Load loads a module.
func (k Kernel) Load(module kmod.Info) error {
	_, err := k.call(request{Operation: "load", Module: module})
	return err
}

// Unload removes a module.
func (k Kernel) Unload(name string) error {
	_, err := k.call(request{Operation: "unload", Module: kmod.Info{Name: name}})
	return err
}

// Factory makes all chips new: see Silicon.Factory.
func (k Kernel) Factory(version string) error {
	_, err := k.call(request{Operation: "factory", Version: version})
	return err
}

// Modules are the loaded modules and who uses each.
func (k Kernel) Modules() (map[string][]string, error) {
	answer, err := k.call(request{Operation: "modules"})
	return answer.Modules, err
}

func (k Kernel) call(r request) (response, error) {
	var answer response
	connection, err := net.Dial("unix", k.Socket)
	if err != nil {
		return answer, err
	}
	defer connection.Close()
	if err := json.NewEncoder(connection).Encode(r); err != nil {
		return answer, err
	}
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return answer, err
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}
