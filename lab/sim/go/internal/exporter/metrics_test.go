// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package exporter

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"npuops/labsim/internal/query"
)

var (
	with910B = query.Chip{"phy": "0", "name": "910B3", "hbm": "65536", "used": "3161", "temp": "38", "code": "80E01801"}
	with310P = query.Chip{"phy": "1", "name": "310P3", "hbm": "0", "ddr": "44278", "used": "1263", "temp": "38"}
	owners   = map[int]Owner{0: {"space", "pod", "container", "id0"}}
)

func names(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z_0-9]+)[{ ]`).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

func TestNamesAreUpstreams(t *testing.T) {
	t.Setenv("NPUSIM_RELEASE", "v7.3.2")
	content, err := os.ReadFile("testdata/npu-exporter-metric-names-v7.3.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := names(Text([]query.Chip{with910B, with310P}, true, owners, time.Now()))
	for _, name := range strings.Fields(string(content)) {
		// Of A3 alone, and the prefix of names for a second and further codes.
		if strings.Contains(name, "_sio_") || strings.HasSuffix(name, "_code_") {
			continue
		}
		if !found[name] {
			t.Errorf("%s is missing", name)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("%s is none of upstream's names", name)
	}
}

func TestTheReleaseIsTold(t *testing.T) {
	for release, more := range map[string]bool{"v7.3.2": false, "v26.1.0": true} {
		t.Setenv("NPUSIM_RELEASE", release)
		text := Text([]query.Chip{with910B, with310P}, true, owners, time.Now())
		if !strings.Contains(text, `npu_exporter_version_info{exporterVersion="`+release+`"} 1`) {
			t.Errorf("%s is not in\n%s", release, text)
		}
		if names(text)["machine_card_nums"] != more {
			t.Errorf("machine_card_nums with %s: must be %v", release, more)
		}
	}
}

func TestWedged(t *testing.T) {
	healthy := with910B
	up, down := Text([]query.Chip{healthy}, true, nil, time.Now()), Text([]query.Chip{healthy}, false, nil, time.Now())
	for _, name := range []string{"temperature", "power", "utilization", "hbm_used_memory"} {
		if name = "npu_chip_info_" + name; !names(up)[name] || names(down)[name] {
			t.Errorf("%s must be there when the driver answers, and only then", name)
		}
	}
	if !strings.Contains(down, "machine_npu_nums 1\n") {
		t.Error("machine_npu_nums must keep its value")
	}
	if !regexp.MustCompile(`(?m)^npu_chip_info_health_status\{[^}]*\} 0 `).MatchString(down) {
		t.Error("health_status must be 0")
	}
}

func TestLabels(t *testing.T) {
	text := Text([]query.Chip{with910B}, true, owners, time.Now())
	for _, part := range []string{
		`npu_chip_info_health_status{id="0",model_name="910B3-Ascend-V1",vdie_id="`,
		`namespace="space",pod_name="pod",container_name="container"`,
		`npu_container_info{npuID="0",`,
		`containerName="space_pod_container"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing in\n%s", part, text)
		}
	}
}

func TestWhichChipsAContainerHas(t *testing.T) {
	major, other := int64(237), int64(238)
	minor := int64(3)
	var injected spec
	injected.Linux.Resources.Devices = append(injected.Linux.Resources.Devices, []struct {
		Allow        bool
		Type         string
		Major, Minor *int64
	}{{false, "c", nil, nil}, {true, "c", &other, &minor}, {true, "c", &major, &minor}}...)
	for name, test := range map[string]struct {
		env  []string
		want int
	}{
		"device rules":       {nil, 1},
		"runtime":            {[]string{"ASCEND_VISIBLE_DEVICES=0,1"}, 2},
		"range":              {[]string{"ASCEND_VISIBLE_DEVICES=0-3"}, 4},
		"names":              {[]string{"ASCEND_VISIBLE_DEVICES=Ascend910-0,Ascend910-5"}, 2},
		"void loses the pod": {[]string{"ASCEND_VISIBLE_DEVICES=void"}, 0},
		"last one wins":      {[]string{"ASCEND_VISIBLE_DEVICES=0,1", "ASCEND_VISIBLE_DEVICES=4"}, 1},
	} {
		injected.Process.Env = test.env
		if got := len(injected.chips([]int64{major})); got != test.want {
			t.Errorf("%s: %d chips, not %d", name, got, test.want)
		}
	}
}

func TestTheMajorIsThatOfDevdrv(t *testing.T) {
	devices := "Character devices:\n  1 mem\n237 devdrv-cdev\n238 davinci_manager\n\nBlock devices:\n  7 loop\n"
	if majors := chipMajors(devices); len(majors) != 1 || majors[0] != 237 {
		t.Errorf("%v", majors)
	}
}
