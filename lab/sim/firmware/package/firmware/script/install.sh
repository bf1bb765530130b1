#!/bin/bash
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Installer of a simulated firmware package. Runs in the extracted package; exit status 0, or 1 with ERR_NO in its output.

umask 022

root=${NPUSIM_ROOT:-} # for tests
info=$root/etc/ascend_install.info
log_directory=$root/var/log/ascend_seclog
user=
group=
operation=
type=
quiet=no

log() {
    mkdir -p "$log_directory"
    printf '[Firmware] [%s] %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$1" >> "$log_directory/ascend_install.log"
    [ "$quiet" = yes ] || printf '[Firmware] [%s] %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$1"
}

die() {
    quiet=no
    log "[ERROR]ERR_NO:$1;ERR_DES:$2"
    exit 1
}

installed() { [ -r "$info" ] && sed -n "s/^$1=//p" "$info"; }

package_version() { sed -n 's/^Version=//p' firmware/version.info; }

parse() {
    local argument
    for argument in "$@"; do
        case "$argument" in
            --full) operation=install type=full ;;
            --upgrade) operation=upgrade ;;
            --uninstall) operation=uninstall ;;
            --version) operation=version ;;
            --install-username=*) user=${argument#*=} ;;
            --install-usergroup=*) group=${argument#*=} ;;
            --quiet) quiet=yes ;;
            --force | --nox11) ;;
            *) die 0x0004 "Unrecognized parameters: $argument. Try './xxx.run --help' for more information." ;;
        esac
    done
    [ -n "$operation" ] || die 0x0004 "Only support one type: full/upgrade/uninstall, operation failed!"
}

check() {
    local before
    [ "$(id -u)" = 0 ] || die 0x0093 "You do not have the permission to install, please use root."
    before=$(installed Firmware_Install_Path_Param)
    if [ "$operation" != install ]; then
        [ -n "$before" ] || die 0x0080 "Firmware is not installed on this device, $operation failed"
        type=$(installed Firmware_Install_Type)
    fi
    path=$(installed Driver_Install_Path_Param)
    driver=$root${path:-/usr/local/Ascend}/driver
    path=${before:-${path:-/usr/local/Ascend}}
    [ "$operation" != uninstall ] || return 0
    before=$(installed UserName)
    [ -z "$before" ] || [ -z "$user" ] || [ "$before" = "$user" ] ||
        die 0x0095 "The user and group are not same with last installation"
    user=${user:-${before:-HwHiAiUser}}
    group=${group:-$(installed UserGroup)}
    id "$user" > /dev/null 2>&1 || die 0x0091 "$user not exists! Please add $user and try again."
    mkdir -p "$root$path/firmware" && [ -w "$root$path/firmware" ] ||
        die 0x0003 "The install path $path cannot be made"
}

# Only a driver that runs reaches the chips.
write_flash() {
    [ -x "$driver/tools/upgrade-tool" ] ||
        die 0x0085 "$driver/tools/upgrade-tool does not exist. Install the driver first."
    LD_LIBRARY_PATH=$driver/lib64/common:$driver/lib64/driver:$driver/lib64:$LD_LIBRARY_PATH \
        "$driver/tools/upgrade-tool" --device_index -1 --component -1 --path "$PWD/firmware/image" \
        >> "$log_directory/ascend_install.log" 2>&1 ||
        die 0x0085 "Firmware package install failed: $(grep -vx '[{}]' "$log_directory/ascend_install.log" | tail -n 1)"
}

copy_tree() {
    rm -rf "$root$path/firmware"
    cp -a firmware "$root$path/firmware" || die 0x0085 "copy failed"
    rm -rf "$root$path/firmware/image"
    chown -R root:root "$root$path/firmware"
}

tell_system() {
    {
        grep -sv '^Firmware_' "$info"
        [ -n "$(installed UserName)" ] || printf '%s=%s\n' UserName "$user" UserGroup "${group:-HwHiAiUser}"
        printf '%s=%s\n' Firmware_Install_Type "$type" Firmware_Install_Path_Param "$path"
    } > "$info.new"
    chmod 0644 "$info.new"
    mv "$info.new" "$info"
}

cd "$(dirname "$0")/../.." || exit 1
parse "$@"
if [ "$operation" = version ]; then
    package_version
    exit 0
fi
check
log "[INFO]$operation $type firmware $(package_version) in $path"
if [ "$operation" = uninstall ]; then
    bash firmware/script/uninstall.sh "$root$path" "$info"
    log "[INFO]Firmware package uninstalled successfully! Uninstallation takes effect after driver installation or reboot."
    exit 0
fi
write_flash
copy_tree
tell_system
quiet=no
log "[INFO]Firmware package installed successfully! Reboot now or after driver installation for the installation/upgrade to take effect"
exit 0
