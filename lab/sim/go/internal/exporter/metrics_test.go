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

// answer is a driver's that works, with these chips.
func answer(chips ...query.Chip) query.Reply { return query.Reply{Driver: "25.5.0", Chips: chips} }

var wedged = query.Reply{Result: query.Inner}

// scrape is the text of an exporter that sees the replies after one another, so many seconds apart.
func scrape(apart int, replies ...query.Reply) string {
	c := &Collector{driver: replies[0].Driver, started: time.Now()}
	for i, reply := range replies {
		c.take(reply, owners, c.started.Add(time.Duration(i*apart)*time.Second))
	}
	return c.Text()
}

func TestNamesAreUpstreams(t *testing.T) {
	for _, release := range []string{"v7.3.2", "v26.1.0"} {
		t.Setenv("NPUSIM_RELEASE", release)
		content, err := os.ReadFile("testdata/npu-exporter-metric-names-" + release + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		found := names(scrape(5, answer(with910B, with310P)))
		for _, name := range strings.Fields(string(content)) {
			if !found[name] {
				t.Errorf("%s: %s is missing", release, name)
			}
			delete(found, name)
		}
		for name := range found {
			t.Errorf("%s: %s is none of upstream's names", release, name)
		}
	}
}

func TestNamesOfA310P(t *testing.T) {
	for release, is73 := range map[string]bool{"v7.3.2": true, "v26.1.0": false} {
		t.Setenv("NPUSIM_RELEASE", release)
		found := names(scrape(5, answer(with310P)))
		for name, want := range map[string]bool{"npu_chip_info_product_type": !is73, "npu_chip_info_total_memory": true,
			"npu_chip_info_overall_utilization": is73, "npu_chip_info_hccs_statistic_info_rx_cnt_1": false} {
			if found[name] != want {
				t.Errorf("%s: %s: %v", release, name, !want)
			}
		}
	}
}

func TestTheReleaseIsTold(t *testing.T) {
	for release, more := range map[string]bool{"v7.3.2": false, "v26.1.0": true} {
		t.Setenv("NPUSIM_RELEASE", release)
		text := scrape(5, answer(with910B, with310P))
		if !strings.Contains(text, `npu_exporter_version_info{exporterVersion="`+release+`_linux-`) {
			t.Errorf("%s is not in\n%s", release, text)
		}
		if strings.Contains(text, `node_base_info{driverVersion="25.5.0",exporterVersion="`+release+`_linux-`) != more {
			t.Errorf("node_base_info with %s: must be %v", release, more)
		}
	}
}

func TestWedged(t *testing.T) {
	for release, health := range map[string]string{"v7.3.2": "0", "v26.1.0": "-1"} {
		t.Setenv("NPUSIM_RELEASE", release)
		up, down := scrape(5, answer(with910B)), scrape(5, answer(with910B), wedged)
		for _, name := range []string{"temperature", "power", "utilization", "hbm_used_memory"} {
			if name = "npu_chip_info_" + name; !names(up)[name] || names(down)[name] {
				t.Errorf("%s: %s must be there when the driver answers, and only then", release, name)
			}
		}
		for name, kept := range map[string]string{"npu_chip_info_hccs_statistic_info_rx_cnt_1": "-1", "npu_chip_optical_temp": "41"} {
			if !regexp.MustCompile(`(?m)^` + name + `\{[^}]*\} ` + kept + ` `).MatchString(down) {
				t.Errorf("%s: %s must be %s", release, name, kept)
			}
		}
		for _, name := range []string{"npu_chip_info_link_status", "npu_chip_info_network_status"} {
			if names(down)[name] != (release == "v26.1.0") {
				t.Errorf("%s: %s must be in 26.1 only", release, name)
			}
		}
		if !strings.Contains(down, "machine_npu_nums 1\n") {
			t.Errorf("%s: machine_npu_nums must keep its value until the list is read again", release)
		}
		if !regexp.MustCompile(`(?m)^npu_chip_info_health_status\{[^}]*\} ` + health + ` `).MatchString(down) {
			t.Errorf("%s: health_status must be %s", release, health)
		}
	}
}

func TestWedgedForAMinute(t *testing.T) {
	for release, left := range map[string][]string{
		"v7.3.2":  {"machine_npu_nums", "npu_exporter_version_info"},
		"v26.1.0": {"machine_npu_nums", "npu_exporter_version_info", "machine_card_nums", "node_base_info"},
	} {
		t.Setenv("NPUSIM_RELEASE", release)
		text := scrape(61, answer(with910B), wedged)
		found := names(text)
		for _, name := range left {
			if !found[name] {
				t.Errorf("%s: %s is missing", release, name)
			}
			delete(found, name)
		}
		if len(found) > 0 || !strings.Contains(text, "machine_npu_nums 0\n") {
			t.Errorf("%s:\n%s", release, text)
		}
		if !strings.Contains(scrape(61, answer(with910B), wedged, answer(with910B)), "machine_npu_nums 1\n") {
			t.Errorf("%s: a driver that works again is not seen", release)
		}
	}
}

func TestAChipThatIsLost(t *testing.T) {
	second := query.Chip{"phy": "1", "name": "910B3", "hbm": "65536", "temp": "39"}
	for _, test := range []struct {
		apart int
		nums  string
	}{{5, "2"}, {61, "1"}} {
		text := scrape(test.apart, answer(with910B, second), answer(with910B))
		if !strings.Contains(text, "machine_npu_nums "+test.nums+"\n") || strings.Contains(text, `npu_chip_info_temperature{id="1"`) {
			t.Errorf("after %d s:\n%s", test.apart, text)
		}
	}
}

func TestLabels(t *testing.T) {
	text := scrape(5, answer(with910B))
	for _, part := range []string{
		`npu_chip_info_health_status{id="0",model_name="910B3-Ascend-V1",vdie_id="`,
		`namespace="space",pod_name="pod",container_name="container"`,
		`npu_chip_info_name{id="0",name="910B3-Ascend-V1",`,
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
