// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/query"
	"npuops/labsim/internal/release"
)

const noSuperPod = -2

// Node is what the plugin writes about its node.
type Node struct {
	api  *cluster.Client
	name string
	kind Kind
	last string
	when time.Time
}

// NewNode writes through api about the node of that name.
func NewNode(api *cluster.Client, name string, kind Kind) *Node {
	return &Node{api: api, name: name, kind: kind}
}

// Label puts labels and annotations on the node, through its status, as upstream does. The ids are those of the chips' devices.
func (n *Node) Label(chips []query.Chip, ids []string) error {
	node, err := n.api.Get("/api/v1/nodes/" + n.name + "?resourceVersion=0")
	if err != nil {
		return fmt.Errorf("failed to get node: %w", err)
	}
	first := chips[0]
	labels := cluster.Object{"node.kubernetes.io/npu.chip.name": first["name"]}
	if cluster.At(node, "metadata", "labels", "servertype") == nil {
		labels["servertype"] = n.kind.Card + "-" + first["cores"]
	}
	if memory := first.Number("hbm"); memory > 0 {
		labels["mind-cluster/npu-chip-memory"] = fmt.Sprintf("%dG", memory/1024)
	}
	if !slices.ContainsFunc(chips, func(chip query.Chip) bool { return !strings.Contains(chip["product"], "Duo") }) {
		labels["infer-card-type"] = "card-300i-duo"
	}
	if !release.Is73() {
		labels["accelerator"] = "huawei-" + n.kind.Type
		if version := driverVersion(); version != "" {
			labels["huawei.com/driver.version"] = version
		}
	}
	info := map[string]any{}
	for _, id := range ids {
		info[id] = map[string]any{"IP": "", "SuperDeviceID": 0}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	number := fmt.Sprint(noSuperPod)
	annotations := cluster.Object{
		"baseDeviceInfos": string(text), "superPodID": number, "serverIndex": number, "serverType": ""}
	patch := cluster.Object{"metadata": cluster.Object{"labels": labels, "annotations": annotations}}
	for range 3 {
		if err = n.api.Patch("/api/v1/nodes/"+n.name+"/status", patch); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("update node label failed: %w", err)
}

// driverVersion is what upstream asks the driver.
func driverVersion() string {
	content, err := os.ReadFile("/usr/local/Ascend/driver/version.info")
	if err != nil {
		return ""
	}
	match := regexp.MustCompile(`(?m)^Version=(\S+)$`).FindSubmatch(content)
	if match == nil {
		return ""
	}
	return string(match[1])
}

// Report writes the ConfigMap others read the node's chips from: when it changed, and every five minutes.
func (n *Node) Report(all, unhealthy, used []string) error {
	free := slices.DeleteFunc(slices.Clone(all), func(id string) bool {
		return slices.Contains(unhealthy, id) || slices.Contains(used, id)
	})
	resource := n.kind.Resource
	devices := map[string]string{resource: strings.Join(free, ","), resource + "-Unhealthy": strings.Join(unhealthy, ","),
		resource + "-Fault": faultList(unhealthy)}
	if n.kind.Event {
		devices[resource+"-NetworkUnhealthy"], devices[resource+"-Recovering"] = "", ""
	}
	key := fmt.Sprint(devices)
	if key == n.last && time.Since(n.when) < 5*time.Minute {
		return nil
	}
	info := map[string]any{"DeviceList": devices, "UpdateTime": time.Now().Unix()}
	inner, err := json.Marshal(info)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"DeviceInfo": info, "SuperPodID": noSuperPod, "ServerIndex": noSuperPod,
		"CheckCode": fmt.Sprintf("%x", sha256.Sum256(inner))})
	if err != nil {
		return err
	}
	name := "mindx-dl-deviceinfo-" + n.name
	data := cluster.Object{"DeviceInfoCfg": string(text), "ManuallySeparateNPU": n.separated(name),
		"Description": "Chips of the node; to take one back after a repair, remove it from ManuallySeparateNPU."}
	if !release.Is73() {
		data["UpgradeFaultReason"] = "{}"
	}
	err = n.createOrUpdate("/api/v1/namespaces/kube-system/configmaps", name, cluster.Object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": cluster.Object{"name": name, "namespace": "kube-system",
			"labels": cluster.Object{"mx-consumer-cim": "true"}},
		"data": data,
	})
	if err == nil {
		n.last, n.when = key, time.Now()
	}
	return err
}

// separated are the chips that are withheld until a person edits the ConfigMap.
func (n *Node) separated(name string) string {
	found, err := n.api.Get("/api/v1/namespaces/kube-system/configmaps/" + name)
	if err != nil {
		return ""
	}
	data, _ := found["data"].(map[string]any)
	chips, _ := data["ManuallySeparateNPU"].(string)
	return chips
}

func (n *Node) createOrUpdate(collection, name string, object cluster.Object) error {
	err := n.api.Update(collection+"/"+name, object)
	var refused *cluster.Error
	if errors.As(err, &refused) && refused.Status == 404 {
		return n.api.Create(collection, object)
	}
	return err
}

// Event reports a fault, or its end.
func (n *Node) Event(id string, healthy bool) error {
	return n.api.Create("/api/v1/namespaces/kube-system/events", event(n.name, os.Getenv("HOSTNAME"), id, healthy, time.Now()))
}

// event is about the plugin's pod, whose namespace and kind it does not know better.
func event(node, pod, id string, healthy bool, now time.Time) cluster.Object {
	kind, reason := "Warning", "Occur"
	if healthy {
		kind, reason = "Normal", "Recovery"
	}
	return cluster.Object{
		"apiVersion": "v1", "kind": "Event", "type": kind, "reason": reason, "action": "SeparateNPU",
		"message":            fmt.Sprintf("device fault, nodeName:%s, assertion:%s, device:%s", node, reason, id),
		"metadata":           cluster.Object{"name": fmt.Sprintf("%s.%d%d", pod, now.UnixMilli(), number(id)), "namespace": "kube-system"},
		"involvedObject":     cluster.Object{"kind": "pod", "name": pod, "namespace": "kube-system"},
		"source":             cluster.Object{"component": "device-plugin", "host": node},
		"eventTime":          now.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"reportingComponent": "device-plugin", "reportingInstance": pod,
	}
}

func faultList(unhealthy []string) string {
	faults := []map[string]any{}
	for _, id := range unhealthy {
		faults = append(faults, map[string]any{"fault_type": "CardUnhealthy", "npu_name": id, "fault_code": "80E01801",
			"fault_level": "SeparateNPU", "fault_handling": "SeparateNPU", "large_model_fault_level": "SeparateNPU"})
	}
	text, _ := json.Marshal(faults)
	return string(text)
}
