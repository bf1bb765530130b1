// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package volcano

import (
	"errors"
	"fmt"

	"npuops/labsim/internal/cluster"
)

// ControllersNeed is what upstream's controllers list.
var ControllersNeed = []string{
	pods, "/api/v1/persistentvolumeclaims", "/api/v1/services", "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets",
	"/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/batch.volcano.sh/v1alpha1/jobs", "/apis/bus.volcano.sh/v1alpha1/commands",
	podGroups, queues,
}

// JobFlowsNeed is what they list beside that if they run JobFlows.
var JobFlowsNeed = []string{"/apis/flow.volcano.sh/v1alpha1/jobflows", "/apis/flow.volcano.sh/v1alpha1/jobtemplates"}

// Group makes a PodGroup for each pod of Volcano's that has none. Volcano Jobs are not simulated.
func Group(api API) error {
	all, err := list(api, pods)
	if err != nil {
		return err
	}
	var problems []error
	for _, pod := range all {
		if cluster.Text(pod, "spec", "schedulerName") == schedulerName && cluster.Text(pod, "metadata", "annotations", groupName) == "" {
			problems = append(problems, group(api, pod))
		}
	}
	return errors.Join(problems...)
}

func group(api API, pod any) error {
	namespace, name := cluster.Text(pod, "metadata", "namespace"), cluster.Text(pod, "metadata", "name")
	uid := cluster.Text(pod, "metadata", "uid")
	path := fmt.Sprintf("%s/namespaces/%s/podgroups", scheduling, namespace)
	_, err := api.Get(path + "/podgroup-" + uid)
	if cluster.IsNotFound(err) {
		err = api.Create(path, cluster.Object{
			"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
			"metadata": cluster.Object{
				"name": "podgroup-" + uid, "namespace": namespace, "ownerReferences": []any{cluster.Object{
					"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true,
				}},
			},
			"spec": cluster.Object{"minMember": 1},
		})
	}
	if err != nil {
		return err
	}
	return api.Patch(fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", namespace, name), cluster.Object{
		"metadata": cluster.Object{"annotations": cluster.Object{groupName: "podgroup-" + uid}},
	})
}
