// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command noded is the lab's MindCluster noded: the same flags and needs, and a ConfigMap with the faults of its node. Whatever goes wrong
// at start, it exits with status 0.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/library"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/nodefaults"
	"npuops/labsim/internal/program"
	"npuops/labsim/internal/release"
)

func main() {
	this := program.New("noded")
	ranges := []limits{
		{flag.Int("reportInterval", 5, "accepted, without effect"), "report interval", 1, 300},
		{flag.Int("monitorPeriod", 60, "accepted, without effect: a lab looks once a second"), "monitor period", 60, 600},
		{flag.Int("resultMaxAge", 7, "accepted, without effect"), "resultMaxAge", 7, 700},
		{flag.Int("deviceResetTimeout", release.ResetTimeout(), "seconds that the driver has"), "deviceResetTimeout", 10, 600},
	}
	this.Main(func(stop <-chan os.Signal) error { return run(ranges, stop) })
}

type limits struct {
	value       *int
	name        string
	least, most int
}

func run(ranges []limits, stop <-chan os.Signal) error {
	for _, one := range ranges {
		if *one.value < one.least || *one.value > one.most {
			return fmt.Errorf("%s %d out of range [%d,%d]", one.name, *one.value, one.least, one.most)
		}
	}
	api, err := cluster.API()
	if err != nil {
		return err
	}
	node := os.Getenv("NODE_NAME")
	if node == "" {
		return errors.New("the env of 'NODE_NAME' must be set")
	}
	err = release.Try(time.Duration(*ranges[len(ranges)-1].value)*time.Second, func() error {
		err := library.Check()
		if err != nil {
			logging.Error("%v", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("init device manager failed when start, error: %w", err)
	}
	noded := nodefaults.NewNoded(api, node)
	told := ""
	for {
		// As upstream, it goes on without IPMI.
		if err := noded.Report(); err != nil && err.Error() != told {
			told = err.Error()
			logging.Error("%v", err)
		}
		select {
		case <-stop:
			return nil
		case <-time.After(time.Second):
		}
	}
}
