// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package operator

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"npuops/labsim/internal/cluster"
)

// A cluster that keeps what it is given.
type fake map[string]cluster.Object

func (f fake) Get(where string) (cluster.Object, error) {
	if object, ok := f[where]; ok {
		return copied(object), nil
	}
	return nil, &cluster.Error{Method: "GET", Path: where, Status: 404}
}

func (f fake) Create(collection string, object cluster.Object) error {
	f[path.Join(collection, cluster.Text(object, "metadata", "name"))] = copied(object)
	return nil
}

func (f fake) Update(where string, object cluster.Object) error {
	where = strings.TrimSuffix(where, "/status")
	f[where] = copied(object)
	if strings.Contains(where, "/ascendjobs/") {
		f[jobs] = cluster.Object{"items": []any{copied(object)}}
	}
	return nil
}

const definition = `{"metadata": {"name": "train", "namespace": "team", "uid": "u1", "labels": {"framework": "pytorch"}},
 "spec": {"replicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}}}`

const podTemplate = `{"spec": {"containers": [{"name": "ascend", "resources": {"limits": {"huawei.com/Ascend910": "4"}}}]}}`

func with(t *testing.T, text string) fake {
	t.Helper()
	var item cluster.Object
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "POD", podTemplate)), &item); err != nil {
		t.Fatal(err)
	}
	return fake{jobs: {"items": []any{item}}, "/apis/batch.volcano.sh/v1alpha1/jobs": {}}
}

func reconcile(t *testing.T, f fake, gang bool) {
	t.Helper()
	if err := New(f, gang).ReconcileAll(); err != nil {
		t.Fatal(err)
	}
}

func conditions(f fake) []string {
	var all []string
	for _, condition := range (job{f[jobs]["items"].([]any)[0].(cluster.Object)}).conditions() {
		all = append(all, cluster.Text(condition, "type"))
	}
	return all
}

func environment(pod cluster.Object) map[string]string {
	all := map[string]string{}
	for _, one := range (job{}).containerOf(pod)["env"].([]any) {
		all[cluster.Text(one, "name")] = cluster.Text(one, "value")
	}
	return all
}

func TestAJobFromItsPodsToItsEnd(t *testing.T) {
	f := with(t, definition)
	f["/api/v1/namespaces/team/configmaps/rings-config-train"] = cluster.Object{}
	reconcile(t, f, false)
	pods := "/api/v1/namespaces/team/pods/"
	names := []string{"train-master-0", "train-worker-0", "train-worker-1"}
	for rank, name := range names {
		env := environment(f[pods+name])
		if env["RANK"] != string(rune('0'+rank)) || env["WORLD_SIZE"] != "12" || env["LOCAL_RANK"] != "0,1,2,3" {
			t.Fatalf("%s: %v", name, env)
		}
		f[pods+name]["status"] = cluster.Object{"phase": "Running", "podIP": "10.0.0." + string(rune('1'+rank))}
		f[pods+name]["metadata"].(cluster.Object)["annotations"].(cluster.Object)[chips] =
			`{"server_id": "s", "devices": [{"device_id": "0", "device_ip": "1.1.1.1"}, {"device_id": "1", "device_ip": "1.1.1.2"}]}`
	}
	main := f[pods+names[0]]["metadata"].(cluster.Object)["annotations"].(cluster.Object)
	good := main[chips]
	main[chips] = strings.ReplaceAll(good.(string), "1.1.1.1", "-1")
	reconcile(t, f, false)
	if f["/api/v1/namespaces/team/configmaps/rings-config-train"]["data"] != nil {
		t.Fatal("a rank table of chips without addresses")
	}
	main[chips] = good
	reconcile(t, f, false)
	text := cluster.Text(f["/api/v1/namespaces/team/configmaps/rings-config-train"], "data", "hccl.json")
	if !strings.Contains(text, `"status":"completed"`) || !strings.Contains(text, `"rank_id":"5"`) {
		t.Fatal(text)
	}
	f[pods+names[0]]["status"] = cluster.Object{"phase": "Succeeded"}
	reconcile(t, f, false)
	if got := strings.Join(conditions(f), " "); got != "Created Running Succeeded" {
		t.Fatal(got)
	}
}

func TestGangScheduling(t *testing.T) {
	f := with(t, definition)
	reconcile(t, f, true)
	if cluster.Text(f["/api/v1/namespaces/team/pods/train-worker-1"], "spec", "schedulerName") != "volcano" {
		t.Fatal("the pods are not Volcano's")
	}
	if f["/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups/train-u1"] == nil {
		t.Fatal("there is no PodGroup")
	}
}

func TestAJobThatMakesNoSenseFails(t *testing.T) {
	f := with(t, strings.ReplaceAll(definition, `"Master"`, `"Chief"`))
	reconcile(t, f, false)
	if got := strings.Join(conditions(f), " "); got != "Failed" {
		t.Fatal(got)
	}
}

func TestWithoutVolcanosKindsItEnds(t *testing.T) {
	patience = 0
	if err := New(fake{jobs: {}}, false).Run(nil); err == nil {
		t.Fatal("it runs without Volcano's jobs")
	}
	if err := New(fake{}, true).Run(nil); err == nil || !strings.Contains(err.Error(), "PodGroup") {
		t.Fatal(err)
	}
}
