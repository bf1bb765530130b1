// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package library

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyRootsFilesAreTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs files of root")
	}
	top, err := os.MkdirTemp("/root", "library")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	path := filepath.Join(top, "a", "libdcmi.so")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := trusted(path); err != nil {
		t.Errorf("refused: %v", err)
	}
	if err := os.Chmod(filepath.Join(top, "a"), 0o775); err != nil {
		t.Fatal(err)
	}
	if err := trusted(path); err == nil || !strings.Contains(err.Error(), "may write it") {
		t.Errorf("a directory its group may write: %v", err)
	}
}
