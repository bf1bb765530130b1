// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/query"
)

// Find waits for chips; a driver that answers with an error is given up at once.
func Find(limit time.Duration) (query.Reply, Kind, error) {
	for waited := time.Duration(0); ; waited += 10 * time.Second {
		reply, err := discover()
		if err != nil {
			return reply, Kind{}, err
		}
		if chips := reply.Chips; len(chips) > 0 {
			kind, known := kinds[chips[0]["family"]]
			if !known {
				return reply, Kind{}, fmt.Errorf("no simulation of %s", chips[0]["family"])
			}
			return reply, kind, nil
		}
		if waited >= limit {
			return reply, Kind{}, errors.New("no cards found")
		}
		time.Sleep(10 * time.Second)
	}
}

// Listen follows chips and pods. It does not return. What others read about the node has its whole chips only.
func Listen(servers []*Server, node *Node, pods *Pods, period time.Duration) {
	health := map[*Server]*Health{}
	var ids, unhealthy []string
	for _, server := range servers {
		health[server] = NewHealth(server.Kind, server.ids)
		if server.Kind.Type == node.kind.Type {
			ids = server.ids
		}
	}
	node.api.Get("/api/v1/namespaces/kube-system/configmaps/mindx-dl-fault-config") //nolint:errcheck // rarely there
	time.Sleep(time.Second)
	for ; ; time.Sleep(period) {
		reply := query.Ask(program)
		for _, server := range servers {
			before := server.Unhealthy()
			if server.SetHealth(health[server].Look(reply)) {
				report(node, before, server.Unhealthy())
			}
			if server.Kind.Type == node.kind.Type {
				unhealthy = server.Unhealthy()
			}
		}
		used, err := pods.Look()
		if err != nil {
			logging.Error("get pod resource failed, err: %v", err)
		}
		if err := node.Report(ids, unhealthy, used); err != nil {
			logging.Error("update device info failed, err: %v", err)
		}
	}
}

func report(node *Node, before, after []string) {
	for _, id := range after {
		if !slices.Contains(before, id) {
			logging.Error("device %s is unhealthy", id)
			tell(node, id, false)
		}
	}
	for _, id := range before {
		if !slices.Contains(after, id) {
			logging.Info("device %s is healthy", id)
			tell(node, id, true)
		}
	}
}

func tell(node *Node, id string, healthy bool) {
	if err := node.Event(id, healthy); err != nil {
		logging.Error("write fault event: %v", err)
	}
}
