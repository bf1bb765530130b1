// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package program is what MindCluster's programs beside device plugin and exporter do alike when they start and when they end.
package program

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"npuops/labsim/internal/healthz"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/release"
)

// Program is one of them, with the flags that all have.
type Program struct {
	name, logFile string
	version       bool
	probes        *healthz.Config
}

// New registers the flags. Those of the program itself come between New and Main.
func New(name string) *Program {
	p := &Program{name: name}
	flag.Int("logLevel", 0, "accepted, without effect")
	flag.Int("maxAge", 7, "accepted, without effect")
	flag.Int("maxBackups", 30, "accepted, without effect")
	flag.StringVar(&p.logFile, "logFile", fmt.Sprintf("/var/log/mindx-dl/%s/%[1]s.log", name), "log file")
	flag.BoolVar(&p.version, "version", false, "show the version")
	if !release.Is73() {
		p.probes = healthz.Flags()
	}
	return p
}

// Main reads the command line and runs the program until it fails or stop says so. As upstream's, it ends with 0 in any case.
func (p *Program) Main(run func(stop <-chan os.Signal) error) {
	flag.Parse()
	if p.version {
		fmt.Printf("%s version: %s (simulated)\n", p.name, release.Name())
		return
	}
	if err := logging.To(p.logFile); err != nil {
		fmt.Println(err)
		return
	}
	if err := p.start(run); err != nil {
		logging.Error("%v", err)
	}
}

func (p *Program) start(run func(stop <-chan os.Signal) error) error {
	if err := p.probes.Serve(); err != nil {
		return fmt.Errorf("failed to start healthz server: %w", err)
	}
	logging.Info("%s starting and the version is %s (simulated)", p.name, release.Name())
	return run(Stop())
}

// Stop tells when somebody wants the program to end.
func Stop() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	return stop
}
