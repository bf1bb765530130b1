#!/bin/bash
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Installer of a simulated driver package. Runs in the extracted package; exit status 0, or 1 with ERR_NO in its output.

umask 022

info=/etc/ascend_install.info
log_directory=/var/log/ascend_seclog
user=HwHiAiUser
group=HwHiAiUser
path=
operation=
type=
for_all=no
quiet=no

log() {
    mkdir -p "$log_directory"
    printf '[Driver] [%s] %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$1" >> "$log_directory/ascend_install.log"
    [ "$quiet" = yes ] || printf '[Driver] [%s] %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$1"
}

die() {
    quiet=no
    log "[ERROR]ERR_NO:$1;ERR_DES:$2"
    exit 1
}

installed() { [ -r "$info" ] && sed -n "s/^$1=//p" "$info"; }

package_version() { sed -n 's/^Version=//p' ./version.info; }

parse() {
    local argument
    for argument in "$@"; do
        case "$argument" in
            --full | --run | --docker | --devel) operation=install type=${argument#--} ;;
            --upgrade) operation=upgrade ;;
            --uninstall) operation=uninstall ;;
            --version) operation=version ;;
            --install-path=*) path=${argument#*=} ;;
            --install-username=*) user=${argument#*=} ;;
            --install-usergroup=*) group=${argument#*=} ;;
            --install-for-all) for_all=yes ;;
            --quiet) quiet=yes ;;
            --force | --norebuild | --nox11) ;;
            *) die 0x0004 "Unrecognized parameters: $argument. Try './xxx.run --help' for more information." ;;
        esac
    done
    [ -n "$operation" ] ||
        die 0x0004 "Only support one type: full/run/docker/devel/upgrade/uninstall, operation failed!"
}

check() {
    local before
    [ "$(id -u)" = 0 ] || die 0x0093 "You do not have the permission to install, please use root."
    before=$(installed Driver_Install_Path_Param)
    case "$operation" in
        upgrade | uninstall)
            [ -n "$before" ] || die 0x0080 "Driver is not installed on this device, $operation failed"
            user=$(installed UserName) group=$(installed UserGroup) type=$(installed Driver_Install_Type)
            for_all=$(installed Driver_Install_For_All)
            ;;
        install)
            before=${before:-$(installed Firmware_Install_Path_Param)}
            [ -z "$(installed UserName)" ] || [ "$(installed UserName)" = "$user" ] ||
                die 0x0095 "The user and group are not same with last installation"
            ;;
    esac
    path=${path:-${before:-/usr/local/Ascend}}
    if [ "$operation" != uninstall ]; then
        id "$user" > /dev/null 2>&1 ||
            die 0x0091 "$user not exists! Please add $user and try again."
    fi
}

copy_tree() {
    rm -rf "$path/driver"
    mkdir -p "$path" /usr/local/dcmi /usr/local/bin /usr/local/sbin ||
        die 0x0003 "The install path $path cannot be made"
    cp -a driver "$path/driver" || die 0x0085 "copy failed"
    # As in Huawei's packages: libdcmi.so is one directory higher in the package than where it is installed.
    mv "$path/driver/lib64/libdcmi.so" "$path/driver/lib64/driver/libdcmi.so"
    install -m 0444 version.info "$path/driver/version.info"
    install -m 0550 host_sys_init.sh "$path/host_sys_init.sh"
    install -m 0444 driver/lib64/libdcmi.so /usr/local/dcmi/libdcmi.so
    install -m 0555 driver/tools/npu-smi /usr/local/bin/npu-smi
    install -m 0555 driver/tools/npu-smi /usr/local/sbin/npu-smi
    chown -R root:root "$path/driver"
}

tell_system() {
    printf '%s\n' "$path/driver/lib64/common" "$path/driver/lib64/driver" "$path/driver/lib64" \
        > /etc/ld.so.conf.d/ascend_driver_so.conf
    chmod 0440 /etc/ld.so.conf.d/ascend_driver_so.conf
    ldconfig
    printf 'DAVINCI_HOME_PATH=%s\n' "$path" > /lib/davinci.conf
    mkdir -p /etc/modules-load.d
    printf 'fat\nvfat\n' > /etc/modules-load.d/ascend-fat.conf
    {
        grep -s '^Firmware_' "$info"
        printf '%s=%s\n' UserName "$user" UserGroup "$group" Driver_Install_Type "$type" \
            Driver_Install_Path_Param "$path" Driver_Install_For_All "$for_all" Driver_Install_Mode normal
    } > "$info.new"
    chmod 0644 "$info.new"
    mv "$info.new" "$info"
}

install_modules() {
    local updates
    updates=/lib/modules/$(uname -r)/updates
    mkdir -p "$updates"
    install -m 0644 driver/host/*.ko "$updates/"
    depmod -a 2> /dev/null
}

load_modules() {
    local module
    if [ -d /sys/module/drv_pcie_host ]; then
        log "[WARNING]A driver is loaded. Reboot the host for the new one to take effect."
        return 0
    fi
    for module in driver/host/*.ko; do
        module=${module##*/}
        modprobe "${module%.ko}" 2>> "$log_directory/ascend_install.log" || [ "${module%.ko}" = drv_vascend ] ||
            die 0x0085 "${module%.ko} modprobe failed"
    done
    "$path/host_sys_init.sh" start
}

uninstall() {
    rm -rf "$path/driver" "$path/host_sys_init.sh" /usr/local/dcmi /usr/local/bin/npu-smi /usr/local/sbin/npu-smi \
        /etc/ld.so.conf.d/ascend_driver_so.conf /lib/davinci.conf /etc/modules-load.d/ascend-fat.conf
    (cd driver/host && for module in *.ko; do rm -f "/lib/modules/$(uname -r)/updates/$module"; done)
    sed -i '/^Driver_/d' "$info"
    ldconfig
    depmod -a 2> /dev/null
}

cd "$(dirname "$0")/../.." || exit 1
parse "$@"
if [ "$operation" = version ]; then
    package_version
    exit 0
fi
check
log "[INFO]$operation $type driver $(package_version) in $path"
if [ "$operation" = uninstall ]; then
    uninstall
    log "[INFO]Driver package uninstalled successfully! Uninstallation takes effect after host reboot."
    exit 0
fi
copy_tree
tell_system
if [ "$type" = full ] || [ "$type" = run ]; then
    install_modules
    load_modules
    echo Driver_Install_Status=complete >> "$info"
fi
log "[INFO]Driver package installed successfully! The new version takes effect immediately."
exit 0
