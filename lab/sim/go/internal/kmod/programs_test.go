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
	type buffer = bytes.Buffer
	insmod := func(arguments ...string) func(*buffer) int {
		return func(b *buffer) int { return Insmod(k, arguments, b) }
	}
	modprobe := func(arguments ...string) func(*buffer) int {
		return func(b *buffer) int { return Modprobe(k, arguments, b, b) }
	}
	for _, test := range []struct {
		run    func(*buffer) int
		status int
		words  string
	}{
		{insmod("/nowhere/a.ko"), 1, "could not load module /nowhere/a.ko: No such file or directory"},
		{insmod(text), 1, "could not insert module " + text + ": Invalid module format"},
		{insmod(), 1, "missing filename"},
		{func(b *buffer) int { return Rmmod(k, []string{"used"}, b) }, 1, "rmmod: ERROR: Module used is in use by: user"},
		{modprobe("nothing"), 1, "modprobe: FATAL: Module nothing not found in directory /lib/modules/"},
		{modprobe("-q", "nothing"), 1, ""},
		{modprobe("-a", "fat", "vfat"), 0, ""},
		{modprobe("--", "overlay", "parameter=1"), 0, ""},
	} {
		var out bytes.Buffer
		status := test.run(&out)
		noisy := test.words == "" && out.Len() > 0
		if status != test.status || !strings.Contains(out.String(), test.words) || noisy {
			t.Errorf("status %d, wanted %d with %q:\n%s", status, test.status, test.words, out.String())
		}
	}
}
