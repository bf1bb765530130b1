// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package hardware knows which chips a node has: its PCI functions and what is on each.
package hardware

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"
)

// File is where the lab describes a node's cards.
const File = "/etc/npusim/hardware.json"

// Function is one PCI function with chips on it, as lspci shows it.
type Function struct {
	Address         string `json:"address"`
	Device          string `json:"device"`
	SubsystemVendor string `json:"subsystem_vendor"`
	SubsystemDevice string `json:"subsystem_device"`
}

// Node is the content of File.
type Node struct {
	Node string `json:"node"`
	// Number is in the addresses of the chips' network ports. 0: they have none.
	Number    int        `json:"number"`
	Functions []Function `json:"functions"`
}

// Model is what a PCI function carries.
type Model struct {
	Family  string // as in names of driver packages: 910B, 310P
	Name    string // what npu-smi prints, which is not what tells families apart
	Product string
	Chips   int // per function
	HBM     int // MB per chip, 0: none
	DDR     [2]int
	Board   string
	AICores int
	// What virtual NPUs are made of.
	Parts     Parts
	Templates []Template
}

// Chip is one chip with all its numbers: no two of them are the same thing.
type Chip struct {
	*Model
	Function Function
	Phy      int // N of /dev/davinciN
	Card     int // "NPU ID"
	Index    int // "Chip ID": which of the card's chips
}

var (
	model910B    = &Model{"910B", "910B3", "IT21HMDC_Bin5", 1, 65536, [2]int{}, "0x60", 20, parts910B, templates910B}
	model310PDuo = &Model{"310P", "310P3", "Atlas 300I Duo", 2, 0, [2]int{44278, 43693}, "0x1f", 8, parts310P48G, templates310P48G}
	model310P    = &Model{"310P", "310P3", "Atlas 300I Pro", 1, 0, [2]int{21525}, "0x1e", 8, parts310P24G, templates310P24G}
)

// ModelOf says what is on a function; an unknown device is an error of the lab.
func ModelOf(f Function) (*Model, error) {
	switch {
	case is(f.Device, 0xd802):
		return model910B, nil
	case is(f.Device, 0xd500) && is(f.SubsystemDevice, 0x0110):
		return model310PDuo, nil
	case is(f.Device, 0xd500):
		return model310P, nil
	}
	return nil, fmt.Errorf("%s: no simulation of PCI device %s", f.Address, f.Device)
}

// Load reads path; a missing file is a node without chips.
func Load(path string) (Node, error) {
	var node Node
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return node, nil
	}
	if err != nil {
		return node, err
	}
	if err := json.Unmarshal(content, &node); err != nil {
		return node, fmt.Errorf("%s: %w", path, err)
	}
	sort.Slice(node.Functions, func(i, j int) bool { return node.Functions[i].Address < node.Functions[j].Address })
	return node, nil
}

// Chips are all chips of the node in the order of their physical IDs.
func (n Node) Chips() ([]Chip, error) {
	var chips []Chip
	for i, f := range n.Functions {
		model, err := ModelOf(f)
		if err != nil {
			return nil, err
		}
		for index := range model.Chips {
			chips = append(chips, Chip{model, f, len(chips), cardID(model, i), index})
		}
	}
	return chips, nil
}

// cardID is "NPU ID": 0, 1, 2... on an 8-card server; cards in PCIe slots get numbers that look like anything.
func cardID(m *Model, i int) int {
	switch m {
	case model310PDuo:
		return 2944 + 32*i
	case model310P:
		return 4 + i
	}
	return i
}

// Bus is the address as npu-smi prints it.
func (f Function) Bus() string { return strings.ToUpper(f.Address) }

func is(text string, id uint64) bool {
	value, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 16)
	return err == nil && value == id
}
