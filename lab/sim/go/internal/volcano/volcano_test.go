// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package volcano

import (
	"fmt"
	"maps"
	"path"
	"strings"
	"testing"
	"time"

	"npuops/labsim/internal/cluster"
)

// A cluster that keeps what it is given, and lists pods and PodGroups.
type fake map[string]cluster.Object

func (f fake) Get(where string) (cluster.Object, error) {
	if object, ok := f[strings.TrimSuffix(where, "?limit=1")]; ok {
		return maps.Clone(object), nil
	}
	return nil, &cluster.Error{Method: "GET", Path: where, Status: 404}
}

func (f fake) Create(collection string, object cluster.Object) error {
	f[path.Join(collection, cluster.Text(object, "metadata", "name"))] = object
	return nil
}

func (f fake) Update(where string, object cluster.Object) error { f[where] = object; return nil }
func (f fake) Patch(where string, patch cluster.Object) error   { f[where] = patch; return nil }

func pod(name, group, node string, count int) cluster.Object {
	return cluster.Object{
		"metadata": cluster.Object{"name": name, "namespace": "team", "uid": name, "annotations": cluster.Object{groupName: group}},
		"spec": cluster.Object{
			"schedulerName": schedulerName, "nodeName": node, "containers": []any{cluster.Object{
				"resources": cluster.Object{"limits": cluster.Object{"huawei.com/Ascend910": fmt.Sprint(count)}},
			}},
		},
	}
}

// Two nodes with eight chips each, the second cordoned or not, and a group that wants its members at once.
func with(cordoned bool, members int, all ...any) fake {
	node := func(name string, cordoned bool) cluster.Object {
		return cluster.Object{
			"metadata": cluster.Object{"name": name}, "spec": cluster.Object{"unschedulable": cordoned},
			"status": cluster.Object{"allocatable": cluster.Object{"huawei.com/Ascend910": "8", "cpu": "2"}},
		}
	}
	return fake{
		pods:            {"items": all},
		"/api/v1/nodes": {"items": []any{node("a", false), node("b", cordoned)}},
		podGroups: {"items": []any{cluster.Object{
			"metadata": cluster.Object{"name": "train", "namespace": "team"}, "spec": cluster.Object{"minMember": float64(members)},
		}}},
	}
}

func bound(t *testing.T, f fake) string {
	t.Helper()
	scheduler, err := NewScheduler(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Schedule(); err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, name := range []string{"x", "y"} {
		for where, object := range f {
			if strings.HasPrefix(where, "/api/v1/namespaces/team/pods/"+name+"/binding") {
				places = append(places, name+"="+cluster.Text(object, "target", "name"))
			}
		}
	}
	return strings.Join(places, " ")
}

func TestAJobStartsAsAWholeOrNotAtAll(t *testing.T) {
	for _, test := range []struct {
		name string
		f    fake
		want string
	}{
		{"all fit", with(false, 2, pod("x", "train", "", 8), pod("y", "train", "", 8)), "x=a y=b"},
		{"together on one", with(false, 2, pod("x", "train", "", 4), pod("y", "train", "", 4)), "x=a y=a"},
		{"one is missing", with(false, 2, pod("x", "train", "", 8)), ""},
		{"a cordoned node", with(true, 2, pod("x", "train", "", 8), pod("y", "train", "", 8)), ""},
		{"others have chips", with(true, 1, pod("x", "train", "", 8), pod("z", "other", "a", 1)), ""},
		{"it goes on", with(true, 2, pod("x", "train", "", 4), pod("z", "train", "a", 4)), "x=a"},
	} {
		if got := bound(t, test.f); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestThePhaseIsTold(t *testing.T) {
	for want, f := range map[string]fake{
		"Running": with(false, 1, pod("x", "train", "", 8)),
		"Inqueue": with(false, 1, pod("x", "train", "", 9)),
	} {
		bound(t, f)
		if got := cluster.Text(f[scheduling+"/namespaces/team/podgroups/train"], "status", "phase"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAPodWithoutAGroupGetsOne(t *testing.T) {
	f := with(false, 1, pod("x", "", "", 1), pod("y", "train", "", 1))
	if err := Group(f); err != nil {
		t.Fatal(err)
	}
	if f[scheduling+"/namespaces/team/podgroups/podgroup-x"] == nil || f["/api/v1/namespaces/team/pods/y"] != nil {
		t.Fatal(f)
	}
	if cluster.Text(f["/api/v1/namespaces/team/pods/x"], "metadata", "annotations", groupName) != "podgroup-x" {
		t.Fatal("the pod does not know its group")
	}
}

func TestOnlyOneLeads(t *testing.T) {
	f, now := fake{}, time.Now()
	for _, step := range []struct {
		who   string
		after time.Duration
		leads bool
	}{{"a", 0, true}, {"b", time.Second, false}, {"a", 2 * time.Second, true}, {"b", 20 * time.Second, true}, {"a", 21 * time.Second, false}} {
		leads, err := hold(f, "volcano", step.who, now.Add(step.after))
		if err != nil || leads != step.leads {
			t.Fatalf("%v: %v, %v", step, leads, err)
		}
	}
}

func TestWithoutAKindItEnds(t *testing.T) {
	if err := Check(with(false, 1), []string{pods, podGroups}); err != nil {
		t.Fatal(err)
	}
	if Check(with(false, 1), []string{pods, queues}) == nil {
		t.Fatal("it runs without queues")
	}
}
