# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-run and systemctl for one transient unit: it runs beside the test, and its state is in $FAKE/unit.

$FAKE/pid is the leader of its processes, and $FAKE/stop-post the command that runs when it has ended.
"""

from __future__ import annotations

SYSTEMD_RUN = """#!/bin/sh
echo "systemd-run" $* >>"$FAKE/calls"
[ ! -e "$FAKE/fail-systemd-run" ] || { echo "Failed to create bus connection" >&2; exit 1; }
log=/dev/null
rm -f "$FAKE/stop-post" "$FAKE/pid"
while case $1 in -*) true ;; *) false ;; esac; do
    case $1 in
    --property=StandardOutput=file:*) log=${1#*file:} ;;
    --property=ExecStopPost=-*) echo "${1#*ExecStopPost=-}" >"$FAKE/stop-post" ;;
    esac
    shift
done
# As systemd does, for variables that are not set.
for word do
    shift
    case $word in
    *'$'*) word=$(printf '%s.' "$word" | sed 's/[$][$]/\\x01/g; s/[$]{[^}]*}//g; s/\\x01/$/g') && word=${word%.} ;;
    esac
    set -- "$@" "$word"
done
echo running >"$FAKE/unit"
touch "$log"
(
    setsid "$@" 1<>"$log" 2>&1 & # not truncated
    echo $! >"$FAKE/pid"
    wait $!
    status=$?
    [ "$status" = 0 ] || [ ! -e "$FAKE/stop-post" ] || $(cat "$FAKE/stop-post")
    echo "$status" >"$FAKE/unit.new"
    mv "$FAKE/unit.new" "$FAKE/unit"
) >/dev/null 2>&1 </dev/null &
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
stop)
    if [ "$(cat "$FAKE/unit" 2>/dev/null)" = running ]; then
        while [ ! -s "$FAKE/pid" ]; do sleep 0.02; done
        kill -9 "-$(cat "$FAKE/pid")"
        while [ "$(cat "$FAKE/unit")" = running ]; do sleep 0.02; done
    elif [ "$(cat "$FAKE/unit" 2>/dev/null)" = 0 ] && [ -e "$FAKE/stop-post" ]; then
        $(cat "$FAKE/stop-post")
    fi
    rm -f "$FAKE/unit"
    ;;
is-active) [ -e "$FAKE/reboot-queued" ] && echo active || echo inactive ;;
is-system-running) [ -e "$FAKE/stopping" ] && echo stopping || echo running ;;
esac
"""
