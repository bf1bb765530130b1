// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
	"npuops/labsim/internal/kmod"
)

var (
	pcie    = kmod.Info{Name: "drv_pcie_host", Version: "25.5.0", Aliases: []string{"pci:v000019E5d0000D802sv*sd*bc12sc00i*"}}
	manager = kmod.Info{Name: "asdrv_dms", Depends: []string{"drv_pcie_host"}}
	hdc     = kmod.Info{Name: "drv_pcie_hdc_host", Depends: []string{"asdrv_dms", "drv_pcie_host"}}
)

// lab makes the silicon of a node with that many 910B.
func lab(t *testing.T, chips int) *Silicon {
	t.Helper()
	top := t.TempDir()
	faults.Directories = []string{filepath.Join(top, "faults")}
	for _, name := range []string{"faults", "run", "dev"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	node := hardware.Node{}
	for i := range chips {
		address := fmt.Sprintf("0000:c%d:00.0", i+1)
		node.Functions = append(node.Functions, hardware.Function{Address: address, Device: "0xd802"})
	}
	s, err := New(node, 0, filepath.Join(top, "run"), filepath.Join(top, "dev"), filepath.Join(top, "flash.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, s *Silicon, modules ...kmod.Info) {
	t.Helper()
	for _, module := range modules {
		if err := s.Load(module); err != nil {
			t.Fatalf("%s: %v", module.Name, err)
		}
	}
}

func fault(t *testing.T, kind, words string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(faults.Directories[0], kind), []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
}

func repair(t *testing.T, kind string) {
	t.Helper()
	if err := os.Remove(filepath.Join(faults.Directories[0], kind)); err != nil {
		t.Fatal(err)
	}
}

func chips(s *Silicon) int { return strings.Count(s.Reply("npu-smi"), "chip ") }

func TestChipsNeedTheWholeDriver(t *testing.T) {
	s := lab(t, 2)
	if err := s.Load(manager); !errors.Is(err, ErrSymbol) {
		t.Errorf("without what it depends on: %v", err)
	}
	load(t, s, pcie, manager)
	if chips(s) != 0 {
		t.Error("chips before the last module")
	}
	load(t, s, hdc)
	if chips(s) != 2 {
		t.Errorf("%d chips", chips(s))
	}
	if err := s.Load(hdc); !errors.Is(err, ErrExists) {
		t.Errorf("loaded twice: %v", err)
	}
}

func TestDriverOfAnotherFamily(t *testing.T) {
	s := lab(t, 1)
	wrong := pcie
	wrong.Aliases = []string{"pci:v000019E5d0000D500sv*sd*bc12sc00i*"}
	load(t, s, wrong, manager, hdc)
	if chips(s) != 0 {
		t.Error("a 310P driver brought a 910B up")
	}
}

func TestChipsDoNotSurviveRmmod(t *testing.T) {
	s := lab(t, 1)
	load(t, s, pcie, manager, hdc)
	if err := s.Unload("asdrv_dms"); err == nil {
		t.Error("a module in use was removed")
	}
	if err := s.Unload("drv_pcie_hdc_host"); err != nil {
		t.Fatal(err)
	}
	load(t, s, hdc)
	if chips(s) != 0 || !strings.HasPrefix(s.Reply("npu-smi"), "result -8005\n") {
		t.Error("not wedged")
	}
	again, err := New(s.node, 0, s.run, s.dev, s.flashFile)
	if err != nil || chips(again) != 0 {
		t.Errorf("wedged no more after a restart of the daemon: %v", err)
	}
}

func TestDelay(t *testing.T) {
	s := lab(t, 1)
	s.delay = time.Hour
	load(t, s, pcie, manager, hdc)
	if len(s.wantedDevices(faults.Read())) != 0 {
		t.Error("devices without delay")
	}
}

func TestFaults(t *testing.T) {
	says := func(words string) func(*Silicon) bool {
		return func(s *Silicon) bool { return strings.Contains(s.Reply("npu-smi"), words) }
	}
	for kind, test := range map[string]struct {
		words string
		holds func(*Silicon) bool
	}{
		"wedge":       {"", says("result -8005\n")},
		"chip-lost":   {"1", func(s *Silicon) bool { return chips(s) == 2 && !says("phy=1 ")(s) }},
		"fewer-chips": {"2", func(s *Silicon) bool { return chips(s) == 1 }},
		"not-ready":   {"0", says("result=-8012 ")},
		"alarm":       {"0 80E01801 Critical", says("health=3 code=80E01801 ")},
		"no-dev-node": {"0", func(s *Silicon) bool {
			_, there := s.wantedDevices(faults.Read())["davinci0"]
			return !there && chips(s) == 3
		}},
		"wrong-version": {"1.2.3", func(s *Silicon) bool {
			content, _ := os.ReadFile(filepath.Join(s.run, "module", "drv_pcie_host", "version"))
			return says("driver 1.2.3\n")(s) && string(content) == "1.2.3\n"
		}},
		"slow-devices": {"60", func(s *Silicon) bool { return chips(s) == 0 }},
		"smi-fails": {"-8020", func(s *Silicon) bool {
			return says("smi_fails -8020\n")(s) && !strings.Contains(s.Reply("device-plugin"), "smi_fails")
		}},
		"smi-garbage": {"", says("smi_garbage 1\n")},
		"load-fails": {"ts_agent", func(s *Silicon) bool {
			err := s.Load(kmod.Info{Name: "ts_agent", InTree: true})
			s.Unload("ts_agent") //nolint:errcheck // may not be loaded
			return errors.Is(err, ErrDevice)
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := lab(t, 3)
			load(t, s, pcie, manager, hdc)
			if test.holds(s) {
				t.Fatal("holds without the fault")
			}
			fault(t, kind, test.words)
			s.reconcile()
			if !test.holds(s) {
				t.Errorf("does not hold:\n%s", s.Reply("npu-smi"))
			}
		})
	}
}

func TestModuleView(t *testing.T) {
	s := lab(t, 1)
	load(t, s, pcie, manager)
	directory := filepath.Join(s.run, "module", "drv_pcie_host")
	for name, want := range map[string]string{"initstate": "live\n", "refcnt": "1\n", "version": "25.5.0\n"} {
		if content, err := os.ReadFile(filepath.Join(directory, name)); err != nil || string(content) != want {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if _, err := os.Stat(filepath.Join(directory, "holders", "asdrv_dms")); err != nil {
		t.Error(err)
	}
	if err := s.Unload("asdrv_dms"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.run, "module", "asdrv_dms")); err == nil {
		t.Error("an unloaded module is still shown")
	}
}

func TestNumbersOfTheDriver(t *testing.T) {
	s := lab(t, 1)
	kernel := "Character devices:\n  1 mem\n 10 misc\n\nBlock devices:\n  7 loop\n"
	if err := os.WriteFile(filepath.Join(s.run, "devices-of-kernel"), []byte(kernel), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		content, _ := os.ReadFile(filepath.Join(s.run, "devices"))
		return string(content)
	}
	load(t, s, pcie, manager)
	if shown() != kernel {
		t.Errorf("numbers before the last module:\n%s", shown())
	}
	load(t, s, hdc)
	major := s.wantedDevices(faults.Read())["davinci0"] >> 8
	line := fmt.Sprintf("\n 10 misc\n%d devdrv-cdev\n", major)
	if text := shown(); !strings.Contains(text, line) || !strings.HasSuffix(text, "\n\nBlock devices:\n  7 loop\n") {
		t.Errorf("no %q in\n%s", line, text)
	}
	if err := s.Unload("drv_pcie_hdc_host"); err != nil {
		t.Fatal(err)
	}
	if shown() != kernel {
		t.Errorf("numbers of a driver that is gone:\n%s", shown())
	}
}

func TestBadDriverBringsItsFault(t *testing.T) {
	s := lab(t, 2)
	bad := pcie
	bad.Simulate = "fewer-chips 1"
	load(t, s, bad, manager, hdc)
	if chips(s) != 1 {
		t.Errorf("%d chips with a driver that loses one", chips(s))
	}
	for _, name := range []string{"drv_pcie_hdc_host", "asdrv_dms", "drv_pcie_host"} {
		if err := s.Unload(name); err != nil {
			t.Fatal(err)
		}
	}
	s = lab(t, 2)
	bad.Simulate = "wrong-version 24.1.0"
	load(t, s, bad, manager, hdc)
	if !strings.Contains(s.Reply("npu-smi"), "driver 24.1.0\n") {
		t.Error(s.Reply("npu-smi"))
	}
	s = lab(t, 2)
	bad.Simulate = "load-fails drv_pcie_host"
	if err := s.Load(bad); !errors.Is(err, ErrDevice) {
		t.Errorf("%v", err)
	}
	load(t, s, pcie, manager, hdc)
	if chips(s) != 2 {
		t.Error("the good driver after the bad one")
	}
}

func TestHangFreezesTheNode(t *testing.T) {
	kept := freeze
	defer func() { freeze = kept }()
	frozen := 0
	freeze = func() { frozen++ }
	s := lab(t, 1)
	bad := pcie
	bad.Simulate = "hang"
	load(t, s, bad)
	if frozen != 1 {
		t.Errorf("frozen %d times", frozen)
	}
	s = lab(t, 1)
	load(t, s, pcie, manager, hdc)
	if frozen != 1 {
		t.Error("a good driver froze the node")
	}
}
