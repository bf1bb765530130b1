// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// reboot is the silicon at the next boot, with no driver yet.
func reboot(t *testing.T, s *Silicon) *Silicon {
	t.Helper()
	if err := os.Remove(s.stateFile()); err != nil {
		t.Fatal(err)
	}
	again, err := New(s.node, 0, s.run, s.dev, s.flashFile)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestFirmwareIsTakenAtTheNextBoot(t *testing.T) {
	s := lab(t, 2)
	if err := s.Write(0, "8.2.0.1.220"); !errors.Is(err, ErrNoDriver) {
		t.Errorf("without a driver: %v", err)
	}
	load(t, s, pcie, manager, hdc)
	if err := s.Write(2, "8.2.0.1.220"); !errors.Is(err, ErrNoDriver) {
		t.Errorf("a chip that is not there: %v", err)
	}
	if err := s.Write(0, "8.2.0.1.220"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.Reply("npu-smi"), "8.2.0.1.220") {
		t.Error("it runs at once")
	}
	s = reboot(t, s)
	load(t, s, pcie, manager, hdc)
	if text := s.Reply("npu-smi"); strings.Count(text, "firmware=8.2.0.1.220\n") != 1 || s.flash[0].Writes != 1 {
		t.Error(text)
	}
}

func TestOneWriteAtATime(t *testing.T) {
	s := lab(t, 1)
	load(t, s, pcie, manager, hdc)
	fault(t, "slow-flash", "3600")
	done := make(chan error)
	go func() { done <- s.Write(0, "8.2.0.1.220") }()
	for s.unfinished(0) == "" {
		time.Sleep(time.Millisecond)
	}
	if err := s.Write(0, "7.8.0.7.220"); !errors.Is(err, ErrBusy) {
		t.Errorf("a second write: %v", err)
	}
	repair(t, "slow-flash")
	if err := <-done; err != nil || s.flash[0].Flash != "8.2.0.1.220" || s.flash[0].Writes != 1 {
		t.Errorf("%v, %v", err, s.flash[0])
	}
}

// unfinished is what is being written, for who does not hold the mutex.
func (s *Silicon) unfinished(chip int) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.flash[chip].Unfinished
}

func TestDriversRunSomeFirmware(t *testing.T) {
	for firmware, want := range map[string]int{"7.0.0": 1, "7.8.0.6.201": 1, "7.8.99": 1, "7.10.0": 0, "8.2.0.1.220": 0, "6.4.12.1.241": 0} {
		s := lab(t, 1)
		if err := s.Factory(firmware); err != nil {
			t.Fatal(err)
		}
		old := pcie
		old.Firmware = []string{"7.0.0", "7.8.99"}
		load(t, s, old, manager, hdc)
		if chips(s) != want {
			t.Errorf("firmware %s: %d chips", firmware, chips(s))
		}
	}
}
