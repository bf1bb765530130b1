// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"fmt"
	"testing"

	"npuops/labsim/internal/query"
)

func vnpu(id, phy, template string) query.Chip {
	return query.Chip{"id": id, "phy": phy, "template": template}
}

func TestOffers(t *testing.T) {
	reply := query.Reply{
		Chips: []query.Chip{{"phy": "0"}, {"phy": "1"}, {"phy": "2"}},
		VNPUs: []query.Chip{vnpu("100", "0", "vir04"), vnpu("101", "0", "vir02_1c"), vnpu("132", "2", "vir04"), vnpu("133", "2", "odd")},
	}
	offers, err := kinds["310P"].Offers(reply, 1)
	var got []string
	for _, offer := range offers {
		got = append(got, fmt.Sprint(offer.Kind.Resource, offer.IDs))
	}
	wanted := "[huawei.com/Ascend310P[Ascend310P-1] huawei.com/Ascend310P-4c[Ascend310P-4c-100-0 Ascend310P-4c-132-2]" +
		" huawei.com/Ascend310P-2c.1cpu[Ascend310P-2c.1cpu-101-0]]"
	if err != nil || fmt.Sprint(got) != wanted {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := kinds["310P"].Offers(reply, 4); err == nil {
		t.Error("shares beside virtual NPUs")
	}
	reply.Chips = reply.Chips[:1]
	if offers, _ := kinds["310P"].Offers(reply, 1); len(offers) != 2 {
		t.Errorf("whole chips although there are none: %v", offers)
	}
}

func TestNumbersInNames(t *testing.T) {
	for id, wanted := range map[string][2]int{
		"Ascend310P-3": {3, 3}, "Ascend310P-3-1": {3, 3}, "Ascend910-10c.3cpu.32g-117-1": {1, 117},
	} {
		if got := [2]int{number(id), nodeNumber(id)}; got != wanted {
			t.Errorf("%s: %v", id, got)
		}
	}
}

func TestVirtualDeviceNodes(t *testing.T) {
	s := NewServer(kinds["310P"].virtual("Ascend310P-4c"), []string{"Ascend310P-4c-100-0"})
	s.runtime, s.common = false, nil
	spec := s.answer(s.ids).Devices[0]
	if spec.HostPath != "/dev/vdavinci100" || spec.ContainerPath != "/dev/davinci100" {
		t.Errorf("%v", spec)
	}
	s.runtime = true
	if envs := s.answer(s.ids).Envs; envs["ASCEND_VISIBLE_DEVICES"] != "100" || envs["ASCEND_RUNTIME_OPTIONS"] != "VIRTUAL" {
		t.Errorf("%v", envs)
	}
}
