// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package nodefaults does what MindCluster's noded and clusterd do with the faults of nodes: one ConfigMap for each node that has any,
// and all of them, with those of the chips, in ConfigMaps for schedulers. It asks the API server once a second instead of watching.
package nodefaults

import (
	"npuops/labsim/internal/cluster"
)

// API is what they need of the cluster.
type API interface {
	Get(path string) (cluster.Object, error)
	Create(path string, object cluster.Object) error
	Update(path string, object cluster.Object) error
	Delete(path string) error
}

const (
	dlNamespace      = "mindx-dl"
	clusterNamespace = "cluster-system"
	nodeInfo         = "mindx-dl-nodeinfo-"
	deviceInfo       = "mindx-dl-deviceinfo-"
)

func collection(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

// write makes the ConfigMap be so. Clusterd finds those with the label.
func write(api API, namespace, name string, data cluster.Object) error {
	object := cluster.Object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": cluster.Object{"name": name, "namespace": namespace, "labels": cluster.Object{"mx-consumer-cim": "true"}},
		"data":     data,
	}
	err := api.Update(collection(namespace)+"/"+name, object)
	if cluster.IsNotFound(err) {
		return api.Create(collection(namespace), object)
	}
	return err
}
