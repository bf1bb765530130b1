// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package release tells which release of MindCluster a component stands in for.
package release

import (
	"os"
	"strings"
)

// Name is the release, such as v26.1.0: the tag of the image, which has it in its environment.
func Name() string {
	if name := os.Getenv("NPUSIM_RELEASE"); name != "" {
		return name
	}
	return "v26.1.0"
}

// Is73 tells the train 7.3 from those after it.
func Is73() bool { return strings.HasPrefix(Name(), "v7.3.") }
