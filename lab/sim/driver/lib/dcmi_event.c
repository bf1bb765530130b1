/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* Faults that the driver tells by itself: a thread looks, and calls who has subscribed. */
#define _GNU_SOURCE
#include "dcmi.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_US 500000

int strcpy_s(char *to, size_t size, const char *from);

typedef void (*subscriber)(struct fault_event *event);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static subscriber tell;

static void report(const struct hal_chip *chip, const char *code, int begins)
{
    static int serial;
    struct fault_event event;

    memset(&event, 0, sizeof(event));
    event.fault.id = strtoul(code, NULL, 16);
    event.fault.chip = chip->logic;
    event.fault.severity = begins ? chip->health : 0;
    event.fault.assertion = begins;
    event.fault.serial = event.fault.notification = ++serial;
    event.fault.raised = time(NULL);
    strcpy_s(event.fault.name, sizeof(event.fault.name), "simulated fault");
    tell(&event);
}

static void *watch(void *unused)
{
    static char known[HAL_MAX_CHIPS][sizeof(((struct hal_chip *)0)->code)]; /* by physical number */
    static struct hal_state now;

    for (;; usleep(LOOK_EVERY_US)) {
        int result = dcmi_look(&now);

        for (int i = 0; result == 0 && i < now.count; i++) {
            const struct hal_chip *chip = &now.chips[i];
            char *before = known[chip->phy % HAL_MAX_CHIPS];

            if (strcmp(before, chip->code) == 0) {
                continue;
            }
            if (before[0]) {
                report(chip, before, 0);
            }
            if (chip->code[0]) {
                report(chip, chip->code, 1);
            }
            strcpy_s(before, sizeof(known[0]), chip->code);
        }
    }
    return unused;
}

/* Chips that have no fault events: programs poll them. All subscriptions are for all chips. */
int dcmi_subscribe_fault_event(int card, int device, struct fault_filter filter, subscriber called)
{
    struct hal_state now;
    pthread_t thread;
    int result = dcmi_look(&now), started = 0;

    (void)card, (void)device, (void)filter;
    if (result != 0 || !called) {
        return result ? result : DCMI_BAD_PARAMETER;
    }
    if (now.count == 0 || now.chips[0].hbm == 0) {
        return DCMI_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&lock);
    started = tell != NULL;
    tell = called;
    if (!started && pthread_create(&thread, NULL, watch, NULL) == 0) {
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}
