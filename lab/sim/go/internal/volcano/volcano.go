// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package volcano does the little of Volcano's programs that the lab needs: pods of a job start together or not at all. It asks the
// API server once a second instead of watching. Which chips a pod gets stays with the kubelet.
package volcano

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/release"
)

// API is what they need of the cluster.
type API interface {
	Get(path string) (cluster.Object, error)
	Create(path string, object cluster.Object) error
	Update(path string, object cluster.Object) error
	Patch(path string, patch cluster.Object) error
}

const (
	scheduling = "/apis/scheduling.volcano.sh/v1beta1"
	queues     = scheduling + "/queues"
	podGroups  = scheduling + "/podgroups"
	pods       = "/api/v1/pods"
	// Volcano's name for itself, and how a pod names its PodGroup.
	schedulerName = "volcano"
	groupName     = "scheduling.k8s.io/group-name"
	interval      = time.Second
	term          = 15 * time.Second
)

// Check asks for everything that upstream's program lists before it works. Upstream waits for what it may not list; this one ends.
func Check(api API, paths []string) error {
	var problems []error
	for _, path := range paths {
		if _, err := api.Get(path + "?limit=1"); err != nil {
			problems = append(problems, fmt.Errorf("failed to list: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Probes is what the flags say of them.
type Probes struct {
	enabled bool
	address string
}

// Flags registers the flags that both programs have in all releases and that are used here.
func Flags() *Probes {
	var p Probes
	flag.BoolVar(&p.enabled, "enable-healthz", false, "answer probes")
	flag.StringVar(&p.address, "healthz-address", ":11251", "where to answer probes")
	flag.Bool("leader-elect", true, "accepted, without effect: only one works")
	flag.Bool("logtostderr", true, "accepted, without effect")
	flag.Int("v", 0, "accepted, without effect")
	flag.Float64("kube-api-qps", 0, "accepted, without effect")
	flag.Int("kube-api-burst", 0, "accepted, without effect")
	if !release.Is73() {
		flag.Bool("enable-metrics", false, "accepted, without effect")
	}
	return &p
}

// Serve answers probes in the background.
func (p *Probes) Serve() error {
	if !p.enabled {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	go func() { _ = http.Serve(listener, mux) }()
	return nil
}

// Lead works once a second while this is the one that the Lease names, until stop says so.
func Lead(api API, name string, stop <-chan os.Signal, work func() error) error {
	identity, err := os.Hostname()
	if err != nil {
		return err
	}
	led := false
	for {
		leads, err := hold(api, name, identity, time.Now())
		if err == nil && leads {
			if !led {
				logging.Info("%s became leader", identity)
			}
			err = work()
		}
		if err != nil {
			logging.Error("%v", err)
		}
		led = leads
		select {
		case <-stop:
			return nil
		case <-time.After(interval):
		}
	}
}

func hold(api API, name, identity string, now time.Time) (bool, error) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
	spec := cluster.Object{
		"holderIdentity": identity, "leaseDurationSeconds": int(term.Seconds()),
		"renewTime": now.UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
	lease, err := api.Get(leases + "/" + name)
	if cluster.IsNotFound(err) {
		lease = cluster.Object{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": cluster.Object{"name": name, "namespace": "volcano-system"}, "spec": spec,
		}
		return true, api.Create(leases, lease)
	}
	if err != nil {
		return false, err
	}
	renewed, _ := time.Parse(time.RFC3339, cluster.Text(lease, "spec", "renewTime"))
	if cluster.Text(lease, "spec", "holderIdentity") != identity && now.Sub(renewed) < term {
		return false, nil
	}
	lease["spec"] = spec
	return true, api.Update(leases+"/"+name, lease)
}

func list(api API, path string) ([]any, error) {
	found, err := api.Get(path)
	if err != nil {
		return nil, err
	}
	items, _ := cluster.At(found, "items").([]any)
	return items, nil
}

// number is a quantity of chips, or a count.
func number(value any) int {
	switch given := value.(type) {
	case float64:
		return int(given)
	case string:
		count, _ := strconv.Atoi(given)
		return count
	}
	return 0
}
