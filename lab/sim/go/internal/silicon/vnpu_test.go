// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// create makes a virtual NPU and fails the test unless it ends as wanted.
func create(t *testing.T, s *Silicon, phy int, template string, id int, wanted error) {
	t.Helper()
	if err := s.CreateVNPU(phy, template, id); !errors.Is(err, wanted) {
		t.Errorf("create %s on chip %d: %v instead of %v", template, phy, err, wanted)
	}
}

func TestVirtualNPUsHoldCores(t *testing.T) {
	s := lab(t, 2)
	create(t, s, 0, "vir10_3c_32g", 0, ErrNoDriver)
	load(t, s, pcie, manager, hdc)
	create(t, s, 0, "vir10_3c_32g", 0, nil)
	create(t, s, 0, "vir05_1c_16g", 115, nil)
	create(t, s, 0, "vir10_3c_32g", 0, ErrCores)
	create(t, s, 0, "vir05_1c_16g", 115, ErrVNPU)
	create(t, s, 0, "vir05_1c_16g", 116, ErrVNPU)
	create(t, s, 0, "vir02", 0, ErrTemplate)
	create(t, s, 1, "vir10_3c_32g", 116, nil)
	if got := s.free(0).Cores; got != 5 {
		t.Errorf("%d cores are free instead of 5", got)
	}
	for _, name := range []string{"vdavinci100", "vdavinci115", "vdavinci116"} {
		if _, there := s.wantedDevices(s.broken())[name]; !there {
			t.Errorf("no /dev/%s", name)
		}
	}
	if err := s.DestroyVNPU(1, 100); !errors.Is(err, ErrVNPU) {
		t.Errorf("destroyed through another chip: %v", err)
	}
	fault(t, "vnpu-held", "100")
	if err := s.DestroyVNPU(0, 100); !errors.Is(err, ErrInUse) {
		t.Errorf("destroyed while it was held: %v", err)
	}
	if text := s.Reply("npu-smi"); !strings.Contains(text, "vnpu id=100 phy=0 template=vir10_3c_32g group=0 used=1\n") {
		t.Errorf("not told:\n%s", text)
	}
	os.Remove(filepath.Join(filepath.Dir(s.dev), "faults", "vnpu-held"))
	if err := s.DestroyVNPU(0, 100); err != nil {
		t.Error(err)
	}
	create(t, s, 0, "vir10_3c_32g", 0, nil)
}

func TestCreationThatFails(t *testing.T) {
	s := lab(t, 1)
	load(t, s, pcie, manager, hdc)
	fault(t, "vnpu-create-fails", "0 clean")
	create(t, s, 0, "vir10_3c_32g", 0, ErrCreate)
	if got := s.free(0).Cores; got != 20 {
		t.Errorf("%d cores are free instead of 20", got)
	}
	fault(t, "vnpu-create-fails", "0 leftover")
	create(t, s, 0, "vir10_3c_32g", 0, ErrCreate)
	if got := s.free(0).Cores; got != 10 {
		t.Errorf("%d cores are free instead of 10", got)
	}
}

func TestVirtualNPUsAfterAReboot(t *testing.T) {
	s := lab(t, 1)
	load(t, s, pcie, manager, hdc)
	create(t, s, 0, "vir10_3c_32g", 103, nil)
	again := func() int {
		t.Helper()
		os.Remove(s.stateFile())
		next, err := New(s.node, 0, s.run, s.dev, s.flashFile)
		if err != nil {
			t.Fatal(err)
		}
		return len(next.state.VNPUs)
	}
	if got := again(); got != 0 {
		t.Errorf("%d virtual NPUs without an installed npu-smi", got)
	}
	program := filepath.Join(filepath.Dir(s.dev), hostNpuSmi)
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := again(); got != 1 {
		t.Errorf("%d virtual NPUs instead of 1", got)
	}
	if err := s.SetRecover(false); err != nil {
		t.Fatal(err)
	}
	if got := again(); got != 0 {
		t.Errorf("%d virtual NPUs although recovery is off", got)
	}
}
