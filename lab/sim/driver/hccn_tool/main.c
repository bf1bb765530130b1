/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* hccn_tool: the network ports of chips that have one. Only what /etc/hccn.conf has can be set, with `-cfg recovery`. */
#include "hccn_tool.h"

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

static int statistics(const struct hal_chip *chip)
{
    (void)chip;
    puts("packet statistics:");
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        printf("%s:0\n", counters[i]);
    }
    return 0;
}

static int show_link(const struct hal_chip *chip)
{
    printf("link status: %s\n", chip->port ? "UP" : "DOWN");
    return 0;
}

static int show_speed(const struct hal_chip *chip)
{
    puts(chip->port ? "Speed: 200000 Mb/s" : "Speed: Unknown!");
    return 0;
}

static int show_link_stat(const struct hal_chip *chip)
{
    printf("[device %d]link up count : 1\n[device %d]link down count : %d\n", chip->phy, chip->phy, !chip->port);
    return 0;
}

static int show_bandwidth(const struct hal_chip *chip)
{
    (void)chip;
    puts("Bandwidth TX: 0.00 MB/sec\nBandwidth RX: 0.00 MB/sec");
    return 0;
}

static int show_fec(const struct hal_chip *chip)
{
    (void)chip;
    puts("fec mode: rs FEC mode");
    return 0;
}

static int show_mtu(const struct hal_chip *chip)
{
    (void)chip;
    puts("mtu:4096");
    return 0;
}

static const struct {
    const char *name;
    int (*show)(const struct hal_chip *chip);
} items[] = {
    {"-link", show_link},       {"-speed", show_speed},     {"-link_stat", show_link_stat}, {"-stat", statistics},
    {"-optical", show_optical}, {"-ip", show_address},      {"-gateway", show_gateway},     {"-net_health", show_net_health},
    {"-tls", show_tls},         {"-fec", show_fec},         {"-mtu", show_mtu},             {"-bandwidth", show_bandwidth},
};

static int run(const struct hal_state *state, const struct hal_chip *chip, int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[3], "-cfg") == 0) {
        return recover(chip);
    }
    if (argc == 7 && strcmp(argv[3], "-ping") == 0 && strcmp(argv[5], "address") == 0) {
        return ping(state, chip, argv[6]);
    }
    for (size_t i = 0; argc == 5 && i < sizeof(items) / sizeof(items[0]); i++) {
        if (strcmp(argv[3], items[i].name) == 0) {
            return items[i].show(chip);
        }
    }
    fputs("Get unknown option!\n", stderr);
    return 1;
}

int main(int argc, char **argv)
{
    const struct hal_state *state;

    if (argc < 5 || strcmp(argv[1], "-i") != 0 ||
        strcmp(argv[4], argc == 5 && strcmp(argv[3], "-cfg") == 0 ? "recovery" : "-g") != 0) {
        puts("Usage: hccn_tool -i <device> <-ITEM -g|-ping -g address ADDRESS|-cfg recovery>");
        return 1;
    }
    if (dcmi_init() == 0) {
        state = dcmi_state();
        for (int i = 0; i < state->count; i++) {
            if (state->chips[i].phy == atoi(argv[2]) && state->chips[i].hbm > 0) {
                return run(state, &state->chips[i], argc, argv);
            }
        }
    }
    printf("Failed to get the information of device %s.\n", argv[2]);
    return 1;
}
