// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package operator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"npuops/labsim/internal/cluster"
)

const (
	group     = "mindxdl.gitee.com"
	container = "ascend"
	portName  = "ascendjob-port"
	port      = 2222.0
	noAddress = "-1"
	// The device plugin says there which chips a pod has.
	chips = "ascend.kubectl.kubernetes.io/ascend-910-configuration"
)

// Of PyTorch, the leader first.
var types = []string{"Master", "Worker"}

type job struct{ object cluster.Object }

// replica is one pod of a job.
type replica struct {
	name, kind  string
	index, rank int
}

func (j job) name() string      { return cluster.Text(j.object, "metadata", "name") }
func (j job) namespace() string { return cluster.Text(j.object, "metadata", "namespace") }
func (j job) title() string     { return j.namespace() + "/" + j.name() }
func (j job) deleted() bool     { return cluster.At(j.object, "metadata", "deletionTimestamp") != nil }
func (j job) leader() string    { return j.name() + "-master-0" }

func (j job) path(version, resource string) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/%s", version, j.namespace(), resource)
}

// check says what is wrong with the job.
func (j job) check() error {
	if framework := cluster.Text(j.object, "metadata", "labels", "framework"); framework != "pytorch" {
		return fmt.Errorf("framework %q is not simulated", framework)
	}
	specs, _ := cluster.At(j.object, "spec", "replicaSpecs").(cluster.Object)
	for kind := range specs {
		if kind != "Master" && kind != "Worker" {
			return fmt.Errorf("ReplicaType is %s but must be one of %v", kind, types)
		}
	}
	if specs["Master"] == nil {
		return fmt.Errorf("there is no Master")
	}
	for _, r := range j.replicas() {
		if j.containerOf(j.template(r)) == nil {
			return fmt.Errorf("%s has no container named %s", r.kind, container)
		}
	}
	return nil
}

func (j job) replicas() []replica {
	var all []replica
	for _, kind := range types {
		spec, ok := cluster.At(j.object, "spec", "replicaSpecs", kind).(cluster.Object)
		if !ok {
			continue
		}
		count := 1.0
		if wanted, ok := spec["replicas"].(float64); ok {
			count = wanted
		}
		for index := range int(count) {
			name := fmt.Sprintf("%s-%s-%d", j.name(), strings.ToLower(kind), index)
			all = append(all, replica{name, kind, index, len(all)})
		}
	}
	return all
}

func (j job) total() int { return len(j.replicas()) }

func (j job) template(r replica) cluster.Object {
	template, _ := cluster.At(j.object, "spec", "replicaSpecs", r.kind, "template").(cluster.Object)
	return copied(template)
}

func (j job) containerOf(template cluster.Object) cluster.Object {
	containers, _ := cluster.At(template, "spec", "containers").([]any)
	for _, one := range containers {
		if cluster.Text(one, "name") == container {
			return one.(cluster.Object)
		}
	}
	return nil
}

func (j job) labels(r replica) cluster.Object {
	kind, index := strings.ToLower(r.kind), strconv.Itoa(r.index)
	return cluster.Object{
		"group-name": group, "job-name": j.name(), "replica-type": kind, "replica-index": index,
		"training.kubeflow.org/operator-name": "ascendjob-controller", "training.kubeflow.org/job-name": j.name(),
		"training.kubeflow.org/replica-type": kind, "training.kubeflow.org/replica-index": index,
	}
}

func (j job) owner() []any {
	return []any{cluster.Object{
		"apiVersion": group + "/v1", "kind": "AscendJob", "name": j.name(), "uid": cluster.Text(j.object, "metadata", "uid"),
		"controller": true, "blockOwnerDeletion": true,
	}}
}

func (j job) service() cluster.Object {
	labels := j.labels(replica{kind: "Master"})
	return cluster.Object{
		"apiVersion": "v1", "kind": "Service",
		"metadata": cluster.Object{"name": j.leader(), "namespace": j.namespace(), "labels": labels, "ownerReferences": j.owner()},
		"spec":     cluster.Object{"selector": labels, "ports": []any{cluster.Object{"name": portName, "port": port}}},
	}
}

func (j job) podGroup() cluster.Object {
	name := j.name() + "-" + cluster.Text(j.object, "metadata", "uid")
	return cluster.Object{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
		"metadata": cluster.Object{"name": name, "namespace": j.namespace(), "ownerReferences": j.owner()},
		"spec":     cluster.Object{"minMember": float64(j.total())},
	}
}

// pod is the template with what tells the pod its rank. address: of the Service of the leader.
func (j job) pod(r replica, address string, gang bool) cluster.Object {
	template := j.template(r)
	labels, _ := cluster.At(template, "metadata", "labels").(cluster.Object)
	annotations, _ := cluster.At(template, "metadata", "annotations").(cluster.Object)
	labels, annotations = merged(labels, j.labels(r)), merged(annotations, cluster.Object{"hccl/rankIndex": strconv.Itoa(r.rank)})
	if r.kind == "Master" {
		labels["training.kubeflow.org/job-role"] = "master"
	}
	spec := template["spec"].(cluster.Object)
	if spec["restartPolicy"] == nil || spec["restartPolicy"] == "" {
		spec["restartPolicy"] = "Never"
	}
	if gang {
		annotations["scheduling.k8s.io/group-name"] = cluster.Text(j.podGroup(), "metadata", "name")
		if spec["schedulerName"] == nil {
			spec["schedulerName"] = "volcano"
		}
	}
	main := j.containerOf(template)
	count := requested(main)
	env, _ := main["env"].([]any)
	for _, pair := range [][2]string{
		{"LOCAL_WORLD_SIZE", strconv.Itoa(count)}, {"WORLD_SIZE", strconv.Itoa(count * j.total())}, {"LOCAL_RANK", ranks(count)},
		{"MASTER_ADDR", address}, {"MASTER_PORT", strconv.Itoa(int(port))}, {"RANK", strconv.Itoa(r.rank)},
		{"REPLICA_TYPE", r.kind}, {"MINDX_TASK_ID", cluster.Text(j.object, "metadata", "uid")},
	} {
		env = append(env, cluster.Object{"name": pair[0], "value": pair[1]})
	}
	main["env"] = env
	return cluster.Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": cluster.Object{
			"name": r.name, "namespace": j.namespace(), "labels": labels, "annotations": annotations, "ownerReferences": j.owner(),
		},
		"spec": spec,
	}
}

func (j job) conditions() []any {
	conditions, _ := cluster.At(j.object, "status", "conditions").([]any)
	return conditions
}

func (j job) ended() bool {
	for _, condition := range j.conditions() {
		if kind := cluster.Text(condition, "type"); kind == "Succeeded" || kind == "Failed" {
			return true
		}
	}
	return false
}

// add says whether the condition is new.
func (j job) add(kind, reason, message string) bool {
	for _, condition := range j.conditions() {
		if cluster.Text(condition, "type") == kind {
			return false
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	status, _ := j.object["status"].(cluster.Object)
	j.object["status"] = merged(status, cluster.Object{"conditions": append(j.conditions(), cluster.Object{
		"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now, "lastUpdateTime": now,
	})})
	return true
}

// tableOf is the rank table, version 1.0, and whether every pod has its chips and they and it have addresses.
func tableOf(pods []cluster.Object) (cluster.Object, bool) {
	var servers []any
	for rank, pod := range pods {
		var instance struct {
			ServerID string `json:"server_id"`
			Devices  []struct {
				DeviceID string `json:"device_id"`
				DeviceIP string `json:"device_ip"`
			} `json:"devices"`
		}
		address := cluster.Text(pod, "status", "podIP")
		if json.Unmarshal([]byte(cluster.Text(pod, "metadata", "annotations", chips)), &instance) != nil || address == "" {
			return nil, false
		}
		var devices []any
		for index, device := range instance.Devices {
			if device.DeviceIP == noAddress {
				return nil, false
			}
			devices = append(devices, cluster.Object{
				"device_id": device.DeviceID, "device_ip": device.DeviceIP, "rank_id": strconv.Itoa(rank*len(instance.Devices) + index),
			})
		}
		servers = append(servers, cluster.Object{"server_id": instance.ServerID, "container_ip": address, "device": devices})
	}
	return cluster.Object{
		"status": "completed", "version": "1.0", "server_count": strconv.Itoa(len(servers)), "server_list": servers,
	}, len(servers) > 0
}

// requested is how many chips a container asks for.
func requested(main cluster.Object) int {
	resources, _ := cluster.At(main, "resources", "limits").(cluster.Object)
	for name, wanted := range resources {
		if strings.HasPrefix(name, "huawei.com/") {
			count, _ := strconv.Atoi(fmt.Sprint(wanted))
			return count
		}
	}
	return 0
}

func ranks(count int) string {
	all := make([]string, count)
	for index := range all {
		all[index] = strconv.Itoa(index)
	}
	return strings.Join(all, ",")
}

func merged(one, other cluster.Object) cluster.Object {
	all := cluster.Object{}
	for _, part := range []cluster.Object{one, other} {
		for key, value := range part {
			all[key] = value
		}
	}
	return all
}

func copied(object cluster.Object) cluster.Object {
	text, _ := json.Marshal(object)
	var other cluster.Object
	_ = json.Unmarshal(text, &other)
	return other
}
