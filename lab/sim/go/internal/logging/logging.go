// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package logging writes what upstream's components write: lines to stdout and to a file in a directory that must exist.
package logging

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"syscall"
)

// To opens the log file. The directory has to be there and to belong to the process's user, as upstream demands.
func To(file string) error {
	directory, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("check log file failed: %w", err)
	}
	if owner := directory.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() {
		return fmt.Errorf("check log file failed: owner of %s is %d", filepath.Dir(file), owner)
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("log init failed: %w", err)
	}
	log.SetFlags(log.Ldate | log.Lmicroseconds)
	log.SetOutput(io.MultiWriter(os.Stdout, out))
	return nil
}

// Info writes a line.
func Info(format string, words ...any) { log.Printf("[INFO]  "+format, words...) }

// Error writes a line.
func Error(format string, words ...any) { log.Printf("[ERROR] "+format, words...) }
