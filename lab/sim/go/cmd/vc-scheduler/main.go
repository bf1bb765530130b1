// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command vc-scheduler is the lab's scheduler of Volcano: the flags that are used here, what it needs, and gang scheduling.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
	"regexp"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/program"
	"npuops/labsim/internal/release"
	"npuops/labsim/internal/volcano"
)

var pluginName = regexp.MustCompile(`name: "?(volcano-npu_[^"\s]+)`)

func main() {
	configuration := flag.String("scheduler-conf", "", "configuration file")
	plugins := flag.String("plugins-dir", "", "directory of plugins")
	probes := volcano.Flags()
	flag.Float64("percentage-nodes-to-find", 0, "accepted, without effect")
	if !release.Is73() {
		flag.Duration("schedule-period", 0, "accepted, without effect")
		flag.Int("node-worker-threads", 20, "accepted, without effect")
	}
	flag.Parse()
	if err := run(*configuration, *plugins, probes); err != nil {
		log.Fatal(err)
	}
}

func run(configuration, plugins string, probes *volcano.Probes) error {
	text, err := os.ReadFile(configuration)
	if err != nil {
		return err
	}
	// As upstream, it goes on without a plugin that it does not find.
	for _, match := range pluginName.FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(plugins, match[1]+".so")); err != nil {
			logging.Error("Failed to get plugin %s.", match[1])
		}
	}
	api, err := cluster.API()
	if err != nil {
		return err
	}
	if err := volcano.Check(api, volcano.SchedulerNeeds); err != nil {
		return err
	}
	scheduler, err := volcano.NewScheduler(api)
	if err != nil {
		return err
	}
	if err := probes.Serve(); err != nil {
		return err
	}
	return volcano.Lead(api, "volcano", program.Stop(), scheduler.Schedule)
}
