// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package kmod

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kernel records what is loaded; refuses names it was told to.
type kernel struct {
	loaded map[string][]string
	refuse map[string]error
}

func (k *kernel) Load(info Info) error {
	if err := k.refuse[info.Name]; err != nil {
		return err
	}
	k.loaded[info.Name] = nil
	return nil
}

func (k *kernel) Unload(name string) error {
	if err := k.refuse[name]; err != nil {
		return err
	}
	delete(k.loaded, name)
	return nil
}

func (k *kernel) Modules() (map[string][]string, error) { return k.loaded, nil }

func TestWordsOfKmod(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.ko")
	if err := os.WriteFile(text, []byte("no ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kernel{map[string][]string{"used": nil}, map[string]error{"used": errors.New("is in use by: user")}}
	for _, test := range []struct {
		run    func(*bytes.Buffer) int
		status int
		words  string
	}{
		{func(b *bytes.Buffer) int { return Insmod(k, []string{"/nowhere/a.ko"}, b) }, 1, "could not load module /nowhere/a.ko: No such file or directory"},
		{func(b *bytes.Buffer) int { return Insmod(k, []string{text}, b) }, 1, "could not insert module " + text + ": Invalid module format"},
		{func(b *bytes.Buffer) int { return Insmod(k, nil, b) }, 1, "missing filename"},
		{func(b *bytes.Buffer) int { return Rmmod(k, []string{"used"}, b) }, 1, "rmmod: ERROR: Module used is in use by: user"},
		{func(b *bytes.Buffer) int { return Modprobe(k, []string{"no_such_thing"}, b, b) }, 1, "modprobe: FATAL: Module no_such_thing not found in directory /lib/modules/"},
		{func(b *bytes.Buffer) int { return Modprobe(k, []string{"-q", "no_such_thing"}, b, b) }, 1, ""},
		{func(b *bytes.Buffer) int { return Modprobe(k, []string{"-a", "fat", "vfat"}, b, b) }, 0, ""},
		{func(b *bytes.Buffer) int { return Modprobe(k, []string{"--", "overlay", "parameter=1"}, b, b) }, 0, ""},
	} {
		var out bytes.Buffer
		if status := test.run(&out); status != test.status || !strings.Contains(out.String(), test.words) || (test.words == "" && out.Len() > 0) {
			t.Errorf("status %d, wanted %d with %q:\n%s", status, test.status, test.words, out.String())
		}
	}
}
