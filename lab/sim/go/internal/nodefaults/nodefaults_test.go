// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package nodefaults

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"npuops/labsim/internal/cluster"
)

// A cluster that keeps what it is given.
type fake map[string]cluster.Object

func (f fake) Get(where string) (cluster.Object, error) {
	if strings.HasPrefix(where, "/api/v1/configmaps?") {
		var items []any
		for _, object := range f {
			items = append(items, object)
		}
		return cluster.Object{"items": items}, nil
	}
	if object, ok := f[where]; ok {
		return object, nil
	}
	return nil, &cluster.Error{Method: "GET", Path: where, Status: 404}
}

func (f fake) Create(where string, object cluster.Object) error {
	f[path.Join(where, cluster.Text(object, "metadata", "name"))] = object
	return nil
}

func (f fake) Update(where string, object cluster.Object) error {
	if _, ok := f[where]; !ok {
		return &cluster.Error{Method: "PUT", Path: where, Status: 404}
	}
	f[where] = object
	return nil
}

func (f fake) Delete(where string) error {
	if _, ok := f[where]; !ok {
		return &cluster.Error{Method: "DELETE", Path: where, Status: 404}
	}
	delete(f, where)
	return nil
}

const report = "/api/v1/namespaces/mindx-dl/configmaps/mindx-dl-nodeinfo-a"

func bmc(t *testing.T, codes string) {
	t.Helper()
	if err := os.WriteFile(BMC, []byte(codes), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFaultIsReportedAndCollectedUntilItIsGone(t *testing.T) {
	BMC = filepath.Join(t.TempDir(), "ipmi0")
	api := fake{"/apis/scheduling.volcano.sh/v1beta1/podgroups": {}}
	noded := NewNoded(api, "a")
	clusterd, err := NewClusterd(api)
	if err != nil {
		t.Fatal(err)
	}
	if err := noded.Report(); err == nil {
		t.Error("no error without IPMI")
	}
	for _, step := range []struct{ codes, status string }{{"", ""}, {"2C000031\n", "UnHealthy"}, {"0100000D\n", "Healthy"}, {"", ""}} {
		bmc(t, step.codes)
		if err := noded.Report(); err != nil {
			t.Fatal(err)
		}
		if err := clusterd.Collect(); err != nil {
			t.Fatal(err)
		}
		if _, there := api[report]; there != (step.status != "") {
			t.Errorf("%q: report there: %t", step.codes, there)
		}
		var nodes map[string]map[string]any
		text := cluster.Text(api["/api/v1/namespaces/mindx-dl/configmaps/cluster-info-node-cm"], "data", "cluster-info-node-cm")
		if err := json.Unmarshal([]byte(text), &nodes); err != nil {
			t.Fatal(err)
		}
		if status, _ := nodes["mindx-dl-nodeinfo-a"]["NodeStatus"].(string); status != step.status {
			t.Errorf("%q: %q", step.codes, status)
		}
	}
}

func TestClusterdNeedsVolcano(t *testing.T) {
	if _, err := NewClusterd(fake{}); err == nil {
		t.Error("it starts without")
	}
}
