// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command clusterd is the lab's MindCluster clusterd: the same flags and needs, and the ConfigMaps that schedulers read. Whatever goes
// wrong at start, it exits with status 0.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/healthz"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/nodefaults"
	"npuops/labsim/internal/release"
)

func main() {
	flag.Int("logLevel", 0, "accepted, without effect")
	flag.Int("maxAge", 7, "accepted, without effect")
	flag.Int("maxBackups", 30, "accepted, without effect")
	flag.Bool("useProxy", false, "accepted, without effect")
	logFile := flag.String("logFile", "/var/log/mindx-dl/clusterd/clusterd.log", "log file")
	version := flag.Bool("version", false, "show the version")
	var probes *healthz.Config
	if !release.Is73() {
		probes = healthz.Flags()
	}
	flag.Parse()
	if *version {
		fmt.Printf("clusterd version: %s (simulated)\n", release.Name())
		return
	}
	if err := logging.To(*logFile); err != nil {
		fmt.Println(err)
		return
	}
	if err := run(probes); err != nil {
		logging.Error("%v", err)
	}
}

func run(probes *healthz.Config) error {
	if err := probes.Serve(); err != nil {
		return fmt.Errorf("failed to start healthz server: %w", err)
	}
	api, err := cluster.API()
	if err != nil {
		return err
	}
	logging.Info("clusterd starting and the version is %s (simulated)", release.Name())
	clusterd, err := nodefaults.NewClusterd(api)
	if err != nil {
		return fmt.Errorf("init k8s servers failed, error: %w", err)
	}
	// As upstream, it goes on without.
	if err := nodefaults.Listen(); err != nil {
		logging.Error("clusterd grpc server start failed, error: %v", err)
	}
	logging.Info("clusterd starts to serve")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	for {
		if err := clusterd.Collect(); err != nil {
			logging.Error("%v", err)
		}
		select {
		case <-stop:
			return nil
		case <-time.After(time.Second):
		}
	}
}
