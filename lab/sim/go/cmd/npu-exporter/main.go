// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command npu-exporter stands in for npu-exporter of 7.3 and 26.1. Whatever goes wrong at start, it exits with status 0.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"npuops/labsim/internal/exporter"
	"npuops/labsim/internal/healthz"
	"npuops/labsim/internal/library"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/release"
)

// Sockets of the container runtimes, by containerMode.
var sockets = map[string]string{
	"docker": "/var/run/dockershim.sock", "containerd": "/run/containerd/containerd.sock", "isula": "/run/isulad.sock",
}

// interval is what metricConfiguration.json has for most groups of metrics, in seconds.
const interval = 5

func main() {
	options := parse()
	if options.version {
		fmt.Printf("NPU-exporter version: %s (simulated)\n", release.Name())
		return
	}
	if err := logging.To(options.logFile); err != nil {
		fmt.Println(err)
		return
	}
	if err := options.healthz.Serve(); err != nil {
		logging.Error("failed to start healthz server: %v", err)
		return
	}
	if err := run(options); err != nil {
		logging.Error("%v", err)
	}
}

func run(options options) error {
	if err := options.check(); err != nil {
		return err
	}
	endpoint := options.endpoint
	if endpoint == "" {
		endpoint = sockets[options.containerMode]
	}
	limit := time.Duration(options.deviceResetTimeout) * time.Second
	var collector *exporter.Collector
	err := release.Try(limit, func() error {
		err := library.Check()
		if err == nil {
			collector, err = exporter.NewCollector(&exporter.Containers{Endpoint: endpoint}, limit)
		}
		if err != nil {
			logging.Error("%v", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("new npu collector failed, error is %w", err)
	}
	logging.Info("npu exporter starting and the version is %s (simulated)", release.Name())
	go collector.Watch(time.Duration(options.updateTime) * time.Second)
	failed := make(chan error, 1)
	go func() {
		failed <- exporter.Serve(net.JoinHostPort(options.ip, strconv.Itoa(options.port)), options.limits(), collector.Text)
	}()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-failed:
		return err
	case <-stop:
		return nil
	}
}

type options struct {
	version                                                                bool
	ip, logFile, containerMode, containerd, endpoint, limitIPReq, platform string
	port, updateTime, concurrency, limitIPConn, limitTotalConn             int
	cacheSize, profilingTime, hccsBWProfilingTime, deviceResetTimeout      int
	healthz                                                                *healthz.Config
}

// parse takes every flag that the release takes, and no other.
func parse() options {
	var o options
	flag.Int("logLevel", 0, "accepted, without effect")
	flag.Int("maxAge", 7, "accepted, without effect")
	flag.Int("maxBackups", 30, "accepted, without effect")
	flag.String("textMetricsFilePath", "", "accepted, without effect")
	flag.Duration("poll_interval", time.Second, "accepted, without effect")
	flag.BoolVar(&o.version, "version", false, "If true, query the version")
	flag.StringVar(&o.ip, "ip", "", "The listen ip of the service, 0.0.0.0 is not recommended")
	flag.StringVar(&o.logFile, "logFile", "/var/log/mindx-dl/npu-exporter/npu-exporter.log", "log file")
	flag.StringVar(&o.containerMode, "containerMode", "docker", "docker, containerd or isula")
	flag.StringVar(&o.containerd, "containerd", "", "socket of containerd")
	flag.StringVar(&o.endpoint, "endpoint", "", "socket of the CRI")
	flag.StringVar(&o.limitIPReq, "limitIPReq", "20/1", "requests of one address / seconds")
	flag.StringVar(&o.platform, "platform", "Prometheus", "only Prometheus is simulated")
	flag.IntVar(&o.port, "port", 8082, "1025 to 40000")
	if release.Is73() {
		flag.IntVar(&o.updateTime, "updateTime", 5, "seconds between looks, 1 to 60")
	} else {
		flag.IntVar(&o.updateTime, "updateTime", 0, "seconds between looks, 1 to 60; 0: those of each group of metrics")
		flag.Bool("enableLegacyMetrics", false, "accepted, without effect")
		o.healthz = healthz.Flags()
	}
	flag.IntVar(&o.concurrency, "concurrency", 5, "requests at once, 1 to 512")
	flag.IntVar(&o.limitIPConn, "limitIPConn", 5, "connections of one address, 1 to 128")
	flag.IntVar(&o.limitTotalConn, "limitTotalConn", 20, "connections, 1 to 512")
	flag.IntVar(&o.cacheSize, "cacheSize", 102400, "1 to 1024000")
	flag.IntVar(&o.profilingTime, "profilingTime", 200, "1 to 2000")
	flag.IntVar(&o.hccsBWProfilingTime, "hccsBWProfilingTime", 200, "1 to 1000")
	flag.IntVar(&o.deviceResetTimeout, "deviceResetTimeout", release.ResetTimeout(), "seconds to wait for chips, 10 to 600")
	flag.Parse()
	if !release.Is73() && (o.updateTime < 1 || o.updateTime > 60) {
		o.updateTime = interval
	}
	return o
}

func (o options) check() error {
	for _, number := range []struct {
		name             string
		value, low, high int
	}{
		{"the port", o.port, 1025, 40000},
		{"the updateTime", o.updateTime, 1, 60},
		{"concurrency", o.concurrency, 1, 512},
		{"limitIPConn", o.limitIPConn, 1, 128},
		{"limitTotalConn", o.limitTotalConn, 1, 512},
		{"cacheSize", o.cacheSize, 1, 1024000},
		{"profilingTime", o.profilingTime, 1, 2000},
		{"hccsBWProfilingTime", o.hccsBWProfilingTime, 1, 1000},
		{"deviceResetTimeout", o.deviceResetTimeout, 10, 600},
	} {
		if number.value < number.low || number.value > number.high {
			return fmt.Errorf("%s is invalid", number.name)
		}
	}
	if net.ParseIP(o.ip) == nil {
		return errors.New("the listen ip is invalid")
	}
	if o.platform != "Prometheus" {
		return errors.New("err platform input")
	}
	for _, socket := range []string{o.endpoint, o.containerd} {
		if socket != "" && !strings.Contains(socket, ".sock") {
			return errors.New("endpoint file is not sock address")
		}
	}
	if requests, seconds := o.rate(); requests < 1 || seconds < 1 {
		return errors.New("limitIPReq format error")
	}
	if strings.Contains(strings.Join(os.Args[1:], ""), "poll_interval") {
		return errors.New("poll_interval is not support this scene")
	}
	return nil
}

func (o options) rate() (requests, seconds int) {
	fmt.Sscanf(o.limitIPReq, "%d/%d", &requests, &seconds)
	return requests, seconds
}

func (o options) limits() exporter.Limits {
	requests, seconds := o.rate()
	return exporter.Limits{Concurrency: o.concurrency, Requests: requests, Seconds: seconds, Connections: o.limitTotalConn,
		AddressConns: o.limitIPConn}
}
