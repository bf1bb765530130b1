// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package hardware

import "fmt"

// Parts are the resources of a chip that virtual NPUs divide, or those of one of them. Memory in GB.
type Parts struct{ Cores, Memory, AICPU, VPC, VENC, VDEC, JPEGD, JPEGE int }

// Template is a kind of virtual NPU that a chip can be divided into.
type Template struct {
	Name  string
	Parts Parts
}

// Without is what is left of the parts when others are taken away.
func (p Parts) Without(other Parts) Parts {
	return Parts{p.Cores - other.Cores, p.Memory - other.Memory, p.AICPU - other.AICPU, p.VPC - other.VPC, p.VENC - other.VENC,
		p.VDEC - other.VDEC, p.JPEGD - other.JPEGD, p.JPEGE - other.JPEGE}
}

// String is the parts as they are sent to the driver's libraries.
func (p Parts) String() string {
	return fmt.Sprintf("cores=%d memory=%d aicpu=%d vpc=%d venc=%d vdec=%d jpegd=%d jpege=%d",
		p.Cores, p.Memory, p.AICPU, p.VPC, p.VENC, p.VDEC, p.JPEGD, p.JPEGE)
}

// Templates as in hicann/driver, dcmi_inner_info_get.c; totals as in captures of npu-smi info -t info-vnpu.
var (
	parts910B     = Parts{20, 64, 7, 9, 0, 2, 24, 4}
	templates910B = []Template{
		{"vir10_3c_32g", Parts{10, 32, 3, 4, 0, 1, 12, 2}},
		{"vir05_1c_16g", Parts{5, 16, 1, 2, 0, 0, 6, 1}},
	}
	parts310P24G     = parts310P(24)
	parts310P48G     = parts310P(48)
	templates310P24G = templates310P(3)
	templates310P48G = templates310P(6)
)

func parts310P(memory int) Parts { return Parts{8, memory, 7, 12, 3, 12, 16, 8} }

// templates310P are those of a chip that has so many GB for each core.
func templates310P(memory int) []Template {
	return []Template{
		{"vir01", Parts{1, memory, 1, 1, 0, 1, 2, 1}},
		{"vir02", Parts{2, 2 * memory, 2, 3, 1, 3, 4, 2}},
		{"vir02_1c", Parts{2, 2 * memory, 1, 3, 0, 3, 4, 2}},
		{"vir04", Parts{4, 4 * memory, 4, 6, 2, 6, 8, 4}},
		{"vir04_3c", Parts{4, 4 * memory, 3, 6, 1, 6, 8, 4}},
		{"vir04_3c_ndvpp", Parts{4, 4 * memory, 3, 0, 0, 0, 0, 0}},
		{"vir04_4c_dvpp", Parts{4, 4 * memory, 4, 12, 3, 12, 16, 8}},
	}
}
