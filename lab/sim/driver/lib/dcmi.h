/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libdcmi.so: what programs call. Functions, order and size of fields are those of the driver's ABI. */
#ifndef DCMI_H
#define DCMI_H

#include "ascend_hal.h"

#define DCMI_BAD_PARAMETER (-8001)
#define DCMI_NO_DEVICE (-8008)
#define DCMI_NO_CONFIGURATION (-8023)
#define DCMI_NOT_SUPPORTED (-8255)

struct chip_text {
    char type[32], name[32], version[32];
    unsigned int cores;
};

struct chip_text_v2 {
    struct chip_text chip;
    char full_name[32];
};

struct pcie_address {
    unsigned int vendor, subvendor, device, subdevice;
    int domain;
    unsigned int bus, slot, function;
    char reserved[32];
};

struct die_number {
    unsigned int word[5];
};

struct ecc_counts {
    int enabled;
    unsigned int counts[8];
};

struct hbm_state {
    unsigned long long size;
    unsigned int frequency;
    unsigned long long used;
    int temperature;
    unsigned int bandwidth;
};

struct memory_state {
    unsigned long long size, available;
    unsigned int frequency;
    unsigned long huge_size, huge_total, huge_free;
    unsigned int utilization;
    char reserved[60];
};

struct memory_state_v1 {
    unsigned long long size;
    unsigned int frequency, utilization;
};

struct utilizations {
    unsigned int cube, vector, core, all, reserved[8];
};

struct board_numbers {
    unsigned int board, pcb, bom, slot;
};

struct pcie_bandwidth {
    int milliseconds;
    unsigned int values[7][3];
};

struct hccs_bandwidth {
    int milliseconds;
    double sent, received, link_sent[16], link_received[16];
};

struct label {
    char product[256], model[256], manufacturer[256], made[256], serial[256];
};

struct ip_address {
    unsigned char bytes[16];
    int version;
};

struct process_memory {
    int pid;
    unsigned long bytes;
};

struct fault_event {
    int type;
    struct {
        unsigned int id;
        unsigned short chip; /* logical */
        unsigned char node_type, node, sub_node_type, sub_node, severity, assertion;
        int serial, notification;
        unsigned long long raised;
        char name[256], more[32], reserved[32];
    } fault;
};

struct fault_filter {
    unsigned long long flags;
    unsigned int id;
    unsigned char severity, node_type, reserved[32];
};

int dcmi_init(void);
int dcmi_get_card_list(int *count, int *list, int length);
int dcmi_get_card_num_list(int *count, int *list, int length);
int dcmi_get_device_num_in_card(int card, int *count);
int dcmi_get_driver_version(char *version, unsigned int length);

/* All that dcmi_init read. */
const struct hal_state *dcmi_state(void);

/* The state of now, for the other parts of this library. Returns its result. */
int dcmi_look(struct hal_state *now);

/* A chip of now: 0 and the chip, or what a call about it returns. */
int dcmi_look_at(int card, int device, struct hal_chip *chip);

#endif
