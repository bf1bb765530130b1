// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"os"
	"path/filepath"
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

// A node that boots with a file of addresses has none until the file is applied, in each boot.
func TestAddressesOfAFile(t *testing.T) {
	NetworkConfig = filepath.Join(t.TempDir(), "hccn.conf")
	t.Cleanup(func() { NetworkConfig = "/etc/hccn.conf" })
	if err := os.WriteFile(NetworkConfig, []byte("address_0=10.64.11.77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := lab(t, 2)
		s.node.Number = 11
		load(t, s, pcie, manager, hdc)
		if reply := s.Reply("hccn_tool"); strings.Count(reply, " ip= ") != 2 {
			t.Errorf("addresses without a recovery: %s", reply)
		}
		if err := s.SetAddress(0, "10.64.11.77"); err != nil {
			t.Fatal(err)
		}
		if reply := s.Reply("hccn_tool"); !strings.Contains(reply, " ip=10.64.11.77 ") || strings.Count(reply, " ip= ") != 1 {
			t.Errorf("not the address of the file: %s", reply)
		}
		fault(t, "recovery-fails", "0")
		if s.SetAddress(0, "10.64.11.78") == nil {
			t.Error("a recovery that fails")
		}
	}
}

// Without a file, the ports have addresses from the start, and a recovery changes one of them.
func TestRecoveryOfOne(t *testing.T) {
	s := lab(t, 2)
	s.node.Number = 11
	load(t, s, pcie, manager, hdc)
	if err := s.SetAddress(0, ""); err != nil {
		t.Fatal(err)
	}
	if reply := s.Reply("hccn_tool"); !strings.Contains(reply, " ip= ") || !strings.Contains(reply, " ip=10.64.11.11 ") {
		t.Errorf("more than one chip changed: %s", reply)
	}
}
