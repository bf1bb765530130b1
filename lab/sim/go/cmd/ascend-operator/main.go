// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command ascend-operator is the lab's MindCluster ascend-operator: the same flags, needs and effects for PyTorch jobs.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/healthz"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/operator"
	"npuops/labsim/internal/release"
)

func main() {
	flag.Int("logLevel", 0, "accepted, without effect")
	flag.Int("maxAge", 7, "accepted, without effect")
	flag.Int("maxBackups", 30, "accepted, without effect")
	flag.Bool("isCompress", false, "accepted, without effect")
	flag.Float64("kubeApiQps", 200, "accepted, without effect")
	flag.Int("kubeApiBurst", 200, "accepted, without effect")
	gang := flag.Bool("enableGangScheduling", true, "whether Volcano schedules the pods of a job together")
	logFile := flag.String("logFile", "/var/log/mindx-dl/ascend-operator/ascend-operator.log", "log file")
	version := flag.Bool("version", false, "show the version")
	var probes *healthz.Config
	if !release.Is73() {
		probes = healthz.Flags()
	}
	flag.Parse()
	if *version {
		fmt.Printf("ascend-operator version: %s (simulated)\n", release.Name())
		return
	}
	if err := logging.To(*logFile); err != nil {
		fmt.Println(err)
		return
	}
	if err := run(*gang, probes); err != nil {
		logging.Error("%v", err)
	}
}

func run(gang bool, probes *healthz.Config) error {
	if err := probes.Serve(); err != nil {
		return fmt.Errorf("failed to start healthz server: %w", err)
	}
	api, err := cluster.API()
	if err != nil {
		return err
	}
	logging.Info("operator starting and the version is %s (simulated)", release.Name())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	return operator.New(api, gang).Run(stop)
}
