/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* Virtual NPUs: `info -t template-info|info-vnpu|vnpu-mode|vnpu-cfg-recover` and `set -t create-vnpu|destroy-vnpu|...`. */
#include "npu_smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR "+-------------------------------------------------------------------------------+\n"
#define LONG_BAR "+------------------------------------------------------------------------------------------+\n"
#define DRIVER_FAILED (-9005)

int known_vnpu_type(const char *type)
{
    static const char *const known[] = {"template-info", "info-vnpu", "vnpu-mode", "vnpu-cfg-recover", "phyid-remap"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], type) == 0) {
            return 1;
        }
    }
    return 0;
}

static const struct hal_chip *chip_of(const struct hal_state *state, const struct question *question)
{
    for (int i = 0; i < state->count; i++) {
        const struct hal_chip *chip = &state->chips[i];

        if (chip->card == question->card && chip->chip == question->chip) {
            return chip;
        }
    }
    return NULL;
}

static void print_templates(const struct hal_state *state)
{
    printf(LONG_BAR "|NPU instance template info is:                                                            |\n"
           "|Name                AICORE    Memory    AICPU     VPC            VENC           JPEGD     |\n"
           "|                               GB                 PNGD           VDEC           JPEGE     |\n"
           "|==========================================================================================|\n");
    for (int i = 0; i < state->template_count; i++) {
        const struct hal_parts *parts = &state->templates[i].parts;

        printf("|%-19s %-9d %-9d %-9d %-14d %-14d %-10d|\n", state->templates[i].name, parts->cores, parts->memory, parts->aicpu,
               parts->vpc, parts->venc, parts->jpegd);
        printf("|%-49s %-14d %-14d %-10d|\n" LONG_BAR, " ", 0, parts->vdec, parts->jpege);
    }
}

static const struct hal_parts *parts_of(const struct hal_state *state, const char *template)
{
    static const struct hal_parts nothing;

    for (int i = 0; i < state->template_count; i++) {
        if (strcmp(state->templates[i].name, template) == 0) {
            return &state->templates[i].parts;
        }
    }
    return &nothing;
}

static struct hal_parts free_parts(const struct hal_state *state, int phy, int *count)
{
    struct hal_parts left = state->parts;

    *count = 0;
    for (int i = 0; i < state->vnpu_count; i++) {
        const struct hal_parts *parts = parts_of(state, state->vnpus[i].name);

        if (state->vnpus[i].phy == phy) {
            left.cores -= parts->cores, left.memory -= parts->memory, left.aicpu -= parts->aicpu, left.vpc -= parts->vpc;
            left.venc -= parts->venc, left.vdec -= parts->vdec, left.jpegd -= parts->jpegd, left.jpege -= parts->jpege;
            ++*count;
        }
    }
    return left;
}

static void print_vnpus(const struct hal_state *state, const struct hal_chip *chip)
{
    const struct hal_parts *all = &state->parts;
    int count;
    const struct hal_parts left = free_parts(state, chip->phy, &count);
    char cells[8][16];
    const int pairs[8][2] = {{left.cores, all->cores}, {left.memory, all->memory}, {left.aicpu, all->aicpu}, {left.vpc, all->vpc},
                             {left.venc, all->venc},   {left.vdec, all->vdec},     {left.jpegd, all->jpegd}, {left.jpege, all->jpege}};

    for (int i = 0; i < 8; i++) {
        snprintf(cells[i], sizeof(cells[i]), "%d/%d", pairs[i][0], pairs[i][1]);
    }
    printf(BAR "| NPU resource static info as follow:                                           |\n"
               "| Format:Free/Total                   NA: Currently, query is not supported.    |\n"
               "| AICORE    Memory    AICPU    VPC    VENC    VDEC    JPEGD    JPEGE    PNGD    |\n"
               "|            GB                                                                 |\n"
               "|===============================================================================|\n");
    printf("| %-9s %-9s %-8s %-6s %-7s %-7s %-8s %-8s %-8s|\n" BAR, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5],
           cells[6], cells[7], "NA/NA");
    printf("| Total number of vnpu: %-2d                                                      |\n" BAR, count);
    printf("|  Vnpu ID  |  Vgroup ID     |  Container ID  |  Status  |  Template Name       |\n");
    for (int i = 0; i < state->vnpu_count; i++) {
        const struct hal_vnpu *vnpu = &state->vnpus[i];

        if (vnpu->phy == chip->phy) {
            printf(BAR "|  %-4d     |  %-12d  |  %-12s  |  %-2d      |  %-15s     |\n", vnpu->id, vnpu->group,
                   vnpu->used ? "ffffffffffff" : "000000000000", vnpu->used, vnpu->name);
        }
    }
    printf(BAR);
}

int print_vnpu_type(const struct hal_state *state, const struct question *question)
{
    const struct hal_chip *chip = chip_of(state, question);

    if (strcmp(question->type, "vnpu-mode") == 0) {
        line("vnpu-mode", "docker");
    } else if (strcmp(question->type, "vnpu-cfg-recover") == 0) {
        line("VNPU config recover mode", state->vnpu_recover ? "Enable" : "Disable");
    } else if (strcmp(question->type, "template-info") == 0) {
        print_templates(state);
    } else if (strcmp(question->type, "phyid-remap") == 0) {
        for (int i = 0; i < state->count; i++) {
            chip = &state->chips[i];
            if (chip->phy == question->phy) {
                printf("\t%-30s:%d\n\t%-30s:%d\n\t%-30s:%d\n\t%-30s:%d\n", "Chip Physical ID", chip->phy, "Chip Logic ID",
                       chip->logic, "NPU ID", chip->card, "Chip ID", chip->chip);
                return 0;
            }
        }
        return DRIVER_FAILED;
    } else if (!chip) {
        printf("Error parameter of -c\n");
        return BAD_PARAMETER;
    } else {
        print_vnpus(state, chip);
    }
    return 0;
}

/* What npu-smi says before it asks the driver. */
static int refused(const struct hal_state *state, const struct hal_chip *chip, const char *error)
{
    int count;
    const struct hal_parts left = free_parts(state, chip->phy, &count);

    if (strcmp(error, "template") == 0) {
        printf("Must input parameter of -f.\n");
        return BAD_PARAMETER;
    }
    if (strcmp(error, "cores") == 0) {
        printf("Insufficient number of cores available, unallocated cores number:%f.\n", (double)left.cores);
        return NOT_SUPPORTED;
    }
    if (strcmp(error, "aicpu") == 0) {
        printf("Insufficient number of AICPU available, unallocated AICPU number:%d.\n", left.aicpu);
        return NOT_SUPPORTED;
    }
    if (strcmp(error, "dvpp") == 0) {
        printf("Insufficient number of DVPP available, unallocated DVPP number:\n"
               "VPC:%f, VENC:%f, VDEC:%f, JPEGD:%f, JPEGE:%f.\n",
               (double)left.vpc, (double)left.venc, (double)left.vdec, (double)left.jpegd, (double)left.jpege);
        return NOT_SUPPORTED;
    }
    printf("create vnpu failed.\n");
    return DRIVER_FAILED;
}

static int done(const char *format, int number)
{
    line("Status", "OK");
    line("Message", format, number);
    return 0;
}

int set_vnpu(const struct hal_state *state, const struct change *change)
{
    const struct hal_chip *chip = chip_of(state, &change->of);
    char request[192], error[64];

    if (strcmp(change->of.type, "vnpu-mode") == 0) { /* the other one, of virtual machines, is not simulated */
        return change->value == 0 ? done("Set vnpu docker mode success", 0) : NOT_SUPPORTED;
    }
    if (strcmp(change->of.type, "vnpu-cfg-recover") == 0) {
        snprintf(request, sizeof(request), "{\"Operation\":\"vnpu-cfg-recover\",\"On\":%s}\n", change->value ? "true" : "false");
        if (hal_control(request, error, sizeof(error)) != 0) {
            return DRIVER_FAILED;
        }
        return done(change->value ? "The VNPU config recover mode Enable is set successfully."
                                  : "The VNPU config recover mode Disable is set successfully.",
                    0);
    }
    if (!chip) {
        printf("Error parameter of -i\n");
        return BAD_PARAMETER;
    }
    snprintf(request, sizeof(request), "{\"Operation\":\"%s\",\"Chip\":%d,\"Template\":\"%s\",\"VNPU\":%d}\n", change->of.type,
             chip->phy, change->template, change->vnpu);
    if (hal_control(request, error, sizeof(error)) == 0) {
        return done(strcmp(change->of.type, "create-vnpu") == 0 ? "Create vnpu success" : "Destroy vnpu %d success", change->vnpu);
    }
    if (strcmp(change->of.type, "create-vnpu") == 0) {
        return refused(state, chip, error);
    }
    if (strcmp(error, "vnpu") == 0) {
        printf("Error parameter of -v.\n");
        return BAD_PARAMETER;
    }
    printf("destroy vnpu %d failed.\n", change->vnpu);
    return DRIVER_FAILED;
}
