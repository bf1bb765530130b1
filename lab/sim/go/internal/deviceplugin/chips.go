// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package deviceplugin behaves like ascend-k8sdeviceplugin v7.3.0, and writes what 26.1 adds.
package deviceplugin

import (
	"fmt"
	"strconv"
	"strings"

	"npuops/labsim/internal/query"
)

const program = "device-plugin"

// callsPerChip is how often a discovery calls the library for one chip: it matters when each call is slow.
const callsPerChip = 4

// Kind is what the chips of a node are called.
type Kind struct {
	Resource string // huawei.com/Ascend910
	Type     string // Ascend910: of IDs, the endpoint, keys
	Card     string // Ascend910B: the real card
	Event    bool   // faults come by event, not by polling
	Shared   bool   // its chips can be offered several times; for others -shareDevCount has no effect
}

var kinds = map[string]Kind{
	"910B": {"huawei.com/Ascend910", "Ascend910", "Ascend910B", true, false},
	"310P": {"huawei.com/Ascend310P", "Ascend310P", "Ascend310P", false, true},
}

// discover asks for everything, chip after chip.
func discover() ([]query.Chip, error) {
	reply := query.Ask(program)
	if reply.Result != 0 {
		return nil, fmt.Errorf("get card list failed, error code: %d", reply.Result)
	}
	for range len(reply.Chips) * callsPerChip {
		query.Ask(program)
	}
	return reply.Chips, nil
}

// ID is the device's name for the kubelet, by its physical ID.
func (k Kind) ID(chip query.Chip) string { return k.Type + "-" + chip["phy"] }

// IDs are the devices' names of a chip that is offered so many times: Ascend310P-0, or Ascend310P-0-0 and so on.
func (k Kind) IDs(chip query.Chip, shares uint) []string {
	if shares <= 1 || !k.Shared {
		return []string{k.ID(chip)}
	}
	var ids []string
	for index := range shares {
		ids = append(ids, fmt.Sprintf("%s-%d", k.ID(chip), index))
	}
	return ids
}

// number is the physical ID in a device's name.
func number(id string) int {
	_, rest, _ := strings.Cut(id, "-")
	physical, _, _ := strings.Cut(rest, "-")
	value, _ := strconv.Atoi(physical)
	return value
}
