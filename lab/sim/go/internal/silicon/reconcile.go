// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"npuops/labsim/internal/faults"
)

// Watch makes files and device nodes follow the state, the clock and the faults. It does not return.
func (s *Silicon) Watch() {
	for ; ; time.Sleep(500 * time.Millisecond) {
		s.mutex.Lock()
		s.reconcile()
		s.mutex.Unlock()
	}
}

func (s *Silicon) reconcile() {
	broken := faults.Read()
	s.showModules(broken)
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
			"initstate": "live", "refcnt": strconv.Itoa(len(users)), "coresize": strconv.FormatInt(module.Size, 10), "taint": "OE",
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
	for _, chip := range s.chips {
		directory := filepath.Join(s.run, "pci", chip.Function.Address)
		kept := filepath.Join(s.run, "pci-kept", chip.Function.Address)
		if broken.Hits("chip-lost", chip.Phy) {
			for name, text := range map[string]string{"revision": "0xff", "config": strings.Repeat("\xff", 256)} {
				if content, err := os.ReadFile(filepath.Join(directory, name)); err == nil && !strings.HasPrefix(string(content), text) {
					if os.MkdirAll(kept, 0o755) == nil && os.WriteFile(filepath.Join(kept, name), content, 0o644) == nil {
						show(filepath.Join(directory, name), text)
					}
				}
			}
		} else if !s.cardHit(broken, chip.Card) {
			for _, name := range []string{"revision", "config"} {
				if content, err := os.ReadFile(filepath.Join(kept, name)); err == nil {
					os.WriteFile(filepath.Join(directory, name), content, 0o644) //nolint:errcheck // /run is writable
					os.Remove(filepath.Join(kept, name))
				}
			}
		}
	}
}

// cardHit says whether a mate on the same card is lost: they share one PCI function.
func (s *Silicon) cardHit(broken faults.Set, card int) bool {
	for _, chip := range s.chips {
		if chip.Card == card && broken.Hits("chip-lost", chip.Phy) {
			return true
		}
	}
	return false
}

// show writes a file as sysfs would have it, unless it says so already.
func show(path, text string) {
	if !strings.HasPrefix(text, "\xff") {
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
