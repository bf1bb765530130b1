#!/bin/bash
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Removes the files of a simulated firmware package. The chips keep what is in their flash.

rm -rf "$1/firmware"
sed -i '/^Firmware_/d' "$2"
