// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package volcano

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/logging"
)

// SchedulerNeeds is what upstream's scheduler lists.
var SchedulerNeeds = []string{
	pods, "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/services", "/api/v1/replicationcontrollers", "/api/v1/resourcequotas",
	"/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes", "/api/v1/configmaps", "/apis/apps/v1/replicasets",
	"/apis/apps/v1/statefulsets", "/apis/policy/v1/poddisruptionbudgets", "/apis/storage.k8s.io/v1/storageclasses",
	"/apis/storage.k8s.io/v1/csinodes", "/apis/scheduling.k8s.io/v1/priorityclasses", podGroups, queues,
	"/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies", "/apis/topology.volcano.sh/v1alpha1/hypernodes",
}

const chips = "huawei.com/"

// Scheduler places pods.
type Scheduler struct{ api API }

// NewScheduler makes the queues that all PodGroups are in.
func NewScheduler(api API) (*Scheduler, error) {
	for _, name := range []string{"root", "default"} {
		err := api.Create(queues, cluster.Object{
			"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": cluster.Object{"name": name},
			"spec": cluster.Object{"weight": 1},
		})
		if err != nil && !cluster.Exists(err) {
			return nil, fmt.Errorf("failed init %s queue, with err: %w", name, err)
		}
	}
	return &Scheduler{api}, nil
}

// Schedule binds the pods of each PodGroup that has enough of them and finds room for all.
func (s *Scheduler) Schedule() error {
	all, err := list(s.api, pods)
	if err != nil {
		return err
	}
	groups, err := list(s.api, podGroups)
	if err != nil {
		return err
	}
	room, err := s.room(all)
	if err != nil {
		return err
	}
	var problems []error
	for _, group := range groups {
		problems = append(problems, s.schedule(group.(cluster.Object), all, room))
	}
	return errors.Join(problems...)
}

func (s *Scheduler) schedule(group cluster.Object, all []any, room map[string]map[string]int) error {
	namespace, name := cluster.Text(group, "metadata", "namespace"), cluster.Text(group, "metadata", "name")
	members, waiting := 0, []any{}
	for _, pod := range all {
		if cluster.Text(pod, "metadata", "namespace") != namespace || cluster.Text(pod, "metadata", "annotations", groupName) != name {
			continue
		}
		members++
		if cluster.Text(pod, "spec", "nodeName") == "" && cluster.Text(pod, "spec", "schedulerName") == schedulerName {
			waiting = append(waiting, pod)
		}
	}
	if len(waiting) == 0 || members < number(cluster.At(group, "spec", "minMember")) {
		return nil
	}
	places, fits := place(waiting, room)
	if !fits {
		return s.phase(group, "Inqueue")
	}
	for i, pod := range waiting {
		if err := s.bind(pod, places[i]); err != nil {
			return err
		}
	}
	return s.phase(group, "Running")
}

// place finds a node for each pod, and takes its chips there; nothing is taken unless all fit.
func place(waiting []any, room map[string]map[string]int) ([]string, bool) {
	left := map[string]map[string]int{}
	for node, free := range room {
		left[node] = maps.Clone(free)
	}
	var places []string
	for _, pod := range waiting {
		wanted := requests(pod)
		found := ""
		for _, node := range slices.Sorted(maps.Keys(left)) {
			if fits(wanted, left[node]) {
				found = node
				break
			}
		}
		if found == "" {
			return nil, false
		}
		for resource, count := range wanted {
			left[found][resource] -= count
		}
		places = append(places, found)
	}
	maps.Copy(room, left)
	return places, true
}

func fits(wanted, free map[string]int) bool {
	for resource, count := range wanted {
		if free[resource] < count {
			return false
		}
	}
	return true
}

// room is, by node that takes pods, how many chips of each kind are free.
func (s *Scheduler) room(all []any) (map[string]map[string]int, error) {
	nodes, err := list(s.api, "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	room := map[string]map[string]int{}
	for _, node := range nodes {
		if unschedulable, _ := cluster.At(node, "spec", "unschedulable").(bool); unschedulable {
			continue
		}
		free := map[string]int{}
		allocatable, _ := cluster.At(node, "status", "allocatable").(cluster.Object)
		for resource, count := range allocatable {
			if strings.HasPrefix(resource, chips) {
				free[resource] = number(count)
			}
		}
		room[cluster.Text(node, "metadata", "name")] = free
	}
	for _, pod := range all {
		phase := cluster.Text(pod, "status", "phase")
		if free := room[cluster.Text(pod, "spec", "nodeName")]; free != nil && phase != "Succeeded" && phase != "Failed" {
			for resource, count := range requests(pod) {
				free[resource] -= count
			}
		}
	}
	return room, nil
}

func requests(pod any) map[string]int {
	wanted := map[string]int{}
	containers, _ := cluster.At(pod, "spec", "containers").([]any)
	for _, container := range containers {
		limits, _ := cluster.At(container, "resources", "limits").(cluster.Object)
		for resource, count := range limits {
			if strings.HasPrefix(resource, chips) {
				wanted[resource] += number(count)
			}
		}
	}
	return wanted
}

func (s *Scheduler) bind(pod any, node string) error {
	namespace, name := cluster.Text(pod, "metadata", "namespace"), cluster.Text(pod, "metadata", "name")
	logging.Info("bind pod %s/%s to node %s", namespace, name, node)
	return s.api.Create(fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/binding", namespace, name), cluster.Object{
		"apiVersion": "v1", "kind": "Binding", "metadata": cluster.Object{"name": name, "namespace": namespace},
		"target": cluster.Object{"apiVersion": "v1", "kind": "Node", "name": node},
	})
}

// phase writes it with everything else, as upstream: the kind has no subresource for it.
func (s *Scheduler) phase(group cluster.Object, phase string) error {
	if cluster.Text(group, "status", "phase") == phase {
		return nil
	}
	status, _ := group["status"].(cluster.Object)
	group["status"] = cluster.Object{}
	maps.Copy(group["status"].(cluster.Object), status)
	group["status"].(cluster.Object)["phase"] = phase
	group["apiVersion"], group["kind"] = "scheduling.volcano.sh/v1beta1", "PodGroup"
	return s.api.Update(fmt.Sprintf("%s/namespaces/%s/podgroups/%s", scheduling,
		cluster.Text(group, "metadata", "namespace"), cluster.Text(group, "metadata", "name")), group)
}
