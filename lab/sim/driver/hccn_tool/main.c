/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* hccn_tool: the network ports of chips that have one. They are up, and nothing is sent over them. */
#include "dcmi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const counters[] = {
    "mac_tx_mac_pause_num", "mac_rx_mac_pause_num", "mac_tx_pfc_pkt_num", "mac_rx_pfc_pkt_num", "mac_tx_bad_pkt_num",
    "mac_tx_bad_oct_num", "mac_rx_bad_pkt_num", "mac_rx_bad_oct_num", "mac_rx_fcs_err_pkt_num", "roce_rx_rc_pkt_num",
    "roce_rx_all_pkt_num", "roce_rx_err_pkt_num", "roce_tx_rc_pkt_num", "roce_tx_all_pkt_num", "roce_tx_err_pkt_num",
    "roce_cqe_num", "roce_rx_cnp_pkt_num", "roce_tx_cnp_pkt_num", "roce_unexpected_ack_num", "roce_out_of_order_num",
    "roce_verification_err_num", "roce_qp_status_err_num", "roce_new_pkt_rty_num", "roce_ecn_db_num",
};

static void statistics(void)
{
    puts("packet statistics:");
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        printf("%s:0\n", counters[i]);
    }
}

static void optical(void)
{
    puts("optical info:\npresent              : present\ntemperature          : 41 C\nVcc                  : 3300.00 mV");
    for (int lane = 0; lane < 4; lane++) {
        printf("Tx Power%d            : 0.9000 mW\nRx Power%d            : 0.8000 mW\n", lane, lane);
    }
}

static int show(const char *what, int phy)
{
    if (strcmp(what, "-link") == 0) {
        puts("link status: UP");
    } else if (strcmp(what, "-speed") == 0) {
        puts("Speed: 200000 Mb/s");
    } else if (strcmp(what, "-link_stat") == 0) {
        printf("[device %d]link up count : 1\n[device %d]link down count : 0\n", phy, phy);
    } else if (strcmp(what, "-stat") == 0) {
        statistics();
    } else if (strcmp(what, "-optical") == 0) {
        optical();
    } else if (strcmp(what, "-bandwidth") == 0) {
        puts("Bandwidth TX: 0.00 MB/sec\nBandwidth RX: 0.00 MB/sec");
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    const struct hal_state *state;

    if (argc != 5 || strcmp(argv[1], "-i") != 0 || strcmp(argv[4], "-g") != 0) {
        puts("Usage: hccn_tool -i <device> <-link|-speed|-link_stat|-stat|-optical|-bandwidth> -g");
        return 1;
    }
    if (dcmi_init() == 0) {
        state = dcmi_state();
        for (int i = 0; i < state->count; i++) {
            if (state->chips[i].phy == atoi(argv[2]) && state->chips[i].hbm > 0) {
                return show(argv[3], state->chips[i].phy) ? 0 : 1;
            }
        }
    }
    printf("Failed to get the information of device %s.\n", argv[2]);
    return 1;
}
