// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package release

import (
	"errors"
	"testing"
	"time"
)

func TestWhoTriesAgain(t *testing.T) {
	defer func() { Sleep = time.Sleep }()
	for _, test := range []struct {
		release       string
		worksAt, want int // which try
	}{{"v7.3.2", 2, 1}, {"v26.1.0", 2, 2}, {"v26.1.0", 99, 60}} {
		t.Setenv("NPUSIM_RELEASE", test.release)
		var slept time.Duration
		Sleep = func(pause time.Duration) { slept += pause }
		tries := 0
		err := Try(600*time.Second, func() error {
			if tries++; tries < test.worksAt {
				return errors.New("wedged")
			}
			return nil
		})
		if tries != test.want || (err == nil) != (tries == test.worksAt) || slept != time.Duration(tries-1)*10*time.Second {
			t.Errorf("%+v: %d tries, %s, %v", test, tries, slept, err)
		}
	}
}
