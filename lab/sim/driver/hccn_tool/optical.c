/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* The optical module, with the lines and the order of hicann/driver's tool_show_optical_info, and values as in captures. */
#include "hccn_tool.h"

#include <stdio.h>

#define LANES 4

static void powers(int weak)
{
    for (int lane = 0; lane < LANES; lane++) {
        printf("Tx Power%d            : 0.9000 mW\n", lane);
        printf("Rx Power%d            : %s mW\n", lane, weak ? "0.0120" : "0.8000");
    }
}

static void limits(void)
{
    puts("Vcc High Thres       : 3465.00 mV\nVcc Low Thres        : 3135.00 mV\nTemp High Thres      : 70 C\n"
         "Temp Low Thres       : 0 C\nTxPower High Thres   : 3.5481 mW\nTxPower Low Thres    : 0.2818 mW\n"
         "RxPower High Thres   : 3.5481 mW\nRxPower Low Thres    : 0.1445 mW");
}

static void ratios(int weak)
{
    for (int lane = 0; lane < LANES; lane++) {
        printf("Host SNR Lane%d       : not supported\n", lane);
    }
    for (int lane = 0; lane < LANES; lane++) {
        printf("Media SNR Lane%d      : %s dB\n", lane, weak ? "9.8125" : "22.6289");
    }
}

int show_optical(const struct hal_chip *chip)
{
    puts("optical info:\npresent              : present\ntemperature          : 41 C\nhigh power enable reg: enabled\n"
         "vendor name          : LAB\nvendor part number   : LAB-200-SR4\nxsfp identifier      : QSFP28\n"
         "xsfp wave length     : 850 nm\nVcc                  : 3300.00 mV");
    powers(chip->weak);
    limits();
    for (int lane = 0; lane < LANES; lane++) {
        printf("Tx Bias%d             : 7.9360 mA\n", lane);
    }
    puts("Tx Los Flag          : 0x0\nRx Los Flag          : 0x0\nTx LoL Flag          : 0x0\nRx LoL Flag          : 0x0");
    ratios(chip->weak);
    return 0;
}
