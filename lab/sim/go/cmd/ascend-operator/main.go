// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command ascend-operator is the lab's MindCluster ascend-operator: the same flags, needs and effects for PyTorch jobs.
package main

import (
	"flag"
	"os"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/operator"
	"npuops/labsim/internal/program"
)

func main() {
	this := program.New("ascend-operator")
	flag.Bool("isCompress", false, "accepted, without effect")
	flag.Float64("kubeApiQps", 200, "accepted, without effect")
	flag.Int("kubeApiBurst", 200, "accepted, without effect")
	gang := flag.Bool("enableGangScheduling", true, "whether Volcano schedules the pods of a job together")
	this.Main(func(stop <-chan os.Signal) error {
		api, err := cluster.API()
		if err != nil {
			return err
		}
		return operator.New(api, *gang).Run(stop)
	})
}
