// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package deviceplugin behaves like ascend-k8sdeviceplugin v7.3.0, and writes what 26.1 adds.
package deviceplugin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"npuops/labsim/internal/logging"
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
func discover() (query.Reply, error) {
	reply := query.Ask(program)
	if reply.Result != 0 {
		return reply, fmt.Errorf("get card list failed, error code: %d", reply.Result)
	}
	for range len(reply.Chips) * callsPerChip {
		query.Ask(program)
	}
	return reply, nil
}

// Offer is what the kubelet gets under one name.
type Offer struct {
	Kind Kind
	IDs  []string
}

// Offers are all that the node's chips are offered as: whole chips first, then each type of virtual NPU. A chip that is divided is
// not offered itself.
func (k Kind) Offers(reply query.Reply, shares uint) ([]Offer, error) {
	whole, offers := Offer{Kind: k}, []Offer{}
	for _, chip := range reply.Chips {
		divided := false
		for _, vnpu := range reply.VNPUs {
			if vnpu["phy"] != chip["phy"] {
				continue
			}
			divided = true
			suffix, known := virtualTypes[vnpu["template"]]
			if !known {
				logging.Error("check templatename failed, templatename is %s", vnpu["template"])
				continue
			}
			name := k.Type + "-" + suffix
			id := fmt.Sprintf("%s-%s-%s", name, vnpu["id"], chip["phy"])
			index := slices.IndexFunc(offers, func(o Offer) bool { return o.Kind.Type == name })
			if index < 0 {
				index = len(offers)
				offers = append(offers, Offer{Kind: k.virtual(name)})
			}
			offers[index].IDs = append(offers[index].IDs, id)
		}
		if divided && shares > 1 && k.Shared {
			return nil, errors.New("virtual device is exist, shareDevCount should be 1")
		}
		if !divided {
			whole.IDs = append(whole.IDs, k.IDs(chip, shares)...)
		}
	}
	if len(whole.IDs) > 0 {
		offers = append([]Offer{whole}, offers...)
	}
	return offers, nil
}

// virtual is the kind of a type of virtual NPUs.
func (k Kind) virtual(name string) Kind {
	return Kind{"huawei.com/" + name, name, k.Card, k.Event, false}
}

// virtualTypes are the names of virtual NPUs by their template: v7.3.2 and v26.1.0, pkg/common/device.go.
var virtualTypes = map[string]string{
	"vir01": "1c", "vir02": "2c", "vir02_1c": "2c.1cpu", "vir04": "4c", "vir04_3c": "4c.3cpu", "vir04_3c_ndvpp": "4c.3cpu.ndvpp",
	"vir04_4c_dvpp": "4c.4cpu.dvpp", "vir05_1c_16g": "5c.1cpu.16g", "vir10_3c_32g": "10c.3cpu.32g",
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

// number is the physical ID in a device's name: Ascend310P-0, Ascend310P-0-3 (shared) or Ascend310P-2c-100-0 (virtual).
func number(id string) int {
	words := strings.Split(id, "-")
	physical := words[1]
	if isVirtual(id) {
		physical = words[3]
	}
	value, _ := strconv.Atoi(physical)
	return value
}

func isVirtual(id string) bool { return strings.Count(id, "-") == 3 }

// nodeNumber is the number of a device's node: N of /dev/davinciN, or of /dev/vdavinciN.
func nodeNumber(id string) int {
	if !isVirtual(id) {
		return number(id)
	}
	value, _ := strconv.Atoi(strings.Split(id, "-")[2])
	return value
}
