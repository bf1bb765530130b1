/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#include "dcmi.h"

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

#define NOT_EXIST (-8008)
#define BAD_PARAMETER (-8001)

const struct hal_state *dsmi_read(const char *program);
int strcpy_s(char *to, size_t size, const char *from);

static const struct hal_state *state;

int dcmi_init(void)
{
    state = dsmi_read(program_invocation_short_name);
    return state->result;
}

const struct hal_state *dcmi_state(void)
{
    return state;
}

int dcmi_get_card_list(int *count, int *list, int length)
{
    *count = 0;
    if (!state || state->result != 0) {
        return HAL_INNER_ERROR;
    }
    for (int i = 0; i < state->count && *count < length; i++) {
        if (i == 0 || state->chips[i].card != state->chips[i - 1].card) {
            list[(*count)++] = state->chips[i].card;
        }
    }
    return 0;
}

int dcmi_get_device_num_in_card(int card, int *count)
{
    *count = 0;
    if (!state || state->result != 0) {
        return HAL_INNER_ERROR;
    }
    for (int i = 0; i < state->count; i++) {
        *count += state->chips[i].card == card;
    }
    return *count ? 0 : NOT_EXIST;
}

int dcmi_get_driver_version(char *version, unsigned int length)
{
    if (!state || state->result != 0) {
        return HAL_INNER_ERROR;
    }
    return strcpy_s(version, length, state->driver) == 0 ? 0 : BAD_PARAMETER;
}
