// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"fmt"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
)

// port is the network port of a chip as hccn_tool shows it: 1 for yes.
type port struct {
	link, weak int
	address    string
}

// portOf says how the port of a chip is. All ports of a lab are in one network, 10.64.0.0/16. Chips without HBM have none.
func portOf(node hardware.Node, c hardware.Chip, broken faults.Set) port {
	var p port
	if c.HBM == 0 {
		return p
	}
	if !broken.Hits("link-down", c.Phy) {
		p.link = 1
	}
	if broken.Hits("optical-weak", c.Phy) {
		p.weak = 1
	}
	switch {
	case broken.Hits("duplicate-address", c.Phy):
		p.address = broken.Word("duplicate-address", 1, "10.64.12.10")
	case node.Number == 0:
	case broken.Hits("stale-address", c.Phy):
		p.address = fmt.Sprintf("10.99.%d.%d", node.Number, 10+c.Phy)
	default:
		p.address = fmt.Sprintf("10.64.%d.%d", node.Number, 10+c.Phy)
	}
	return p
}
