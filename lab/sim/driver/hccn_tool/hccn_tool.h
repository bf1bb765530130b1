/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* hccn_tool: what it shows of the network port of a chip. */
#ifndef HCCN_TOOL_H
#define HCCN_TOOL_H

#include "dcmi.h"

/* Each prints one item; 0, or the exit status with a message on standard error. */
int show_address(const struct hal_chip *chip);
int show_gateway(const struct hal_chip *chip);
int show_net_health(const struct hal_chip *chip);
int show_tls(const struct hal_chip *chip);
int show_optical(const struct hal_chip *chip);

/* Gives the port the address that /etc/hccn.conf has for it. */
int recover(const struct hal_chip *chip);

/* Three packets from the port to an address. Any port of a node that is up answers, also one of this node. */
int ping(const struct hal_state *state, const struct hal_chip *chip, const char *address);

#endif
