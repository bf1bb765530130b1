// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package release tells which release of MindCluster a component stands in for.
package release

import (
	"os"
	"strings"
	"time"
)

// Name is the release, such as v26.1.0: the tag of the image, which has it in its environment.
func Name() string {
	if name := os.Getenv("NPUSIM_RELEASE"); name != "" {
		return name
	}
	return "v26.1.0"
}

// Is73 tells the version line 7.3 from those after it.
func Is73() bool { return strings.HasPrefix(Name(), "v7.3.") }

// ResetTimeout is the default of -deviceResetTimeout, in seconds.
func ResetTimeout() int {
	if Is73() {
		return 60
	}
	return 600
}

// Sleep waits between two tries.
var Sleep = time.Sleep

// Try calls start. What fails at the start ends a program of 7.3 at once; one of 26.1 tries again every 10 s, up to limit.
func Try(limit time.Duration, start func() error) error {
	const pause = 10 * time.Second
	for waited := pause; ; waited += pause {
		err := start()
		if err == nil || Is73() || waited >= limit {
			return err
		}
		Sleep(pause)
	}
}
