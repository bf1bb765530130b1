#!/bin/bash
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Init script of a simulated driver package: waits for the devices. Their owner and mode the simulation sets itself.

case "$1" in
    start)
        for _ in $(seq 60); do
            [ -c /dev/davinci_manager ] && exit 0
            sleep 1
        done
        exit 1
        ;;
    stop) ;;
    *)
        echo "Usage: $0 {start|stop}"
        exit 1
        ;;
esac
