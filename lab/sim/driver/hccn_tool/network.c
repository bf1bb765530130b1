/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* Address, gateway, health, TLS and ping, with the words of hccn_tool's source in hicann/driver and of captures in guides for
 * several hosts; ../../README.md names them, and what is made up. */
#include "hccn_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS 3

int show_address(const struct hal_chip *chip)
{
    if (!chip->ip[0]) {
        fputs("Get ipconf failed, because no ip was preset there!\n", stderr);
        return 1;
    }
    printf("ipaddr:%s\nnetmask:255.255.0.0\n", chip->ip);
    return 0;
}

int recover(const struct hal_chip *chip)
{
    const char *root = getenv("NPUSIM_ROOT");
    char path[256], line[256], key[32], address[64] = "", request[192], error[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/etc/hccn.conf", root ? root : "");
    snprintf(key, sizeof(key), "address_%d=", chip->phy);
    file = fopen(path, "r");
    if (!file) {
        puts("Recovery failed. Check '/var/log/hccn_tool/hccn_config.log' for details.");
        return 1;
    }
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            sscanf(line + strlen(key), "%63[0-9.]", address);
        }
    }
    fclose(file);
    snprintf(request, sizeof(request), "{\"Operation\":\"set-address\",\"Chip\":%d,\"Address\":\"%s\"}\n", chip->phy, address);
    if (hal_control(request, error, sizeof(error)) != 0) {
        puts("Recovery failed. Check '/var/log/hccn_tool/hccn_config.log' for details.");
        return 1;
    }
    return 0;
}

int show_gateway(const struct hal_chip *chip)
{
    if (!chip->ip[0]) {
        fputs("Get gateway failed, because no gateway was preset there!\n", stderr);
        return 1;
    }
    printf("default gateway:%.5s.0.1, Iface:eth%d\n", chip->ip, chip->phy);
    return 0;
}

/* Without a detection address, it stays at Init. */
int show_net_health(const struct hal_chip *chip)
{
    printf("net health status: %s\n", chip->ip[0] ? chip->port ? "Success" : "Fault" : "Init");
    return 0;
}

int show_tls(const struct hal_chip *chip)
{
    printf("dev_id:%d, tls switch[0](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset), "
           "tls alarm time threshold[60]days\n", chip->phy);
    return 0;
}

static int answers(const struct hal_state *state, const struct hal_chip *chip, const char *address)
{
    /* Of another network, and there is no gateway that forwards. */
    if (!chip->port || !chip->ip[0] || strncmp(chip->ip, address, 6) != 0) {
        return 0;
    }
    for (int i = 0; i < state->count; i++) {
        if (state->chips[i].port && strcmp(state->chips[i].ip, address) == 0) {
            return 1;
        }
    }
    return hal_peer_has(address);
}

int ping(const struct hal_state *state, const struct hal_chip *chip, const char *address)
{
    int received = answers(state, chip, address) ? PACKETS : 0;

    printf("device %d PING %s\n", chip->phy, address);
    for (int packet = 0; packet < PACKETS; packet++) {
        printf(received ? "recv seq=%d,time=0.065000ms\n" : "recv time out seq=%d\n", packet);
    }
    printf("%d packets transmitted, %d received, %.2f%% packet loss\n", PACKETS, received, received ? 0.0 : 100.0);
    if (!received) {
        fputs("Cmd execute failed!\n", stderr);
    }
    return received ? 0 : 1;
}
