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
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/nodefaults"
	"npuops/labsim/internal/program"
)

func main() {
	this := program.New("clusterd")
	flag.Bool("useProxy", false, "accepted, without effect")
	this.Main(run)
}

func run(stop <-chan os.Signal) error {
	api, err := cluster.API()
	if err != nil {
		return err
	}
	clusterd, err := nodefaults.NewClusterd(api)
	if err != nil {
		return fmt.Errorf("init k8s servers failed, error: %w", err)
	}
	// As upstream, it goes on without.
	if err := nodefaults.Listen(); err != nil {
		logging.Error("clusterd grpc server start failed, error: %v", err)
	}
	logging.Info("clusterd starts to serve")
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
