// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
)

// VNPU is a virtual NPU: a part of a chip.
type VNPU struct {
	ID       int    `json:"id"`
	Phy      int    `json:"phy"`
	Template string `json:"template"`
	Group    int    `json:"group"`
}

// vnpuSettings are what outlives a reboot: the driver's /etc/vnpu.cfg.
type vnpuSettings struct {
	// Recover says whether the driver's script creates the virtual NPUs anew at boot.
	Recover bool   `json:"recover"`
	VNPUs   []VNPU `json:"vnpus"`
}

// Where the range of a chip's virtual NPUs begins, and how long it is: docs of MindCluster, 01_creating_vnpu.md.
const (
	firstVNPU    = 100
	vnpusPerChip = 16
	most310P     = 8
)

// Errors of virtual NPUs. What lacks is what npu-smi says before it asks the driver.
var (
	ErrTemplate = errors.New("template")
	ErrCores    = errors.New("cores")
	ErrAICPU    = errors.New("aicpu")
	ErrDVPP     = errors.New("dvpp")
	ErrVNPU     = errors.New("vnpu")
	ErrInUse    = errors.New("in use")
	ErrCreate   = errors.New("create")
)

// hostNpuSmi is the path in the driver's script that recovers virtual NPUs, whatever the driver's own directory.
const hostNpuSmi = "usr/local/sbin/npu-smi"

// vnpuFile keeps vnpuSettings beside the flash.
func (s *Silicon) vnpuFile() string { return filepath.Join(filepath.Dir(s.flashFile), "vnpu.json") }

func (s *Silicon) readVNPUSettings() (vnpuSettings, error) {
	settings := vnpuSettings{Recover: true}
	content, err := os.ReadFile(s.vnpuFile())
	if errors.Is(err, os.ErrNotExist) {
		return settings, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &settings)
	}
	return settings, err
}

// recoverVNPUs is what the driver's script does once a boot. Without an installed npu-smi it can do nothing.
func (s *Silicon) recoverVNPUs() {
	settings, err := s.readVNPUSettings()
	_, missing := os.Stat(filepath.Join(filepath.Dir(s.dev), hostNpuSmi))
	if err == nil && settings.Recover && missing == nil {
		s.state.VNPUs = settings.VNPUs
	}
}

// keepVNPUs saves the virtual NPUs of now: of this boot, and for the driver's script.
func (s *Silicon) keepVNPUs() error {
	settings, err := s.readVNPUSettings()
	if err == nil {
		settings.VNPUs = s.state.VNPUs
		err = s.writeVNPUSettings(settings)
	}
	if err == nil {
		err = s.save()
	}
	return err
}

func (s *Silicon) writeVNPUSettings(settings vnpuSettings) error {
	if err := os.MkdirAll(filepath.Dir(s.vnpuFile()), 0o755); err != nil {
		return err
	}
	return writeJSON(s.vnpuFile(), settings)
}

// SetRecover is `npu-smi set -t vnpu-cfg-recover`.
func (s *Silicon) SetRecover(on bool) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	settings, err := s.readVNPUSettings()
	if err != nil {
		return err
	}
	settings.Recover = on
	return s.writeVNPUSettings(settings)
}

// CreateVNPU makes a virtual NPU of a chip; id 0 takes the first free one.
func (s *Silicon) CreateVNPU(phy int, template string, id int) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	broken := s.broken()
	if err := s.reaches(phy, broken); err != nil {
		return err
	}
	chip := s.chips[phy]
	index := slices.IndexFunc(chip.Templates, func(t hardware.Template) bool { return t.Name == template })
	if index < 0 {
		return ErrTemplate
	}
	if err := lacks(s.free(phy), chip.Templates[index].Parts); err != nil {
		return err
	}
	vnpu := VNPU{ID: id, Phy: phy, Template: template, Group: len(s.vnpusOf(phy))}
	first := firstVNPU + phy*vnpusPerChip
	most := vnpusPerChip
	if chip.Family == "310P" {
		most = most310P
	}
	for candidate := first; vnpu.ID == 0 && candidate < first+most; candidate++ {
		if !s.hasVNPU(candidate) {
			vnpu.ID = candidate
		}
	}
	if vnpu.ID < first || vnpu.ID >= first+most || s.hasVNPU(vnpu.ID) {
		return ErrVNPU
	}
	fails := broken.Hits("vnpu-create-fails", phy)
	if fails && broken.Word("vnpu-create-fails", 1, "clean") == "clean" {
		return ErrCreate
	}
	s.state.VNPUs = append(s.state.VNPUs, vnpu)
	log.Printf("chip %d: virtual NPU %d, %s", phy, vnpu.ID, template)
	err := s.keepVNPUs()
	if fails { // and holds its cores all the same
		return ErrCreate
	}
	return err
}

// DestroyVNPU gives the parts of a virtual NPU back to its chip.
func (s *Silicon) DestroyVNPU(phy, id int) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	broken := s.broken()
	if err := s.reaches(phy, broken); err != nil {
		return err
	}
	index := slices.IndexFunc(s.state.VNPUs, func(v VNPU) bool { return v.ID == id && v.Phy == phy })
	switch {
	case index < 0:
		return ErrVNPU
	case held(id, broken):
		return ErrInUse
	}
	s.state.VNPUs = slices.Delete(s.state.VNPUs, index, index+1)
	log.Printf("chip %d: virtual NPU %d is destroyed", phy, id)
	return s.keepVNPUs()
}

// reaches says why the driver does not reach a chip, or nil.
func (s *Silicon) reaches(phy int, broken faults.Set) error {
	if phy < 0 || phy >= len(s.chips) || s.result(broken) != 0 || broken.Hits("chip-lost", phy) || broken.Hits("not-ready", phy) {
		return ErrNoDriver
	}
	return nil
}

func (s *Silicon) vnpusOf(phy int) []VNPU {
	return slices.DeleteFunc(slices.Clone(s.state.VNPUs), func(v VNPU) bool { return v.Phy != phy })
}

func (s *Silicon) hasVNPU(id int) bool {
	return slices.ContainsFunc(s.state.VNPUs, func(v VNPU) bool { return v.ID == id })
}

// free are the parts of a chip that no virtual NPU has.
func (s *Silicon) free(phy int) hardware.Parts {
	chip := s.chips[phy]
	free := chip.Parts
	for _, vnpu := range s.vnpusOf(phy) {
		for _, template := range chip.Templates {
			if template.Name == vnpu.Template {
				free = free.Without(template.Parts)
			}
		}
	}
	return free
}

func lacks(free, needed hardware.Parts) error {
	left := free.Without(needed)
	switch {
	case left.Cores < 0:
		return ErrCores
	case left.AICPU < 0:
		return ErrAICPU
	case left.VPC < 0 || left.VENC < 0 || left.VDEC < 0 || left.JPEGD < 0 || left.JPEGE < 0:
		return ErrDVPP
	}
	return nil
}

// held says whether a container is said to use the virtual NPU.
func held(id int, broken faults.Set) bool {
	return broken.Has("vnpu-held") && slices.Contains(strings.Split(broken.Word("vnpu-held", 0, ""), ","), fmt.Sprint(id))
}

// vnpuLines are the templates of the node's chips and the virtual NPUs of all, for npu-smi and the device plugin.
func (s *Silicon) vnpuLines(broken faults.Set) string {
	var out strings.Builder
	if len(s.chips) > 0 {
		fmt.Fprintf(&out, "parts %s\n", s.chips[0].Parts)
		for _, t := range s.chips[0].Templates {
			fmt.Fprintf(&out, "template name=%s %s\n", t.Name, t.Parts)
		}
	}
	settings, _ := s.readVNPUSettings()
	fmt.Fprintf(&out, "vnpu_recover %d\n", number(settings.Recover))
	for _, v := range s.state.VNPUs {
		fmt.Fprintf(&out, "vnpu id=%d phy=%d template=%s group=%d used=%d\n", v.ID, v.Phy, v.Template, v.Group, number(held(v.ID, broken)))
	}
	return out.String()
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// vnpuDevices are the names of the device nodes of all virtual NPUs, and their minor numbers.
func (s *Silicon) vnpuDevices() map[string]int {
	names := map[string]int{}
	for _, v := range s.state.VNPUs {
		names[fmt.Sprintf("vdavinci%d", v.ID)] = v.ID
	}
	return names
}
