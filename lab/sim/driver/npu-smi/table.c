/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* The tables of `npu-smi info`: one layout for chips with HBM (98 columns), one for those without (106). */
#include "npu_smi.h"

#include <stdio.h>
#include <string.h>

const char *health_text(int health)
{
    static const char *texts[] = {"OK", "Warning", "Alarm", "Critical"};

    return health >= 0 && health < 4 ? texts[health] : "UNKNOWN";
}

int has_hbm(const struct hal_state *state)
{
    return state->count == 0 || state->chips[0].hbm > 0;
}

/* A rule of three columns, e.g. +====+===+======+ */
static void rule(char stroke, int first, int second, int third)
{
    int widths[] = {first, second, third};

    for (int i = 0; i < 3; i++) {
        putchar('+');
        for (int j = 0; j < widths[i]; j++) {
            putchar(stroke);
        }
    }
    printf("+\n");
}

static void top_rule(int width)
{
    putchar('+');
    while (width--) {
        putchar('-');
    }
    printf("+\n");
}

static int last_of_card(const struct hal_state *state, int i)
{
    return i + 1 == state->count || state->chips[i + 1].card != state->chips[i].card;
}

static void hbm_table(const struct hal_state *state)
{
    top_rule(96);
    printf("| %s %-24s Version: %-52s |\n", TOOL_NAME, TOOL_VERSION, state->driver);
    rule('-', 27, 15, 52);
    printf("| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n");
    printf("| Chip                      | Bus-Id        | AICore(%%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n");
    rule('=', 27, 15, 52);
    for (int i = 0; i < state->count; i++) {
        const struct hal_chip *chip = &state->chips[i];

        printf("| %-5d %-20s| %-13s | %-11.1f %-17d %-5d/ %-13d |\n", chip->card, chip->name, health_text(chip->health),
               chip->power / 10.0, chip->temp, 0, 0);
        printf("| %-26d| %-13s | %-11d %-5d/ %-10d %-5d/ %-13d |\n", chip->chip, chip->bus, 0, 0, 0, chip->used,
               chip->hbm);
        if (last_of_card(state, i)) {
            rule('=', 27, 15, 52);
        } else {
            top_rule(96);
        }
    }
    rule('-', 27, 15, 52);
    printf("| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |\n");
    rule('=', 27, 15, 52);
    for (int i = 0; i < state->count; i++) {
        if (last_of_card(state, i)) {
            printf("| No running processes found in NPU %-60d |\n", state->chips[i].card);
            rule('=', 27, 15, 52);
        }
    }
}

static void plain_table(const struct hal_state *state)
{
    top_rule(104);
    printf("| %s %-40s Version: %-44s |\n", TOOL_NAME, TOOL_VERSION, state->driver);
    rule('-', 31, 17, 54);
    printf("| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |\n");
    printf("| Chip    Device                | Bus-Id          | AICore(%%)    Memory-Usage(MB)                        |\n");
    rule('=', 31, 17, 54);
    for (int i = 0; i < state->count; i++) {
        const struct hal_chip *chip = &state->chips[i];

        printf("| %-7d %-22s| %-15s | %-12s %-17d %-6d/ %-13d |\n", chip->card, chip->name, health_text(chip->health),
               "NA", chip->temp, 0, 0);
        printf("| %-7d %-22d| %-15s | %-12d %-5d/ %-32d |\n", chip->chip, chip->logic, chip->bus, 0, chip->used,
               chip->ddr);
        rule(last_of_card(state, i) ? '=' : '-', 31, 17, 54);
    }
    if (strstr(state->chips[0].product, "Duo") == NULL) {
        return; /* real captures of such boards have no process table */
    }
    rule('-', 31, 17, 54);
    printf("| NPU     Chip                  | Process id      | Process name             | Process memory(MB)        |\n");
    rule('=', 31, 17, 54);
    for (int i = 0; i < state->count; i++) {
        if (last_of_card(state, i)) {
            printf("| No running processes found in NPU %-68d |\n", state->chips[i].card);
            rule('=', 31, 17, 54);
        }
    }
}

/* What Huawei's installer writes last; image based hosts never have it. */
static int completely_installed(void)
{
    FILE *file = fopen("/etc/ascend_install.info", "re");
    char text[256];
    int complete = 0;

    while (file && fgets(text, sizeof(text), file)) {
        complete |= strstr(text, "Driver_Install_Status=complete") != NULL;
    }
    if (file) {
        fclose(file);
    }
    return complete;
}

void print_table(const struct hal_state *state)
{
    if (!has_hbm(state)) {
        plain_table(state);
        return;
    }
    hbm_table(state);
    if (hal_on_host() && !completely_installed()) {
        printf("[WARNING]The driver package may not be completely installed, which may cause function abnormal. "
               "Please reinstall it.\n");
    }
}
