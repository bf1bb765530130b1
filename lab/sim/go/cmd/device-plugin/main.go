// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command device-plugin stands in for ascend-k8sdeviceplugin of 7.3 and 26.1. Whatever goes wrong, it exits with status 0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/deviceplugin"
	"npuops/labsim/internal/healthz"
	"npuops/labsim/internal/library"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/query"
	"npuops/labsim/internal/release"
)

const directory = "/var/lib/kubelet/device-plugins"

func main() {
	options := parse()
	if options.version {
		fmt.Printf("device-plugin version: %s (simulated)\n", release.Name())
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
	if err := options.check(); err != nil {
		logging.Error("%v", err)
		return
	}
	logging.Info("device plugin starting and the version is %s (simulated)", release.Name())
	if err := run(options); err != nil {
		logging.Error("init dev manager failed, err: %v", err)
	}
}

func run(options options) error {
	nodeName, hostIP := os.Getenv("NODE_NAME"), os.Getenv("HOST_IP")
	var found query.Reply
	var kind deviceplugin.Kind
	limit := time.Duration(options.deviceResetTimeout) * time.Second
	err := release.Try(limit, func() error {
		err := library.Check()
		if err == nil {
			found, kind, err = deviceplugin.Find(limit)
		}
		if err != nil {
			logging.Error("%v", err)
		}
		return err
	})
	if err != nil {
		return err
	}
	if nodeName == "" {
		return errors.New("check node name failed: NODE_NAME is empty")
	}
	api, err := cluster.API()
	if err != nil {
		return err
	}
	node := deviceplugin.NewNode(api, nodeName, kind)
	offers, err := kind.Offers(found, options.shareDevCount)
	if err != nil {
		return err
	}
	var ids []string
	for _, offer := range offers {
		ids = append(ids, offer.IDs...)
	}
	if err := node.Label(found.Chips, ids); err != nil {
		return err
	}
	logging.Info("init device manager success: %d chips %s", len(found.Chips), kind.Type)

	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer cancel()

	var servers []*deviceplugin.Server
	var serving sync.WaitGroup
	for _, offer := range offers {
		server := deviceplugin.NewServer(offer.Kind, offer.IDs)
		servers = append(servers, server)
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		serving.Add(1)
		go func() {
			defer serving.Done()
			server.Serve(stop, hangup, directory)
		}()
	}
	pods := deviceplugin.NewPods(api, hostIP, kind)
	if options.checkCachedPods {
		go pods.Watch(nodeName)
	}
	go deviceplugin.Listen(servers, node, pods, time.Duration(options.listWatchPeriod)*time.Second)
	serving.Wait()
	logging.Info("stop all server done")
	return nil
}

type options struct {
	version, checkCachedPods, presetVirtualDevice, volcanoType, use310PMixedInsert bool
	logFile                                                                        string
	listWatchPeriod, deviceResetTimeout, hotReset, thirdPartyScanDelay             int
	shareDevCount                                                                  uint
	healthz                                                                        *healthz.Config
}

// parse takes every flag that the release takes, and no other: Go ends a program with 2 for one that it does not know. Those without a variable here have no effect in the lab.
func parse() options {
	var o options
	for _, name := range []string{"fdFlag", "dealWatchHandler", "enableSlowNode"} {
		flag.Bool(name, false, "accepted, without effect")
	}
	flag.Bool("autoStowing", true, "accepted, without effect")
	if release.Is73() {
		flag.Bool("useAscendDocker", true, "accepted, without effect")
	} else {
		flag.String("softShareDevConfigDir", "", "accepted, without effect")
		flag.Bool("useSingleDieMode", false, "accepted, without effect")
		o.healthz = healthz.Flags()
	}
	flag.String("edgeLogFile", "/var/alog/AtlasEdge_log/devicePlugin.log", "accepted, without effect")
	flag.Int("logLevel", 0, "accepted, without effect")
	flag.Int("maxAge", 7, "accepted, without effect")
	flag.Int("maxBackups", 30, "accepted, without effect")
	flag.Int64("linkdownTimeout", 30, "accepted, without effect")
	flag.BoolVar(&o.version, "version", false, "Output version information")
	flag.BoolVar(&o.volcanoType, "volcanoType", false, "volcano schedules; not simulated")
	flag.BoolVar(&o.presetVirtualDevice, "presetVirtualDevice", true, "static virtual devices")
	flag.BoolVar(&o.use310PMixedInsert, "use310PMixedInsert", false, "different 310P in one host; not simulated")
	flag.BoolVar(&o.checkCachedPods, "checkCachedPods", true, "watch pods")
	flag.StringVar(&o.logFile, "logFile", "/var/log/mindx-dl/devicePlugin/devicePlugin.log", "log file")
	flag.IntVar(&o.listWatchPeriod, "listWatchPeriod", 5, "seconds between looks, 3 to 1800")
	flag.IntVar(&o.hotReset, "hotReset", -1, "hot reset mode, -1 to 2; not simulated")
	flag.UintVar(&o.shareDevCount, "shareDevCount", 1, "how many times each chip is offered, 1 to 100")
	flag.IntVar(&o.thirdPartyScanDelay, "thirdPartyScanDelay", 300, "seconds")
	flag.IntVar(&o.deviceResetTimeout, "deviceResetTimeout", release.ResetTimeout(), "seconds to wait for chips, 10 to 600")
	flag.Parse()
	return o
}

func (o options) check() error {
	switch {
	case o.listWatchPeriod < 3 || o.listWatchPeriod > 1800:
		return fmt.Errorf("list and watch period %d out of range", o.listWatchPeriod)
	case !o.presetVirtualDevice && !o.volcanoType:
		return errors.New("presetVirtualDevice is false, volcanoType should be true")
	case o.use310PMixedInsert && o.volcanoType:
		return errors.New("use310PMixedInsert is true, volcanoType should be false")
	case o.use310PMixedInsert && o.shareDevCount > 1:
		return errors.New("use310PMixedInsert is true, shareDevCount should be 1")
	case !o.presetVirtualDevice && o.shareDevCount > 1:
		return errors.New("presetVirtualDevice is false, shareDevCount should be 1")
	case release.Is73() && o.volcanoType && o.shareDevCount > 1:
		return errors.New("volcanoType is true, shareDevCount should be 1")
	case o.hotReset < -1 || o.hotReset > 2 || (o.hotReset == 1 && !release.Is73()):
		return errors.New("hot reset mode param invalid")
	case o.shareDevCount < 1 || o.shareDevCount > 100:
		return errors.New("share device function params invalid")
	case o.thirdPartyScanDelay < 0:
		return fmt.Errorf("reset scan delay %d is invalid", o.thirdPartyScanDelay)
	case o.deviceResetTimeout < 10 || o.deviceResetTimeout > 600:
		return fmt.Errorf("deviceResetTimeout %d out of range [10,600]", o.deviceResetTimeout)
	case o.volcanoType || o.use310PMixedInsert:
		return errors.New("volcanoType and use310PMixedInsert are not simulated")
	}
	return nil
}
