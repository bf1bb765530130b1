// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"npuops/labsim/internal/cluster"
)

const configurationKey = "ascend.kubectl.kubernetes.io/ascend-910-configuration"

func TestAnnotationsOfAPod(t *testing.T) {
	for release, want := range map[string]string{
		"v7.3.2": "",
		"v26.1.0": `{"pod_name":"train","server_id":"u1","host_ip":"10.0.0.1","super_pod_id":-2,"devices":[
			{"device_id":"2","device_ip":"-1","super_device_id":"0"},{"device_id":"10","device_ip":"-1","super_device_id":"0"}],
			"rack_id":0,"server_index":"-2","server_ip":"10.0.0.1"}`,
	} {
		t.Setenv("NPUSIM_RELEASE", release)
		got, err := (&Pods{host: "10.0.0.1", kind: kinds["910B"]}).annotations("train", "u1", []string{"Ascend910-2", "Ascend910-10"})
		if err != nil {
			t.Fatal(err)
		}
		var expected, found any
		json.Unmarshal([]byte(want), &expected)               //nolint:errcheck // empty in 7.3
		json.Unmarshal([]byte(got[configurationKey]), &found) //nolint:errcheck // differs then
		if !reflect.DeepEqual(found, expected) {
			t.Errorf("%s: %s", release, got[configurationKey])
		}
		list := "Ascend910-10,Ascend910-2"
		if got["huawei.com/kltDev"] != list || got["huawei.com/AscendReal"] != list {
			t.Errorf("%s: %v", release, got)
		}
		if _, there := got["huawei.com/Ascend910"]; there != (release == "v7.3.2") {
			t.Errorf("%s: %v", release, got)
		}
	}
}

func TestEventsAreAboutThePlugin(t *testing.T) {
	for healthy, want := range map[bool][2]string{false: {"Warning", "Occur"}, true: {"Normal", "Recovery"}} {
		object := event("npu-a", "ascend-device-plugin-x", "Ascend910-3", healthy, time.UnixMilli(1700000000123))
		about := object["involvedObject"].(cluster.Object)
		if object["type"] != want[0] || object["reason"] != want[1] || about["kind"] != "pod" || about["name"] != "ascend-device-plugin-x" {
			t.Errorf("%v", object)
		}
		if name := cluster.Text(object, "metadata", "name"); name != "ascend-device-plugin-x.17000000001233" {
			t.Error(name)
		}
	}
}
