// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package runc stands before a node's real runc. On real hosts, the numbers of the driver are in every container's
// /proc/devices, because the kernel is the same. Here they are in a file of the node, and a container mounts a /proc of its
// own: so each container gets a hook that binds the file there.
package runc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Devices is the node's view of /proc/devices.
const Devices = "/run/npusim/devices"

// Programs are where the real runc may be.
var Programs = []string{"/usr/sbin/runc", "/usr/bin/runc"}

// Exec becomes the real runc, after the hook was added to a container that is to be created.
func Exec(arguments []string) error {
	if bundle := bundleOf(arguments[1:]); bundle != "" {
		if err := addHook(filepath.Join(bundle, "config.json")); err != nil {
			log.Printf("%s: %v", bundle, err) // a container without our view is better than none
		}
	}
	var err error
	for _, program := range Programs {
		err = errors.Join(err, syscall.Exec(program, arguments, os.Environ()))
	}
	return err
}

// bundleOf is the directory of the container that the command line creates, or empty.
func bundleOf(arguments []string) string {
	if !slices.Contains(arguments, "create") && !slices.Contains(arguments, "run") {
		return ""
	}
	for i, word := range arguments {
		if (word == "--bundle" || word == "-b") && i+1 < len(arguments) {
			return arguments[i+1]
		}
		if path, found := strings.CutPrefix(word, "--bundle="); found {
			return path
		}
	}
	return "."
}

func addHook(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		return err
	}
	hooks, _ := config["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
	}
	list, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(list, map[string]any{"path": "/usr/sbin/npusim", "args": []string{"npusim", "show-devices"}})
	config["hooks"] = hooks
	if content, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// ShowDevices is the hook: it runs in the container's mount namespace, before the container's root is its root.
func ShowDevices(state io.Reader) error {
	var container struct{ Bundle string }
	if err := json.NewDecoder(state).Decode(&container); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(container.Bundle, "config.json"))
	if err != nil {
		return err
	}
	var config struct{ Root struct{ Path string } }
	if err := json.Unmarshal(content, &config); err != nil {
		return err
	}
	root := config.Root.Path
	if !filepath.IsAbs(root) {
		root = filepath.Join(container.Bundle, root)
	}
	target := filepath.Join(root, "proc", "devices")
	if err := syscall.Mount(Devices, target, "", syscall.MS_BIND, ""); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("bind %s to %s: %w", Devices, target, err)
	}
	return nil
}
