// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package runc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBundle(t *testing.T) {
	for line, want := range map[string]string{
		"--root /r --log-format json create --bundle /b --pid-file /p id": "/b",
		"--root /r create --bundle=/b id":                                 "/b",
		"run -b /b id":                                                    "/b",
		"run id":                                                          ".",
		"--root /r delete id":                                             "",
		"--root /r start id":                                              "",
	} {
		if got := bundleOf(strings.Fields(line)); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestHookIsAdded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	before := `{"hooks":{"createContainer":[{"path":"/sbin/other"}],"poststop":[{"path":"/x"}]},"limit":9223372036854771712}`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := addHook(path); err != nil {
		t.Fatal(err)
	}
	content, _ := os.ReadFile(path)
	for _, part := range []string{`{"path":"/sbin/other"},{"args":["npusim","show-devices"],"path":"/usr/sbin/npusim"}`, `"poststop"`,
		`9223372036854771712`} {
		if !strings.Contains(string(content), part) {
			t.Errorf("no %s in %s", part, content)
		}
	}
}
