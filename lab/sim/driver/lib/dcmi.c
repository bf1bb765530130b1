/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* Which cards and chips there are, and their numbers. */
#define _GNU_SOURCE
#include "dcmi.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Programs make hundreds of calls in a row. A silicon that answers at once is asked once for calls that close together. */
#define SAME_MOMENT_MS 200
#define AT_ONCE_MS 100

const struct hal_state *dsmi_read(const char *program);
int strcpy_s(char *to, size_t size, const char *from);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct hal_state *state;
static long long read_at;
static int at_once;

static long long milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void read_state(void)
{
    long long before = milliseconds();

    state = dsmi_read(program_invocation_short_name);
    read_at = milliseconds();
    at_once = read_at - before < AT_ONCE_MS;
}

int dcmi_init(void)
{
    int result;

    pthread_mutex_lock(&lock);
    read_state();
    result = state->result;
    pthread_mutex_unlock(&lock);
    return result;
}

const struct hal_state *dcmi_state(void)
{
    return state;
}

int dcmi_look(struct hal_state *now)
{
    pthread_mutex_lock(&lock);
    if (!state || !at_once || milliseconds() - read_at > SAME_MOMENT_MS) {
        read_state();
    }
    *now = *state;
    pthread_mutex_unlock(&lock);
    return now->result;
}

int dcmi_look_at(int card, int device, struct hal_chip *chip)
{
    struct hal_state now;
    int result = dcmi_look(&now);

    for (int i = 0; result == 0 && i < now.count; i++) {
        if (now.chips[i].card == card && now.chips[i].chip == device) {
            *chip = now.chips[i];
            return chip->result;
        }
    }
    return result ? result : DCMI_NO_DEVICE;
}

int dcmi_get_card_list(int *count, int *list, int length)
{
    struct hal_state now;
    int result = dcmi_look(&now);

    *count = 0;
    for (int i = 0; result == 0 && i < now.count && *count < length; i++) {
        if (i == 0 || now.chips[i].card != now.chips[i - 1].card) {
            list[(*count)++] = now.chips[i].card;
        }
    }
    return result;
}

int dcmi_get_card_num_list(int *count, int *list, int length)
{
    return dcmi_get_card_list(count, list, length);
}

int dcmi_get_device_num_in_card(int card, int *count)
{
    struct hal_state now;
    int result = dcmi_look(&now);

    *count = 0;
    for (int i = 0; result == 0 && i < now.count; i++) {
        *count += now.chips[i].card == card;
    }
    return result || *count ? result : DCMI_NO_DEVICE;
}

int dcmi_get_device_id_in_card(int card, int *chips, int *mcu, int *cpu)
{
    int result = dcmi_get_device_num_in_card(card, chips);

    *mcu = *chips;
    *cpu = -1;
    return result;
}

int dcmi_get_device_type(int card, int device, int *type)
{
    int chips, result = dcmi_get_device_num_in_card(card, &chips);

    *type = device < chips ? 0 : 1; /* a chip, or the card's controller behind them */
    return result || device <= chips ? result : DCMI_NO_DEVICE;
}

int dcmi_get_device_logic_id(int *logic, int card, int device)
{
    struct hal_chip chip = {.logic = -1};
    int result = dcmi_look_at(card, device, &chip);

    /* Also a chip that is not ready has its number. */
    *logic = chip.logic;
    return chip.logic >= 0 ? 0 : result;
}

static int find(int by_phy, unsigned int number, struct hal_chip *chip)
{
    struct hal_state now;
    int result = dcmi_look(&now);

    for (int i = 0; result == 0 && i < now.count; i++) {
        if ((unsigned int)(by_phy ? now.chips[i].phy : now.chips[i].logic) == number) {
            *chip = now.chips[i];
            return 0;
        }
    }
    return result ? result : DCMI_NO_DEVICE;
}

int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned int logic)
{
    struct hal_chip chip;
    int result = find(0, logic, &chip);

    if (result == 0) {
        *card = chip.card;
        *device = chip.chip;
    }
    return result;
}

int dcmi_get_device_phyid_from_logicid(unsigned int logic, unsigned int *phy)
{
    struct hal_chip chip;
    int result = find(0, logic, &chip);

    if (result == 0) {
        *phy = chip.phy;
    }
    return result;
}

int dcmi_get_device_logicid_from_phyid(unsigned int phy, unsigned int *logic)
{
    struct hal_chip chip;
    int result = find(1, phy, &chip);

    if (result == 0) {
        *logic = chip.logic;
    }
    return result;
}

static int copy_version(char *version, size_t length)
{
    struct hal_state now;
    int result = dcmi_look(&now);

    if (result == 0 && strcpy_s(version, length, now.driver) != 0) {
        return DCMI_BAD_PARAMETER;
    }
    return result;
}

int dcmi_get_driver_version(char *version, unsigned int length)
{
    return copy_version(version, length);
}

int dcmi_get_dcmi_version(char *version, int length)
{
    return copy_version(version, length);
}
