/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* What the chips of the lab do not have: reset by software, virtual chips, super pods, and all that later chips are asked
 * with names of their own. Callers pass arguments that nobody reads. */
#include "dcmi.h"

#define UNSUPPORTED(name)          \
    int name(void);                \
    int name(void)                 \
    {                              \
        return DCMI_NOT_SUPPORTED; \
    }

UNSUPPORTED(dcmi_create_vdevice)
UNSUPPORTED(dcmi_set_destroy_vdevice)
UNSUPPORTED(dcmi_set_device_reset)
UNSUPPORTED(dcmi_get_device_outband_channel_state)
UNSUPPORTED(dcmi_pre_reset_soc)
UNSUPPORTED(dcmi_rescan_soc)
UNSUPPORTED(dcmi_get_netdev_brother_device)
UNSUPPORTED(dcmi_get_mainboard_id)
UNSUPPORTED(dcmi_get_spod_node_status)
UNSUPPORTED(dcmi_set_spod_node_status)
UNSUPPORTED(dcmi_get_multi_die_policy)
UNSUPPORTED(dcmi_set_multi_die_policy)
UNSUPPORTED(dcmi_start_hccsping_mesh)
UNSUPPORTED(dcmi_stop_hccsping_mesh)
UNSUPPORTED(dcmi_get_hccsping_mesh_info)
UNSUPPORTED(dcmi_get_hccsping_mesh_state)
UNSUPPORTED(dcmi_start_ub_ping_mesh)
UNSUPPORTED(dcmi_stop_ub_ping_mesh)
UNSUPPORTED(dcmi_get_ub_ping_mesh_info)
UNSUPPORTED(dcmi_get_ub_ping_mesh_state)
UNSUPPORTED(dcmi_get_urma_device_cnt)
UNSUPPORTED(dcmi_get_eid_list_by_urma_dev_index)

UNSUPPORTED(dcmiv2_get_all_device_count)
UNSUPPORTED(dcmiv2_get_chip_phy_id_by_dev_id)
UNSUPPORTED(dcmiv2_get_dcmi_version)
UNSUPPORTED(dcmiv2_get_dev_id_by_chip_phy_id)
UNSUPPORTED(dcmiv2_get_device_board_info)
UNSUPPORTED(dcmiv2_get_device_boot_status)
UNSUPPORTED(dcmiv2_get_device_chip_info)
UNSUPPORTED(dcmiv2_get_device_die_id)
UNSUPPORTED(dcmiv2_get_device_ecc_info)
UNSUPPORTED(dcmiv2_get_device_elabel_info)
UNSUPPORTED(dcmiv2_get_device_error_code_list)
UNSUPPORTED(dcmiv2_get_device_frequency)
UNSUPPORTED(dcmiv2_get_device_hbm_info)
UNSUPPORTED(dcmiv2_get_device_health)
UNSUPPORTED(dcmiv2_get_device_info)
UNSUPPORTED(dcmiv2_get_device_list)
UNSUPPORTED(dcmiv2_get_device_multi_utilization_rate)
UNSUPPORTED(dcmiv2_get_device_multi_utilization_rate_period)
UNSUPPORTED(dcmiv2_get_device_network_health)
UNSUPPORTED(dcmiv2_get_device_outband_channel_state)
UNSUPPORTED(dcmiv2_get_device_pcie_info)
UNSUPPORTED(dcmiv2_get_device_power_info)
UNSUPPORTED(dcmiv2_get_device_proc_mem_info)
UNSUPPORTED(dcmiv2_get_device_temperature)
UNSUPPORTED(dcmiv2_get_device_type)
UNSUPPORTED(dcmiv2_get_device_utilization_rate)
UNSUPPORTED(dcmiv2_get_device_voltage)
UNSUPPORTED(dcmiv2_get_eid_list_by_urma_dev_index)
UNSUPPORTED(dcmiv2_get_mainboard_id)
UNSUPPORTED(dcmiv2_get_pcie_link_bandwidth_info)
UNSUPPORTED(dcmiv2_get_ub_ping_mesh_info)
UNSUPPORTED(dcmiv2_get_ub_ping_mesh_state)
UNSUPPORTED(dcmiv2_get_urma_device_cnt)
UNSUPPORTED(dcmiv2_init)
UNSUPPORTED(dcmiv2_pre_reset_device)
UNSUPPORTED(dcmiv2_rescan_device)
UNSUPPORTED(dcmiv2_reset_device)
UNSUPPORTED(dcmiv2_start_ub_ping_mesh)
UNSUPPORTED(dcmiv2_stop_ub_ping_mesh)
UNSUPPORTED(dcmiv2_subscribe_fault_event)
