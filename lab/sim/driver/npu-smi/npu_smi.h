/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#ifndef NPU_SMI_H
#define NPU_SMI_H

#include "dcmi.h"

#define TOOL_NAME "npu-smi"
#ifndef TOOL_VERSION
#error "TOOL_VERSION is the version of the package npu-smi is in"
#endif

#define BAD_PARAMETER (-9001)
#define INNER_ERROR (-9005)
#define NOT_SUPPORTED (-9255)
#define MAX_CARDS 64

/* What `npu-smi info -t TYPE -i CARD -c CHIP` asks; chip -1: all of the card. */
struct question {
    const char *type;
    int card;
    int chip;
    int phy; /* of phyid-remap */
};

/* What `npu-smi set -t TYPE` does about virtual NPUs. */
struct change {
    struct question of;
    int vnpu;             /* 0: none was named */
    int value;            /* of -d; -1: none */
    const char *template; /* "" without one */
};

const char *health_text(int health);
int has_hbm(const struct hal_state *state);

void print_table(const struct hal_state *state);
void print_list(const struct hal_state *state);
void print_mapping(const struct hal_state *state);
int print_type(const struct hal_state *state, const struct question *question);
int known_type(const char *type);
int print_vnpu_type(const struct hal_state *state, const struct question *question);
int known_vnpu_type(const char *type);
int set_vnpu(const struct hal_state *state, const struct change *change);

/* "name : value", as all lists of npu-smi are laid out. */
void line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
