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
	"strconv"
	"strings"
	"time"
)

// Firmware is the one that goes with HDK 25.5, and what new chips have.
const Firmware = "7.8.0.6.201"

// FlashFile keeps what is in the chips over reboots.
const FlashFile = "/etc/npusim/flash.json"

// Cell is the flash of one chip.
type Cell struct {
	Chip int `json:"chip"`
	// Running is the firmware that the chip took at the last power-on.
	Running string `json:"running"`
	// Flash is what it takes at the next one.
	Flash string `json:"flash"`
	// Writes counts how often the flash was erased and written, or begun to be.
	Writes int `json:"writes"`
	// Unfinished is the firmware of a write that has begun and has not ended: one of now, or one that lost its power.
	Unfinished string `json:"unfinished"`
}

// Errors of writing the flash.
var (
	ErrNoDriver = errors.New("the driver does not reach the chip")
	ErrBusy     = errors.New("the flash is being written")
	ErrFlash    = errors.New("the flash cannot be written")
)

// readFlash reads what the last boot left; chips that nobody knows yet are new.
func (s *Silicon) readFlash() error {
	content, err := os.ReadFile(s.flashFile)
	if err == nil {
		err = json.Unmarshal(content, &s.flash)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", s.flashFile, err)
	}
	s.flash = s.flash[:min(len(s.flash), len(s.chips))]
	for len(s.flash) < len(s.chips) {
		s.flash = append(s.flash, Cell{Chip: len(s.flash), Running: Firmware, Flash: Firmware})
	}
	return nil
}

// powerOn lets every chip take the firmware in its flash, unless a fault keeps it from doing so.
func (s *Silicon) powerOn() error {
	broken := s.broken()
	for i := range s.flash {
		if !broken.Hits("flash-ignored", i) {
			s.flash[i].Running = s.flash[i].Flash
		}
	}
	return s.keepFlash()
}

func (s *Silicon) keepFlash() error {
	if len(s.flash) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.flashFile), 0o755); err != nil {
		return err
	}
	return writeJSON(s.flashFile, s.flash)
}

// Write writes a firmware to the flash of a chip, which takes it at the next power-on.
func (s *Silicon) Write(chip int, version string) error {
	wait, err := s.begin(chip, version)
	if err != nil {
		return err
	}
	s.program(wait)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.writing, chip)
	s.flash[chip].Flash, s.flash[chip].Unfinished = version, ""
	log.Printf("chip %d: firmware %s is in the flash", chip, version)
	return s.keepFlash()
}

// begin erases the flash and says how long it takes to write it. An erased one has a copy of what was there before.
func (s *Silicon) begin(chip int, version string) (time.Duration, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	broken := s.broken()
	switch {
	case chip < 0 || chip >= len(s.flash) || version == "" || s.result(broken) != 0:
		return 0, ErrNoDriver
	case broken.Hits("chip-lost", chip) || broken.Hits("not-ready", chip):
		return 0, ErrNoDriver
	case s.writing[chip]:
		return 0, ErrBusy
	case broken.Hits("flash-fails", chip):
		return 0, ErrFlash
	}
	s.writing[chip] = true
	s.flash[chip].Writes++
	s.flash[chip].Unfinished = version
	return broken.Seconds("slow-flash", 30), s.keepFlash()
}

// program takes that time, or until the chip is no longer slow.
func (s *Silicon) program(wait time.Duration) {
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s.mutex.Lock()
		slow := s.broken().Seconds("slow-flash", 30) > 0
		s.mutex.Unlock()
		if !slow {
			return
		}
	}
}

// Factory makes all chips new: with that firmware running, and flash that was never written. Empty: the usual firmware.
func (s *Silicon) Factory(version string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if version == "" {
		version = Firmware
	}
	for i := range s.flash {
		s.flash[i] = Cell{Chip: i, Running: version, Flash: version}
	}
	return s.keepFlash()
}

// fits says whether the loaded driver is one for the firmware that the chips run.
func (s *Silicon) fits() bool {
	pcie := s.loaded("drv_pcie_host")
	if pcie == nil || len(pcie.Firmware) != 2 {
		return true
	}
	for _, cell := range s.flash {
		if compare(cell.Running, pcie.Firmware[0]) < 0 || compare(cell.Running, pcie.Firmware[1]) > 0 {
			return false
		}
	}
	return true
}

// compare orders versions by their numbers.
func compare(a, b string) int {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(left), len(right)) {
		x, _ := strconv.Atoi(left[i])
		y, _ := strconv.Atoi(right[i])
		if x != y {
			return x - y
		}
	}
	return len(left) - len(right)
}

// writeJSON replaces a file, or leaves it.
func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		err = os.WriteFile(path+".new", append(content, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}
