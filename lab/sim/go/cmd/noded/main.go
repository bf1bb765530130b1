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
	"os/signal"
	"syscall"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/healthz"
	"npuops/labsim/internal/library"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/nodefaults"
	"npuops/labsim/internal/release"
)

func main() {
	flag.Int("logLevel", 0, "accepted, without effect")
	flag.Int("maxAge", 7, "accepted, without effect")
	flag.Int("maxBackups", 30, "accepted, without effect")
	ranges := []limits{
		{flag.Int("reportInterval", 5, "accepted, without effect"), "report interval", 1, 300},
		{flag.Int("monitorPeriod", 60, "accepted, without effect: a lab looks once a second"), "monitor period", 60, 600},
		{flag.Int("resultMaxAge", 7, "accepted, without effect"), "resultMaxAge", 7, 700},
		{flag.Int("deviceResetTimeout", release.ResetTimeout(), "seconds that the driver has"), "deviceResetTimeout", 10, 600},
	}
	logFile := flag.String("logFile", "/var/log/mindx-dl/noded/noded.log", "log file")
	version := flag.Bool("version", false, "show the version")
	var probes *healthz.Config
	if !release.Is73() {
		probes = healthz.Flags()
	}
	flag.Parse()
	if *version {
		fmt.Printf("noded version: %s (simulated)\n", release.Name())
		return
	}
	if err := logging.To(*logFile); err != nil {
		fmt.Println(err)
		return
	}
	if err := run(ranges, probes); err != nil {
		logging.Error("%v", err)
	}
}

type limits struct {
	value       *int
	name        string
	least, most int
}

func run(ranges []limits, probes *healthz.Config) error {
	if err := probes.Serve(); err != nil {
		return fmt.Errorf("failed to start healthz server: %w", err)
	}
	for _, one := range ranges {
		if *one.value < one.least || *one.value > one.most {
			return fmt.Errorf("%s %d out of range [%d,%d]", one.name, *one.value, one.least, one.most)
		}
	}
	logging.Info("noded starting and the version is %s (simulated)", release.Name())
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
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
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
