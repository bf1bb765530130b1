// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package exporter behaves like npu-exporter v7.3.0 and v26.1.0, with the metrics of the lab's chips.
package exporter

import (
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"npuops/labsim/internal/query"
	"npuops/labsim/internal/release"
)

// What a metric needs, to be there.
const (
	always    = 0
	answers   = 1 << iota // a driver that answers: gone while it is wedged
	onlyHBM               // chips with HBM and a network of their own
	onlyDDR               // chips without
	pod                   // a container that has the chip
	since26               // the version line 26.1
	only73                // the version line 7.3
	answers73             // a driver that answers, in 7.3; 26.1 tells -1 without
)

// metric is one series per chip. With a nil value it is 0: the lab's chips have nothing to do, and no faulty links.
type metric struct {
	name  string
	needs int
	value func(chip query.Chip, up bool) float64
}

func number(key string, factor float64) func(query.Chip, bool) float64 {
	return func(chip query.Chip, _ bool) float64 { return float64(chip.Number(key)) * factor }
}

func constant(value float64) func(query.Chip, bool) float64 {
	return func(query.Chip, bool) float64 { return value }
}

func percent(used, all string) func(query.Chip, bool) float64 {
	return func(chip query.Chip, _ bool) float64 {
		return float64(chip.Number(used) * 100 / max(chip.Number(all), 1))
	}
}

func healthy(chip query.Chip, up bool) float64 {
	switch {
	case up && chip.Number("health") == 0 && chip.Number("result") == 0:
		return 1
	case up && chip.Number("result") == 0, release.Is73():
		return 0
	}
	return -1
}

// told is a value as long as the driver tells it.
func told(value float64) func(query.Chip, bool) float64 {
	return func(_ query.Chip, up bool) float64 {
		if up {
			return value
		}
		return -1
	}
}

// Every name that a whole 910B or 310P can have; those of error codes, of the machine and with labels of their
// own are in Text.
var metrics = slices.Concat([]metric{
	{"npu_chip_info_health_status", always, healthy},
	{"npu_chip_info_process_info_num", always, nil},
	{"npu_chip_info_temperature", answers, number("temp", 1)},
	{"npu_chip_info_power", answers, number("power", 0.1)},
	{"npu_chip_info_voltage", answers, constant(0.91)},
	{"npu_chip_info_aicore_current_freq", answers, constant(1800)},
	{"npu_chip_info_utilization", answers, nil},
	{"npu_chip_info_overall_utilization", answers | onlyHBM, nil},
	{"npu_chip_info_overall_utilization", answers | onlyDDR | only73, nil},
	{"npu_chip_info_cube_utilization", answers | onlyHBM | since26, nil},
	{"npu_chip_info_vector_utilization", answers, nil},
	{"npu_chip_info_total_memory", onlyDDR, number("ddr", 1)},
	{"npu_chip_info_used_memory", onlyDDR, number("used", 1)},
	{"npu_chip_info_hbm_total_memory", answers | onlyHBM, number("hbm", 1)},
	{"npu_chip_info_hbm_used_memory", answers | onlyHBM, number("used", 1)},
	{"npu_chip_info_hbm_utilization", answers | onlyHBM, percent("used", "hbm")},
	{"npu_chip_info_hbm_temperature", answers | onlyHBM, number("temp", 1)},
	{"npu_chip_info_hbm_ecc_enable_flag", answers | onlyHBM, constant(1)},
	{"npu_chip_info_network_status", answers73 | onlyHBM, told(1)},
	{"npu_chip_info_link_status", answers73 | onlyHBM, told(1)},
	{"npu_chip_info_hccs_bandwidth_info_profiling_time", onlyHBM, constant(200)},
	{"npu_chip_link_speed", answers | onlyHBM, constant(200000)},
	{"npu_chip_link_up_num", answers | onlyHBM, constant(1)},
	{"npu_chip_optical_state", onlyHBM, constant(1)},
	{"npu_chip_optical_temp", onlyHBM, constant(41)},
	{"npu_chip_optical_vcc", onlyHBM, constant(3300)},
	{"npu_chip_optical_tx_power_0", onlyHBM, constant(0.9)},
	{"npu_chip_optical_tx_power_1", onlyHBM, constant(0.9)},
	{"npu_chip_optical_tx_power_2", onlyHBM, constant(0.9)},
	{"npu_chip_optical_tx_power_3", onlyHBM, constant(0.9)},
	{"npu_chip_optical_rx_power_0", onlyHBM, constant(0.8)},
	{"npu_chip_optical_rx_power_1", onlyHBM, constant(0.8)},
	{"npu_chip_optical_rx_power_2", onlyHBM, constant(0.8)},
	{"npu_chip_optical_rx_power_3", onlyHBM, constant(0.8)},
	{"container_npu_utilization", answers | pod, nil},
	{"container_npu_total_memory", answers | pod | onlyHBM, number("hbm", 1)},
	{"container_npu_used_memory", answers | pod | onlyHBM, number("used", 1)},
	{"container_npu_total_memory", answers | pod | onlyDDR, number("ddr", 1)},
	{"container_npu_used_memory", answers | pod | onlyDDR, number("used", 1)},
}, zeros(), hccs())

// zeros are counters and rates that stay 0 in the lab.
func zeros() []metric {
	var list []metric
	add := func(needs int, prefix, names string) {
		for _, name := range strings.Fields(names) {
			list = append(list, metric{prefix + name, needs, nil})
		}
	}
	add(answers|onlyHBM, "npu_chip_info_hbm_", "bandwidth_utilization")
	add(answers|onlyHBM, "npu_chip_info_hbm_ecc_", `single_bit_error_cnt double_bit_error_cnt
		total_single_bit_error_cnt total_double_bit_error_cnt single_bit_isolated_pages_cnt double_bit_isolated_pages_cnt`)
	add(answers|onlyHBM, "npu_chip_info_", "bandwidth_rx bandwidth_tx")
	add(onlyHBM, "npu_chip_info_", "rx_ecn_num rx_fcs_num")
	add(onlyHBM, "npu_chip_info_pcie_", "rx_cpl_bw rx_np_bw rx_p_bw tx_cpl_bw tx_np_bw tx_p_bw")
	add(onlyHBM, "npu_chip_mac_", `rx_bad_oct_num rx_bad_pkt_num rx_pause_num rx_pfc_pkt_num
		tx_bad_oct_num tx_bad_pkt_num tx_pause_num tx_pfc_pkt_num`)
	add(onlyHBM, "npu_chip_roce_", `new_pkt_rty_num out_of_order_num qp_status_err_num unexpected_ack_num
		verification_err_num rx_all_pkt_num rx_cnp_pkt_num rx_err_pkt_num tx_all_pkt_num tx_cnp_pkt_num tx_err_pkt_num`)
	return list
}

// hccs are the links between the chips, which send nothing.
func hccs() []metric {
	var list []metric
	for _, what := range []string{"statistic_info_tx_cnt", "statistic_info_rx_cnt", "statistic_info_crc_err_cnt",
		"bandwidth_info_tx", "bandwidth_info_rx"} {
		for link := 1; link <= 7; link++ {
			list = append(list, metric{fmt.Sprintf("npu_chip_info_hccs_%s_%d", what, link), onlyHBM, told(0)})
		}
	}
	for _, what := range []string{"total_tx", "total_rx"} {
		list = append(list, metric{"npu_chip_info_hccs_bandwidth_info_" + what, onlyHBM, told(0)})
	}
	return list
}

func (m metric) there(chip query.Chip, up, used bool) bool {
	hbm := chip.Number("hbm") > 0
	met := func(need int, holds bool) bool { return m.needs&need == 0 || holds }
	return met(answers, up) && met(onlyHBM, hbm) && met(onlyDDR, !hbm) && met(pod, used) && met(since26, !release.Is73()) && met(only73, release.Is73()) &&
		met(answers73, up || !release.Is73())
}

// Owner is the container that has a chip.
type Owner struct{ Namespace, Pod, Container, ID string }

// Text is the answer to a scrape: of the chips of a list, with what the driver said of them last, and their owners by physical ID.
func Text(list []query.Chip, reply query.Reply, owners map[int]Owner, at time.Time) string {
	out := page{lines: map[string][]string{}}
	for _, listed := range list {
		chip, up := listed, false
		for _, now := range reply.Chips {
			if reply.Result == 0 && now["phy"] == listed["phy"] {
				chip, up = now, true
			}
		}
		out.chip(chip, up, owners, at)
	}
	out.add("machine_npu_nums", "", float64(len(list)), time.Time{})
	out.add("npu_exporter_version_info", labels("exporterVersion", version()), 1, time.Time{})
	return out.String()
}

// Base is what 26.1 adds of the node. It read both at its start, or when the driver answered last.
func Base(cards int, driver string, at time.Time) string {
	out := page{lines: map[string][]string{}}
	out.add("machine_card_nums", "", float64(cards), time.Time{})
	out.add("node_base_info", labels("driverVersion", driver, "exporterVersion", version()), 1, at)
	return out.String()
}

func version() string { return release.Name() + "_linux-" + machine[runtime.GOARCH] }

var machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func cards(chips []query.Chip) int {
	found := map[string]bool{}
	for _, chip := range chips {
		found[chip["bus"]] = true
	}
	return len(found)
}

type page struct{ lines map[string][]string }

func (p page) chip(chip query.Chip, up bool, owners map[int]Owner, at time.Time) {
	owner, used := owners[chip.Number("phy")]
	common := []string{"id", chip["phy"], "model_name", chip["name"] + "-Ascend-V1", "vdie_id", vdie(chip),
		"pcie_bus_info", chip["bus"], "namespace", owner.Namespace, "pod_name", owner.Pod, "container_name", owner.Container}
	for _, m := range metrics {
		if m.there(chip, up, used) {
			value := 0.0
			if m.value != nil {
				value = m.value(chip, up)
			}
			p.add(m.name, labels(common...), value, at)
		}
	}
	p.add("npu_chip_info_name", labels(append([]string{"id", chip["phy"], "name", common[3]}, common[4:]...)...), 1, at)
	p.add("npu_chip_info_serial_number", labels(append(common, "serial_number", chip["serial"])...), 1, at)
	if !release.Is73() && chip.Number("hbm") == 0 {
		p.add("npu_chip_info_product_type", labels(append(common, "product_type", chip["product"])...), 1, at)
	}
	name := ""
	if used {
		name = strings.Join([]string{owner.Namespace, owner.Pod, owner.Container}, "_")
		info := append([]string{"npuID", chip["phy"]}, common[2:]...)
		p.add("npu_container_info", labels(append(info, "containerID", owner.ID, "containerName", name)...), 1, at)
	}
	process := append(append([]string{}, common[:len(common)-1]...), name, "process_id", "", "container_id", owner.ID)
	p.add("npu_chip_info_process_info", labels(process...), 0, at)
	if code, err := strconv.ParseInt(chip["code"], 16, 64); err == nil && up {
		p.add("npu_chip_info_error_code", labels(common...), float64(code), at)
	}
}

func (p page) add(name, labels string, value float64, at time.Time) {
	line := name + labels + " " + strconv.FormatFloat(value, 'g', -1, 64)
	if !at.IsZero() {
		line += " " + strconv.FormatInt(at.UnixMilli(), 10)
	}
	p.lines[name] = append(p.lines[name], line)
}

func (p page) String() string {
	names := make([]string, 0, len(p.lines))
	for name := range p.lines {
		names = append(names, name)
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s gauge\n", name, strings.ReplaceAll(name, "_", " "), name)
		for _, line := range p.lines[name] {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func labels(pairs ...string) string {
	words := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		words = append(words, pairs[i]+"="+strconv.Quote(pairs[i+1]))
	}
	return "{" + strings.Join(words, ",") + "}"
}

func vdie(chip query.Chip) string {
	return fmt.Sprintf("42C711D4-20B03704-4A10C8D4-14CC040A-D21020%02X", chip.Number("phy"))
}
