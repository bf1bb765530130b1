// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command vc-controller-manager is the lab's controllers of Volcano: the flags that are used here, what they need, and PodGroups of pods.
package main

import (
	"flag"
	"log"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/program"
	"npuops/labsim/internal/release"
	"npuops/labsim/internal/volcano"
)

func main() {
	probes := volcano.Flags()
	flag.Int("worker-threads", 3, "accepted, without effect")
	flag.Int("worker-threads-for-podgroup", 5, "accepted, without effect")
	if !release.Is73() {
		flag.Int("worker-threads-for-gc", 1, "accepted, without effect")
		flag.String("controllers", "*", "accepted, without effect")
	}
	flag.Parse()
	if err := run(probes); err != nil {
		log.Fatal(err)
	}
}

func run(probes *volcano.Probes) error {
	api, err := cluster.API()
	if err != nil {
		return err
	}
	needs := volcano.ControllersNeed
	if release.Is73() {
		// It has no flag to switch them off.
		needs = append(needs, volcano.JobFlowsNeed...)
	}
	if err := volcano.Check(api, needs); err != nil {
		return err
	}
	if err := probes.Serve(); err != nil {
		return err
	}
	return volcano.Lead(api, "vc-controller-manager", program.Stop(), func() error { return volcano.Group(api) })
}
