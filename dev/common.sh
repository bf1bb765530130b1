# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Read by the scripts in this folder, never run by itself.

set -euo pipefail

CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# What survives a clean clone: virtual environments, keyed by what they were made from.
NPU_CACHE=${NPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/npuops}
# NPU_VENV: another environment than .venv, for dev/ansible-matrix.
VENV=${NPU_VENV:-$CHECKOUT/.venv}
LOGS=$CHECKOUT/.cache/logs
# Where the lab of this checkout, or the one that NPU_LAB numbers, keeps its files (lab/README.md).
NPU_LAB=${NPU_LAB:-0}
NPU_LAB_STATE=${NPU_LAB_STATE:-$CHECKOUT/.lab$([ "$NPU_LAB" = 0 ] || echo "$NPU_LAB")}
export CHECKOUT NPU_CACHE LOGS NPU_LAB NPU_LAB_STATE
export PATH=$VENV/bin:$PATH
export ANSIBLE_CONFIG=$CHECKOUT/ansible.cfg
cd "$CHECKOUT"

# die MESSAGE...: what is wrong and what to do, then stop.
die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# find_python: the Python that the virtual environment is made with, 3.11 or newer; PYTHON names one. The distribution's comes
# first: one that somebody built on this machine is often built without its optimisations, and takes half as long again.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} /usr/bin/python3.11 python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))'
            return
        fi
    done
    die "No Python 3.11 or newer found. Install one, or name one: make PYTHON=/path/to/python3.11"
}

# as_root COMMAND...: with sudo where we are not root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_install PACKAGE...: only what is missing, one at a time on this machine.
apt_install() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "These packages are missing and this machine has no apt-get: ${missing[*]}"
    (
        flock 9
        export DEBIAN_FRONTEND=noninteractive
        as_root apt-get -q -o DPkg::Lock::Timeout=600 update
        as_root apt-get -q -y -o DPkg::Lock::Timeout=600 --no-install-recommends install "${missing[@]}"
    ) 9>/tmp/npuops-apt.lock
}

# all_files: what git knows, without links to nowhere, and what was removed and not yet committed.
all_files() {
    git ls-files -co --exclude-standard | while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

# begins_with REGEX: the files whose first line is like that.
begins_with() {
    # shellcheck disable=SC2016 # awk expands it
    all_files | tr '\n' '\0' | xargs -0 awk -v regex="$1" 'FNR == 1 { if ($0 ~ regex) print FILENAME; nextfile }'
}

# python_files: Python of every kind, *.py and what its first line says.
python_files() {
    {
        all_files | grep '\.py$'
        begins_with '^#!.*python'
    } | sort -u
}
