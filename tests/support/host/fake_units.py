# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-run and systemctl for one transient unit: it runs beside the test, and its state is in $FAKE/unit."""

from __future__ import annotations

SYSTEMD_RUN = """#!/bin/sh
echo "systemd-run" $* >>"$FAKE/calls"
[ ! -e "$FAKE/fail-systemd-run" ] || { echo "Failed to create bus connection" >&2; exit 1; }
log=/dev/null
while case $1 in -*) true ;; *) false ;; esac; do
    case $1 in --property=StandardOutput=file:*) log=${1#*file:} ;; esac
    shift
done
echo running >"$FAKE/unit"
touch "$log"
("$@" >"$log" 2>&1; echo $? >"$FAKE/unit.new"; mv "$FAKE/unit.new" "$FAKE/unit") >/dev/null 2>&1 </dev/null &
"""

SYSTEMCTL = """#!/bin/sh
case $1 in
show)
    state=$(cat "$FAKE/unit" 2>/dev/null)
    case $state in
    '') echo ActiveState=inactive ;;
    running) printf 'ActiveState=active\\nSubState=running\\n' ;;
    0) printf 'ActiveState=active\\nSubState=exited\\nExecMainStatus=0\\nResult=success\\n' ;;
    *) printf 'ActiveState=failed\\nSubState=failed\\nExecMainStatus=%s\\nResult=exit-code\\n' "$state" ;;
    esac
    ;;
stop) rm -f "$FAKE/unit" ;;
is-active) [ -e "$FAKE/reboot-queued" ] && echo active || echo inactive ;;
is-system-running) [ -e "$FAKE/stopping" ] && echo stopping || echo running ;;
esac
"""
