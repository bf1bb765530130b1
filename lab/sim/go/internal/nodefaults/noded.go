// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package nodefaults

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/release"
)

// BMC stands in for the device by which upstream asks the BMC: a file with the code of one fault in each line.
var BMC = "/dev/ipmi0"

// Upstream's image has a file with the faults of each level. Faults of the others do nothing to the node.
var separates = []string{"2C000031"}

// Noded reports the faults of one node.
type Noded struct {
	api  API
	node string
	last string
}

// NewNoded makes one for the node of that name.
func NewNoded(api API, node string) *Noded { return &Noded{api: api, node: node} }

type faultDev struct {
	DeviceType string
	DeviceId   int64 // as upstream writes it
	FaultCode  []string
	FaultLevel string
}

type faultDevInfo struct {
	FaultDevList []faultDev
	NodeStatus   string
}

// Report writes what the BMC says, if that has changed. A node without faults has no ConfigMap.
func (n *Noded) Report() error {
	text, err := os.ReadFile(BMC)
	if err != nil {
		return fmt.Errorf("open ipmi device failed, error: %w", err)
	}
	codes := strings.Fields(string(text))
	key := "codes: " + strings.Join(codes, " ")
	if key == n.last {
		return nil
	}
	if err := n.report(codes); err != nil {
		return err
	}
	n.last = key
	return nil
}

func (n *Noded) report(codes []string) error {
	name := nodeInfo + n.node
	if len(codes) == 0 {
		if err := n.api.Delete(collection(dlNamespace) + "/" + name); err != nil && !cluster.IsNotFound(err) {
			return err
		}
		return nil
	}
	info := faultDevInfo{NodeStatus: "Healthy"}
	for _, code := range codes {
		level := "NotHandleFault"
		if slices.Contains(separates, code) {
			level, info.NodeStatus = "SeparateFault", "UnHealthy"
		}
		info.FaultDevList = append(info.FaultDevList, faultDev{"CPU", 1, []string{code}, level})
	}
	inner, err := json.Marshal(info)
	if err != nil {
		return err
	}
	outer, err := json.Marshal(map[string]any{"NodeInfo": info, "CheckCode": fmt.Sprintf("%x", sha256.Sum256(inner))})
	if err != nil {
		return err
	}
	data := cluster.Object{"NodeInfo": string(outer)}
	if !release.Is73() {
		data["updateTime"] = time.Now().Format(time.RFC3339)
	}
	return write(n.api, dlNamespace, name, data)
}
