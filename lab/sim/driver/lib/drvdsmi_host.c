/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libdrvdsmi_host.so: the older device management interface, which libdcmi stands on. */
#include "ascend_hal.h"

static struct hal_state state;

const struct hal_state *dsmi_read(const char *program)
{
    hal_read(program, &state);
    return &state;
}

int dsmi_get_device_count(int *count)
{
    int result = hal_read("dsmi", &state);

    *count = state.count;
    return result;
}
