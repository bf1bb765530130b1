// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"errors"
	"fmt"
	"os"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
)

// port is the network port of a chip as hccn_tool shows it: 1 for yes.
type port struct {
	link, weak int
	address    string
}

// NetworkConfig is the node's file of addresses.
var NetworkConfig = "/etc/hccn.conf"

// forgetAddresses is what a boot does to the ports: none has an address until hccn_tool applies the file to it. Nodes that booted
// without a file have addresses all the time, so that a lab needs no file.
func (s *Silicon) forgetAddresses() {
	if _, err := os.Stat(NetworkConfig); err == nil {
		s.state.Addresses = map[int]string{}
	}
}

// SetAddress is `hccn_tool -cfg recovery` for one chip.
func (s *Silicon) SetAddress(chip int, address string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	broken := s.broken()
	if s.result(broken) != 0 || broken.Hits("recovery-fails", chip) {
		return errors.New("the chip does not take it")
	}
	if s.state.Addresses == nil {
		s.state.Addresses = map[int]string{}
		for _, c := range s.chips {
			s.state.Addresses[c.Phy] = usualAddress(s.node, c)
		}
	}
	s.state.Addresses[chip] = address
	return s.keep()
}

func usualAddress(node hardware.Node, c hardware.Chip) string {
	if node.Number == 0 {
		return ""
	}
	return fmt.Sprintf("10.64.%d.%d", node.Number, 10+c.Phy)
}

// portOf says how the port of a chip is. All ports of a lab are in one network, 10.64.0.0/16. Chips without HBM have none.
func (s *Silicon) portOf(c hardware.Chip, broken faults.Set) port {
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
	case s.state.Addresses != nil:
		p.address = s.state.Addresses[c.Phy]
	case s.node.Number != 0 && broken.Hits("stale-address", c.Phy):
		p.address = fmt.Sprintf("10.99.%d.%d", s.node.Number, 10+c.Phy)
	default:
		p.address = usualAddress(s.node, c)
	}
	return p
}
