/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libascend_hal.so: the way to the (simulated) silicon. */
#ifndef ASCEND_HAL_H
#define ASCEND_HAL_H

#define HAL_INNER_ERROR (-8005)
#define HAL_MAX_CHIPS 64
#define HAL_MAX_TEMPLATES 10
#define HAL_MAX_VNPUS 512

struct hal_chip {
    int phy;   /* N of /dev/davinciN */
    int logic; /* counted among those this process may use */
    int card;  /* "NPU ID" */
    int chip;  /* "Chip ID": which one on the card */
    int result, health, temp, mcu_temp, power, used, hbm, ddr, cores, ctrlcpu;
    char bus[24], family[8], name[24], product[48], device[8], subvendor[8], subdevice[8], board[8];
    char serial[24], code[16], firmware[32]; /* firmware: what it runs */
    int port, weak; /* whether its network port is up, and the light it gets too weak */
    char ip[16];    /* of that port */
};

/* What virtual NPUs divide; memory in GB. */
struct hal_parts {
    int cores, memory, aicpu, vpc, venc, vdec, jpegd, jpege;
};

struct hal_template {
    char name[24];
    struct hal_parts parts;
};

struct hal_vnpu {
    int id;   /* N of /dev/vdavinciN */
    int phy;  /* of its chip */
    int group;
    int used; /* by a container */
    char name[24]; /* of its template */
};

struct hal_state {
    int result;      /* 0, or the DCMI code of every call */
    int smi_fails;   /* faults for npu-smi alone */
    int smi_garbage;
    char driver[32]; /* version of the modules that are loaded */
    char firmware[32]; /* of chips that do not say theirs */
    int count;
    struct hal_chip chips[HAL_MAX_CHIPS];
    struct hal_parts parts; /* of each chip */
    int template_count;
    struct hal_template templates[HAL_MAX_TEMPLATES];
    int vnpu_count;
    struct hal_vnpu vnpus[HAL_MAX_VNPUS];
    int vnpu_recover; /* whether virtual NPUs are created anew at boot */
};

/* Whether this process runs on the node itself, not in a container. */
int hal_on_host(void);

/* Lets the silicon do what the JSON object says, as root of the node may. 0, or an error and what it is called. */
int hal_control(const char *request, char *error, int size);

/* Whether a chip of another node has the address at a port that is up. */
int hal_peer_has(const char *address);

/* Reads everything, for the program of that name; leaves chips this process may not use out. Returns state->result. */
int hal_read(const char *program, struct hal_state *state);

#endif
