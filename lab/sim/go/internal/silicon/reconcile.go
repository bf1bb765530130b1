// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"log"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"npuops/labsim/internal/faults"
)

const (
	lookEvery  = 500 * time.Millisecond
	writeEvery = 5 * time.Second
)

// Watch makes files and device nodes follow the state, the clock and the faults. It does not return.
//
// Most looks find nothing new, and several labs share a machine: then all is gone through only every so often.
func (s *Silicon) Watch() {
	for ; ; time.Sleep(lookEvery) {
		s.mutex.Lock()
		if !s.settled() {
			s.reconcile()
		}
		s.mutex.Unlock()
	}
}

// settled says whether the faults are those of the last time, which is not long ago, and no device node waits for its moment.
func (s *Silicon) settled() bool {
	broken := s.broken()
	came := s.state.Up.Add(s.devicesAfter(broken) + ownerAfter)
	return time.Since(s.shown) < writeEvery && s.shown.Sub(came) > ownerAfter && reflect.DeepEqual(broken, s.shownBroken)
}

func (s *Silicon) reconcile() {
	broken := s.broken()
	s.shown, s.shownBroken = time.Now(), broken
	s.showModules(broken)
	s.showNumbers()
	s.showDevices(broken)
	s.showLostFunctions(broken)
}

// showModules writes /sys/module's entries of what is loaded.
func (s *Silicon) showModules(broken faults.Set) {
	top := filepath.Join(s.run, "module")
	entries, _ := os.ReadDir(top)
	for _, entry := range entries {
		if entry.IsDir() && s.loaded(entry.Name()) == nil {
			os.RemoveAll(filepath.Join(top, entry.Name()))
		}
	}
	for _, module := range s.state.Modules {
		directory := filepath.Join(top, module.Name)
		users := s.users(module.Name)
		content := map[string]string{
			"initstate": "live", "taint": "OE",
			"refcnt": strconv.Itoa(len(users)), "coresize": strconv.FormatInt(module.Size, 10),
		}
		if module.InTree {
			content["taint"] = ""
		} else {
			content["version"] = module.Version
			if broken.Has("wrong-version") {
				content["version"] = s.version(broken)
			}
		}
		for name, text := range content {
			show(filepath.Join(directory, name), text)
		}
		s.showHolders(filepath.Join(directory, "holders"), users)
	}
}

func (s *Silicon) showHolders(directory string, users []string) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		log.Print(err)
	}
	entries, _ := os.ReadDir(directory)
	for _, entry := range entries {
		if !strings.Contains(" "+strings.Join(users, " ")+" ", " "+entry.Name()+" ") {
			os.Remove(filepath.Join(directory, entry.Name()))
		}
	}
	for _, user := range users {
		os.Symlink("../../"+user, filepath.Join(directory, user)) //nolint:errcheck // it exists
	}
}

// showLostFunctions lets a PCI function read as ones, as it does when its link is gone.
func (s *Silicon) showLostFunctions(broken faults.Set) {
	lost := map[string]bool{}
	for _, chip := range s.chips {
		lost[chip.Function.Address] = lost[chip.Function.Address] || broken.Hits("chip-lost", chip.Phy)
	}
	for address, gone := range lost {
		directory, kept := filepath.Join(s.run, "pci", address), filepath.Join(s.run, "pci-kept", address)
		_, err := os.Stat(kept)
		if gone && err != nil {
			keep(directory, kept)
			show(filepath.Join(directory, "revision"), "0xff")
			show(filepath.Join(directory, "config"), ones)
		} else if !gone && err == nil {
			keep(kept, directory)
			os.RemoveAll(kept)
		}
	}
}

var ones = strings.Repeat("\xff", 256)

// keep copies what changes when a link is lost.
func keep(from, to string) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		log.Print(err)
	}
	for _, name := range []string{"revision", "config"} {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o644)
		}
		if err != nil {
			log.Print(err)
		}
	}
}

// show writes a file as sysfs would have it, unless it says so already.
func show(path, text string) {
	if text != ones {
		text += "\n"
	}
	if content, err := os.ReadFile(path); err == nil && string(content) == text {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Print(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Print(err)
	}
}
