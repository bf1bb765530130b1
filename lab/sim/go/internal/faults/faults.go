// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package faults reads what `lab/fault` broke: one file per fault, its words are the fault's arguments.
package faults

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Directories of fault files: the first survives a reboot, the second does not.
var Directories = []string{"/etc/npusim/faults", "/run/npusim/faults"}

// Set is fault -> arguments.
type Set map[string][]string

// Read reads all directories; unreadable ones count as empty.
func Read() Set {
	set := Set{}
	for _, directory := range Directories {
		entries, _ := os.ReadDir(directory)
		for _, entry := range entries {
			content, err := os.ReadFile(filepath.Join(directory, entry.Name()))
			if err == nil && !strings.HasPrefix(entry.Name(), ".") {
				set[entry.Name()] = strings.Fields(string(content))
			}
		}
	}
	return set
}

// Add adds a fault as it is written in one line, unless the set has one of that kind.
func (s Set) Add(line string) {
	if words := strings.Fields(line); len(words) > 0 && !s.Has(words[0]) {
		s[words[0]] = words[1:]
	}
}

// Has says whether the fault is there.
func (s Set) Has(kind string) bool { _, there := s[kind]; return there }

// Word is the fault's i-th argument, or what is usual.
func (s Set) Word(kind string, i int, usual string) string {
	if words := s[kind]; i < len(words) {
		return words[i]
	}
	return usual
}

// Number is Word as a number; usual if it is none.
func (s Set) Number(kind string, i, usual int) int {
	if number, err := strconv.Atoi(s.Word(kind, i, "")); err == nil {
		return number
	}
	return usual
}

// Seconds is the fault's first argument as a time; 0 if the fault is not there.
func (s Set) Seconds(kind string, usual int) time.Duration {
	if !s.Has(kind) {
		return 0
	}
	return time.Duration(s.Number(kind, 0, usual)) * time.Second
}

// Hits says whether the fault is there and names the chip; "all" names every chip.
func (s Set) Hits(kind string, chip int) bool {
	word := s.Word(kind, 0, "0")
	return s.Has(kind) && (word == "all" || slices.Contains(strings.Split(word, ","), strconv.Itoa(chip)))
}
