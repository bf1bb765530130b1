/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libdcmi.so: what programs call. The first four are as in Huawei's dcmi_interface_api.h. */
#ifndef DCMI_H
#define DCMI_H

#include "ascend_hal.h"

int dcmi_init(void);
int dcmi_get_card_list(int *count, int *list, int length);
int dcmi_get_device_num_in_card(int card, int *count);
int dcmi_get_driver_version(char *version, unsigned int length);

/* All that dcmi_init read. */
const struct hal_state *dcmi_state(void);

#endif
