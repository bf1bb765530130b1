// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	s := lab(t, 2)
	load(t, s, pcie, manager, hdc)
	if reply := s.Reply("hccn_tool"); strings.Count(reply, " port=1 weak=0 ip= ") != 2 {
		t.Errorf("ports without addresses: %s", reply)
	}
	s.node.Number = 11
	has := func(words string) {
		t.Helper()
		if reply := s.Reply("hccn_tool"); !strings.Contains(reply, words+" ") {
			t.Errorf("no %q in %s", words, reply)
		}
	}
	has(" port=1 weak=0 ip=10.64.11.10")
	has(" port=1 weak=0 ip=10.64.11.11")
	fault(t, "link-down", "1")
	has(" port=1 weak=0 ip=10.64.11.10")
	has(" port=0 weak=0 ip=10.64.11.11")
	fault(t, "optical-weak", "0")
	has(" port=1 weak=1 ip=10.64.11.10")
	fault(t, "stale-address", "0")
	has(" port=1 weak=1 ip=10.99.11.10")
	fault(t, "duplicate-address", "0 10.64.12.13")
	has(" port=1 weak=1 ip=10.64.12.13")
}
