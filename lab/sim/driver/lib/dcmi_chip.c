/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* What one chip says about itself. Idle chips: what npu-smi does not show either is zero. */
#define _GNU_SOURCE
#include "dcmi.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int strcpy_s(char *to, size_t size, const char *from);

/* Answers for a chip, or what a call about it returns. */
#define CHIP(card, device)                              \
    struct hal_chip chip;                               \
    int result = dcmi_look_at((card), (device), &chip); \
    if (result != 0)                                    \
        return result;

/* Chips with memory of this kind have a network and links to each other as well. */
#define CHIP_WITH_HBM(card, device) \
    CHIP(card, device)              \
    if (chip.hbm == 0)              \
        return DCMI_NOT_SUPPORTED;

static int set(unsigned int *value, unsigned int to)
{
    *value = to;
    return 0;
}

static void describe(struct chip_text *info, const struct hal_chip *chip)
{
    memset(info, 0, sizeof(*info));
    strcpy_s(info->type, sizeof(info->type), "Ascend");
    strcpy_s(info->name, sizeof(info->name), chip->name);
    strcpy_s(info->version, sizeof(info->version), "V1");
    info->cores = chip->cores;
}

int dcmi_get_device_chip_info(int card, int device, struct chip_text *info)
{
    CHIP(card, device)
    describe(info, &chip);
    return 0;
}

int dcmi_get_device_chip_info_v2(int card, int device, struct chip_text_v2 *info)
{
    CHIP(card, device)
    memset(info, 0, sizeof(*info));
    describe(&info->chip, &chip);
    snprintf(info->full_name, sizeof(info->full_name), "Ascend%s", chip.name);
    return 0;
}

int dcmi_get_product_type(int card, int device, char *text, int size)
{
    CHIP(card, device)
    if (chip.hbm > 0) {
        return DCMI_NOT_SUPPORTED;
    }
    return strcpy_s(text, size, chip.product) == 0 ? 0 : DCMI_BAD_PARAMETER;
}

int dcmi_get_device_health(int card, int device, unsigned int *health)
{
    CHIP(card, device)
    return set(health, chip.health);
}

int dcmi_get_device_errorcode_v2(int card, int device, int *count, unsigned int *list, unsigned int length)
{
    CHIP(card, device)
    *count = 0;
    if (chip.code[0] && length > 0) {
        list[(*count)++] = strtoul(chip.code, NULL, 16);
    }
    return 0;
}

int dcmi_get_device_errorcode(int card, int device, int *count, unsigned int *list, int *width)
{
    *width = 8;
    return dcmi_get_device_errorcode_v2(card, device, count, list, 1);
}

int dcmi_get_device_boot_status(int card, int device, int *status)
{
    CHIP(card, device)
    *status = 16; /* up */
    return 0;
}

int dcmi_get_device_temperature(int card, int device, int *degrees)
{
    CHIP(card, device)
    *degrees = chip.temp;
    return 0;
}

int dcmi_get_device_voltage(int card, int device, unsigned int *hundredths)
{
    CHIP(card, device)
    return set(hundredths, 91);
}

int dcmi_get_device_power_info(int card, int device, int *tenths)
{
    CHIP_WITH_HBM(card, device)
    *tenths = chip.power;
    return 0;
}

int dcmi_mcu_get_power_info(int card, int *tenths)
{
    CHIP(card, 0)
    *tenths = chip.power;
    return 0;
}

int dcmi_get_device_frequency(int card, int device, int kind, unsigned int *megahertz)
{
    CHIP(card, device)
    switch (kind) {
    case 1: /* DDR */
        return chip.hbm ? DCMI_NOT_SUPPORTED : set(megahertz, 1600);
    case 2: /* control CPU */
        return set(megahertz, 1900);
    case 6: /* HBM */
        return chip.hbm ? set(megahertz, 1600) : DCMI_NOT_SUPPORTED;
    case 7: /* AI core, now */
    case 9: /* AI core, at most */
        return set(megahertz, 1800);
    case 12: /* vector core */
        return chip.hbm ? DCMI_NOT_SUPPORTED : set(megahertz, 1000);
    }
    return DCMI_BAD_PARAMETER;
}

int dcmi_get_device_utilization_rate(int card, int device, int kind, unsigned int *percent)
{
    CHIP(card, device)
    return kind < 0 ? DCMI_BAD_PARAMETER : set(percent, 0);
}

int dcmi_get_device_multi_utilization_rate(int card, int device, struct utilizations *percent)
{
    CHIP(card, device)
    memset(percent, 0, sizeof(*percent));
    return 0;
}

int dcmi_get_device_multi_utilization_rate_period(int card, int device, struct utilizations *percent, int period)
{
    return period < 0 ? DCMI_BAD_PARAMETER : dcmi_get_device_multi_utilization_rate(card, device, percent);
}

int dcmi_get_device_memory_info_v3(int card, int device, struct memory_state *memory)
{
    CHIP(card, device)
    memset(memory, 0, sizeof(*memory));
    if (chip.ddr > 0) {
        memory->size = chip.ddr;
        memory->available = chip.ddr - chip.used;
        memory->frequency = 1600;
        memory->utilization = chip.used * 100 / chip.ddr;
    }
    return 0;
}

int dcmi_get_memory_info(int card, int device, struct memory_state_v1 *memory)
{
    struct memory_state now;
    int result = dcmi_get_device_memory_info_v3(card, device, &now);

    if (result == 0) {
        *memory = (struct memory_state_v1){now.size, now.frequency, now.utilization};
    }
    return result;
}

int dcmi_get_device_hbm_info(int card, int device, struct hbm_state *memory)
{
    CHIP_WITH_HBM(card, device)
    *memory = (struct hbm_state){chip.hbm, 1600, chip.used, chip.temp, 0};
    return 0;
}

int dcmi_get_device_ecc_info(int card, int device, int memory, struct ecc_counts *counts)
{
    CHIP(card, device)
    if (memory != (chip.hbm ? 2 : 0)) {
        return DCMI_NOT_SUPPORTED;
    }
    memset(counts, 0, sizeof(*counts));
    counts->enabled = 1;
    return 0;
}

int dcmi_get_device_resource_info(int card, int device, struct process_memory *list, int *count)
{
    CHIP(card, device)
    (void)list;
    *count = 0;
    return 0;
}

int dcmi_get_device_network_health(int card, int device, int *result_code)
{
    CHIP_WITH_HBM(card, device)
    *result_code = 0;
    return 0;
}

/* Nobody has given the chips addresses. */
int dcmi_get_device_ip(int card, int device, int port, int number, struct ip_address *address, struct ip_address *mask)
{
    CHIP_WITH_HBM(card, device)
    (void)port, (void)number, (void)address, (void)mask;
    return DCMI_NO_CONFIGURATION;
}

int dcmi_get_device_pcie_info_v2(int card, int device, struct pcie_address *pcie)
{
    CHIP(card, device)
    memset(pcie, 0, sizeof(*pcie));
    pcie->vendor = 0x19e5;
    pcie->subvendor = strtoul(chip.subvendor, NULL, 16);
    pcie->device = strtoul(chip.device, NULL, 16);
    pcie->subdevice = strtoul(chip.subdevice, NULL, 16);
    sscanf(chip.bus, "%x:%x:%x.%x", (unsigned int *)&pcie->domain, &pcie->bus, &pcie->slot, &pcie->function);
    return 0;
}

int dcmi_get_pcie_link_bandwidth_info(int card, int device, struct pcie_bandwidth *bandwidth)
{
    CHIP_WITH_HBM(card, device)
    memset(bandwidth->values, 0, sizeof(bandwidth->values));
    return 0;
}

int dcmi_get_hccs_link_bandwidth_info(int card, int device, struct hccs_bandwidth *bandwidth)
{
    int time = bandwidth->milliseconds;
    CHIP_WITH_HBM(card, device)
    memset(bandwidth, 0, sizeof(*bandwidth));
    bandwidth->milliseconds = time;
    return 0;
}

int dcmi_get_device_board_info(int card, int device, struct board_numbers *board)
{
    CHIP(card, device)
    *board = (struct board_numbers){strtoul(chip.board, NULL, 16), 0, 1, chip.card};
    return 0;
}

/* The words are the parts of vdie_id in the metrics. */
int dcmi_get_device_die_v2(int card, int device, int kind, struct die_number *die)
{
    CHIP(card, device)
    if (kind != 1 && chip.hbm == 0) {
        return DCMI_NOT_SUPPORTED;
    }
    *die = (struct die_number){{0x42C711D4, 0x20B03704, 0x4A10C8D4, 0x14CC040A, 0xD2102000u + chip.phy}};
    return 0;
}

int dcmi_get_card_elabel_v2(int card, struct label *label)
{
    CHIP(card, 0)
    memset(label, 0, sizeof(*label));
    strcpy_s(label->product, sizeof(label->product), chip.product);
    strcpy_s(label->model, sizeof(label->model), "NA");
    strcpy_s(label->manufacturer, sizeof(label->manufacturer), "Huawei");
    strcpy_s(label->made, sizeof(label->made), "2024-05-06");
    strcpy_s(label->serial, sizeof(label->serial), chip.serial);
    return 0;
}

int dcmi_get_npu_work_mode(int card, unsigned char *mode)
{
    CHIP_WITH_HBM(card, 0)
    *mode = 0;
    return 0;
}

/* What is asked for by number: counters of the links, and virtual chips, of which there are none. */
int dcmi_get_device_info(int card, int device, int command, unsigned int part, void *buffer, unsigned int *size)
{
    CHIP(card, device)
    memset(buffer, 0, *size);
    if (command == 16 && (part == 3 || part == 5)) {
        return chip.hbm > 0 ? 0 : DCMI_NOT_SUPPORTED;
    }
    if (command == 52 && (part == 1 || part == 2)) {
        size_t cores = part == 1 ? 208 : 72; /* behind the numbers of virtual chips and what all resources share */

        if (*size < cores + sizeof(float)) {
            return DCMI_BAD_PARAMETER;
        }
        *(float *)((char *)buffer + cores) = chip.cores;
        return 0;
    }
    return DCMI_NOT_SUPPORTED;
}
