/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* The lists: `info -l`, `info -m` and `info -t TYPE`. */
#include "npu_smi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef void printer(const struct hal_chip *chip, const struct hal_state *state);

void line(const char *name, const char *format, ...)
{
    va_list arguments;

    printf("\t%-30s : ", name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

static int is_duo(const struct hal_chip *chip)
{
    return strstr(chip->product, "Duo") != NULL;
}

static int percent(int part, int whole)
{
    return whole ? part * 100 / whole : 0;
}

void print_list(const struct hal_state *state)
{
    int cards[MAX_CARDS], count, chips;

    dcmi_get_card_list(&count, cards, MAX_CARDS);
    if (count == 0) {
        printf("There is no NPU card on this server.\n");
        return;
    }
    line("Total Count", "%d\n", count);
    for (int i = 0; i < state->count; i++) {
        const struct hal_chip *chip = &state->chips[i];

        if (i > 0 && chip->card == state->chips[i - 1].card) {
            continue;
        }
        dcmi_get_device_num_in_card(chip->card, &chips);
        line("NPU ID", "%d", chip->card);
        if (!has_hbm(state)) {
            line("Product Name", "%s", chip->product);
            line("Serial Number", "%s", chip->serial);
        }
        line("Chip Count", "%d\n", chips);
    }
}

void print_mapping(const struct hal_state *state)
{
    if (state->count == 0) {
        printf("There is no NPU card on this server.\n");
        return;
    }
    printf("\t%-30s %-30s %-30s %-30s\n", "NPU ID", "Chip ID", "Chip Logic ID", "Chip Name");
    for (int i = 0; i < state->count; i++) {
        const struct hal_chip *chip = &state->chips[i];

        printf("\t%-30d %-30d %-30d Ascend %s\n", chip->card, chip->chip, chip->logic, chip->name);
        if (i + 1 == state->count || state->chips[i + 1].card != chip->card) {
            printf("\t%-30d %-30d %-30s %-30s\n", chip->card, is_duo(chip) ? 2 : 1, "-", "Mcu");
        }
    }
}

static void board(const struct hal_chip *chip, const struct hal_state *state)
{
    line("NPU ID", "%d", chip->card);
    line("Product Name", "%s", chip->product);
    line("Model", "NA");
    line("Manufacturer", "Huawei");
    line("Serial Number", "%s", chip->serial);
    line("Software Version", "%s", state->driver);
    line("Firmware Version", "%s", chip->firmware);
    line("Compatibility", "OK");
    line("Board ID", "%s", chip->board);
    line("PCB ID", "A");
    line("BOM ID", "1");
    line("PCIe Bus Info", "%s", chip->bus);
    line("Slot ID", "0");
    line("Class ID", "NA");
    line("PCI Vendor ID", "0x19E5");
    line("PCI Device ID", "0x%s", chip->device);
    line("Subsystem Vendor ID", "0x%s", chip->subvendor);
    line("Subsystem Device ID", "0x%s", chip->subdevice);
    line("Chip Count", "%d", is_duo(chip) ? 2 : 1);
}

static void board_chip(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("NPU ID", "%d", chip->card);
    line("Chip ID", "%d", chip->chip);
    line("Chip Type", "Ascend");
    line("Chip Name", "%s", chip->name);
    line("Chip Version", "V1");
    line("Board ID", "%s", chip->board);
    line("PCB ID", "NA");
    line("BOM ID", "1");
    line("VDie ID", "42C711D4 20B03704 4A10C8D4 14CC040A D21020%02X", chip->phy);
    line("NDie ID", "27216594 20401010 4E10C8D4 14CC040A A41020%02X", chip->phy);
    line("Chip Position ID", "%d", chip->chip);
    line("PCIe Bus Info", "%s", chip->bus);
    line("Firmware Version", "%s", chip->firmware);
}

static void health(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("Health", "%s", health_text(chip->health));
}

static void health_chip(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("Health Status", "%s", health_text(chip->health));
    line("Error Code", "%s", chip->code[0] ? chip->code : "NA");
    line("Error Information", "%s", chip->code[0] ? "node type=SOC, sensor type=Temperature" : "NA");
}

static void common(const struct hal_chip *chip, const struct hal_state *state)
{
    if (!has_hbm(state)) {
        line("Memory Usage Rate(%)", "%d", percent(chip->used, chip->ddr));
        line("Aicore Usage Rate(%)", "%d", 0);
        line("Temperature(C)", "%d", chip->temp);
        return;
    }
    line("Memory Usage Rate(%)", "%d", 0);
    line("HBM Usage Rate(%)", "%d", percent(chip->used, chip->hbm));
    line("Aicore Usage Rate(%)", "%d", 0);
    line("Aicore Freq(MHZ)", "%d", 1800);
    line("Aicore curFreq(MHZ)", "%d", 1800);
    line("Aicore Count", "%d", chip->cores);
    line("Temperature(C)", "%d", chip->temp);
    line("NPU Real-time Power(W)", "%.1f", chip->power / 10.0);
}

static void usages(const struct hal_chip *chip, const struct hal_state *state)
{
    line("DDR Capacity(MB)", "%d", chip->ddr);
    line("DDR Usage Rate(%)", "%d", chip->ddr ? percent(chip->used, chip->ddr) : 0);
    if (!has_hbm(state)) {
        line("Aicore Usage Rate(%)", "%d", 0);
        return;
    }
    line("DDR Hugepages Total(page)", "%d", 0);
    line("DDR Hugepages Usage Rate(%)", "%d", 0);
    line("HBM Capacity(MB)", "%d", chip->hbm);
    line("HBM Usage Rate(%)", "%d", percent(chip->used, chip->hbm));
    line("Aicore Usage Rate(%)", "%d", 0);
    line("Aivector Usage Rate(%)", "%d", 0);
    line("Aicpu Usage Rate(%)", "%d", 0);
    line("Ctrlcpu Usage Rate(%)", "%d", chip->ctrlcpu);
    line("DDR Bandwidth Usage Rate(%)", "%d", 0);
    line("HBM Bandwidth Usage Rate(%)", "%d", 0);
    line("NPU Utilization(%)", "%d", 0);
    line("Aicube Usage Rate(%)", "%d", 0);
}

static void product(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("Product Type", "%s", chip->product);
}

static void temperature(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("NPU Temperature (C)", "%d", chip->temp);
}

static void power(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("NPU Real-time Power(W)", "%.1f", chip->power / 10.0);
}

/* What the card's microcontroller adds, after its chips. */
static void mcu_health(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)chip;
    (void)state;
    line("Health", "OK");
    line("Chip Name", "MCU");
}

static void mcu_common(const struct hal_chip *chip, const struct hal_state *state)
{
    line("Chip Name", "mcu");
    line("Temperature(C)", "%d", chip->mcu_temp);
    if (!has_hbm(state)) {
        line("NPU Real-time Power(W)", "%.1f", chip->power / 10.0);
    }
}

static void mcu_temperature(const struct hal_chip *chip, const struct hal_state *state)
{
    (void)state;
    line("LM75A_TE (C)", "%d", chip->mcu_temp);
    line("LM75B_TE (C)", "%d", chip->mcu_temp);
    line("Chip Name", "MCU");
}

static const struct type {
    const char *name;
    printer *one, *chip, *mcu; /* per chip of a card; with -c; after the chips */
} types[] = {
    {"board", board, board_chip, NULL},
    {"common", common, common, mcu_common},
    {"health", health, health_chip, mcu_health},
    {"power", power, power, NULL},
    {"product", product, product, NULL},
    {"temp", temperature, temperature, mcu_temperature},
    {"usages", usages, usages, NULL},
};

static const struct type *find(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

int known_type(const char *type)
{
    return find(type) != NULL;
}

static int print_one(const struct hal_state *state, const struct question *question, const struct type *type)
{
    for (int i = 0; i < state->count; i++) {
        if (state->chips[i].card == question->card && state->chips[i].chip == question->chip) {
            type->chip(&state->chips[i], state);
            return 0;
        }
    }
    printf("Error parameter of -c\n");
    return BAD_PARAMETER;
}

int print_type(const struct hal_state *state, const struct question *question)
{
    const struct type *type = find(question->type);
    const struct hal_chip *last = NULL;
    int count;

    if (question->chip >= 0) {
        return print_one(state, question, type);
    }
    dcmi_get_device_num_in_card(question->card, &count);
    for (int i = 0; i < state->count; i++) {
        const struct hal_chip *chip = &state->chips[i];

        if (chip->card != question->card) {
            continue;
        }
        if (strcmp(type->name, "board") == 0) {
            type->one(chip, state);
            return 0;
        }
        if (!last) {
            line("NPU ID", "%d", question->card);
            line("Chip Count", "%d", count);
        }
        printf("\n");
        if (strcmp(type->name, "common") == 0) { /* the one type that says first whose values these are */
            line("Chip ID", "%d", chip->chip);
        }
        type->one(chip, state);
        if (strcmp(type->name, "common") != 0) {
            line("Chip ID", "%d", chip->chip);
        }
        last = chip;
    }
    if (type->mcu) {
        printf("\n");
        type->mcu(last, state);
    }
    return 0;
}
