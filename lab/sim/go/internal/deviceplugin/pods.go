// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/release"
)

const podResources = "/var/lib/kubelet/pod-resources/kubelet.sock"

// Pods writes on pods which chips they got.
type Pods struct {
	api, kubelet *cluster.Client
	host         string
	kind         Kind
}

// NewPods watches the node's pods through the kubelet at host and writes through api.
func NewPods(api *cluster.Client, host string, kind Kind) *Pods {
	return &Pods{api: api, kubelet: cluster.Kubelet(host), host: host, kind: kind}
}

// Look annotates pods that are new and returns all devices in use.
func (p *Pods) Look() ([]string, error) {
	allocated, err := p.allocated()
	if err != nil {
		return nil, err
	}
	list, err := p.kubelet.Get("/pods")
	if err != nil {
		return nil, err
	}
	var used []string
	for _, ids := range allocated {
		used = append(used, ids...)
	}
	items, _ := list["items"].([]any)
	for _, pod := range items {
		namespace, name := cluster.Text(pod, "metadata", "namespace"), cluster.Text(pod, "metadata", "name")
		if ids := allocated[namespace+"/"+name]; len(ids) > 0 {
			if err := p.annotate(pod, namespace, name, ids); err != nil {
				logging.Error("correct pod[%s:%s] annotation failed, error: %v", namespace, name, err)
			}
		}
	}
	return used, nil
}

// allocated asks the kubelet which devices of ours each pod has, by its old API.
func (p *Pods) allocated() (map[string][]string, error) {
	connection, err := grpc.NewClient("unix://"+podResources, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	response, err := v1alpha1.NewPodResourcesListerClient(connection).List(limit, &v1alpha1.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	allocated := map[string][]string{}
	for _, pod := range response.PodResources {
		for _, container := range pod.Containers {
			for _, devices := range container.Devices {
				if devices.ResourceName == p.kind.Resource {
					key := pod.Namespace + "/" + pod.Name
					allocated[key] = append(allocated[key], devices.DeviceIds...)
				}
			}
		}
	}
	return allocated, nil
}

func (p *Pods) annotate(pod any, namespace, name string, ids []string) error {
	wanted, err := p.annotations(name, cluster.Text(pod, "metadata", "uid"), ids)
	if err != nil {
		return err
	}
	missing := cluster.Object{}
	for key, value := range wanted {
		if cluster.Text(pod, "metadata", "annotations", key) != value {
			missing[key] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	patch := cluster.Object{"metadata": cluster.Object{"annotations": missing}}
	return p.api.Patch("/api/v1/namespaces/"+namespace+"/pods/"+name, patch)
}

// device is a chip in a pod's annotation, with what a chip without address and super pod has there.
type device struct {
	ID      string `json:"device_id"`
	Address string `json:"device_ip"`
	SuperID string `json:"super_device_id"`
}

// annotations are those of a pod that has these chips.
func (p *Pods) annotations(name, uid string, ids []string) (map[string]string, error) {
	sort.Strings(ids)
	list := strings.Join(ids, ",")
	numbers := make([]int, 0, len(ids))
	for _, id := range ids {
		numbers = append(numbers, number(id))
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	annotations := map[string]string{"huawei.com/kltDev": list, "huawei.com/AscendReal": list}
	if release.Is73() {
		// It has no configuration of chips without an address.
		annotations[p.kind.Resource] = list
		return annotations, nil
	}
	devices := make([]device, 0, len(ids))
	for _, n := range numbers {
		devices = append(devices, device{strconv.Itoa(n), "-1", "0"})
	}
	text, err := json.Marshal(map[string]any{"pod_name": name, "server_id": uid, "host_ip": p.host, "super_pod_id": noSuperPod,
		"devices": devices, "rack_id": 0, "server_index": strconv.Itoa(noSuperPod), "server_ip": p.host})
	annotations["ascend.kubectl.kubernetes.io/ascend-910-configuration"] = string(text)
	return annotations, err
}

// Watch keeps a list and watch of the node's pods open, as upstream's informer does.
func (p *Pods) Watch(node string) {
	path := "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node
	for ; ; time.Sleep(5 * time.Second) {
		list, err := p.api.Get(path)
		if err == nil {
			version := cluster.Text(list, "metadata", "resourceVersion")
			err = p.api.Watch(path + "&watch=true&timeoutSeconds=25&resourceVersion=" + version)
		}
		if err != nil {
			logging.Error("list and watch pods: %v", err)
		}
	}
}
