#!/bin/sh
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Installs a Python on a host that has none: unpacks the node agent's image with the host's own containerd to
# /var/lib/npuops/python/<name>, and points the link "current" to it. The action plugin npu_python sends this script to the
# standard input of a shell on the host, so that its content is not on a command line. The plugin prepends lines that set
#
#   task        look, bring or remove
#   traces      look: paths, one per line, whose existence is checked
#   name        bring: the name of the directory, which identifies the image
#   image       bring: the image as repository@digest
#   registry    bring: its registry
#   hosts_toml  bring: containerd's configuration for that registry, with the credentials
#
# Exit status: 10 no ctr, 11 no socket, 12 not pulled, 13 not unpacked, 14 does not start, 15 another run.
# NPU_HOST_ROOT: path of the host's / (empty: this machine's).

set -eu
umask 022

: "${task:=look}" "${traces:=}" "${name:=}" "${image:=}" "${registry:=}" "${hosts_toml:=}"
fs=${NPU_HOST_ROOT:-}
top=$fs/var/lib/npuops/python
run=$fs/run/npuops/python
namespace=npuops-python
new=

say() {
    echo "npuops-python: $*"
}

# fail STATUS TEXT...
fail() {
    code=$1
    shift
    printf '%s\n' "$*" >&2
    exit "$code"
}

# Syncs only the file system of $top, because another one may hang.
to_disk() {
    sync -f "$top" 2>/dev/null || sync
}

current() {
    if [ -x "$top/current/python3" ]; then
        readlink "$top/current"
    fi
}

look() {
    say "current=$(current)"
    printf '%s\n' "$traces" | while read -r path; do
        if [ -n "$path" ] && { [ -e "$fs$path" ] || [ -L "$fs$path" ]; }; then
            say "trace=$path"
        fi
    done
    if [ -e "$top" ]; then
        say "trace=/var/lib/npuops/python"
    fi
}

find_containerd() {
    ctr=
    for path in "$(command -v ctr || true)" /usr/local/bin/ctr /usr/bin/ctr /opt/containerd/bin/ctr \
        /var/lib/rancher/k3s/data/current/bin/ctr /var/lib/rancher/rke2/bin/ctr /snap/microk8s/current/bin/ctr; do
        if [ -n "$path" ] && [ -x "$path" ]; then
            ctr=$path
            break
        fi
    done
    # k0s has it inside.
    inside=
    if [ -z "$ctr" ]; then
        ctr=$(command -v k0s || true)
        inside=ctr
    fi
    [ -n "$ctr" ] || fail 10 "there is no ctr"
    address=
    for path in "$fs/run/k3s/containerd/containerd.sock" "$fs/run/k0s/containerd.sock" \
        "$fs/var/snap/microk8s/common/run/containerd.sock" "$fs/run/containerd/containerd.sock"; do
        if [ -e "$path" ]; then
            address=$path
            break
        fi
    done
    [ -n "$address" ] || fail 11 "there is no socket"
    limit=
    if command -v timeout >/dev/null; then
        limit="timeout 1800"
    fi
}

containerd() {
    # shellcheck disable=SC2086
    $limit "$ctr" $inside -a "$address" -n "$namespace" "$@"
}

# Removes everything in the namespace, which is used only by this script, including what a killed run left.
clean() {
    rm -rf "$run/hosts"
    if [ -d "$run/image" ]; then
        umount "$run/image" 2>/dev/null || true
        rmdir "$run/image" 2>/dev/null || true
    fi
    for left in "$top"/.new-*; do
        [ ! -e "$left" ] || rm -rf "$left"
    done
    for left in $(containerd images ls -q 2>/dev/null); do
        containerd images rm "$left" >/dev/null 2>&1 || true
    done
    # Removing a lease with --sync waits until containerd has freed the disk space.
    containerd leases create --id npuops-sweep >/dev/null 2>&1 || true
    for left in $(containerd leases ls -q 2>/dev/null); do
        containerd leases rm --sync "$left" >/dev/null 2>&1 || true
    done
}

pull() {
    mkdir -p "$run/hosts/$registry"
    (
        umask 077
        cat >"$run/hosts/$registry/hosts.toml" <<END
$hosts_toml
END
    )
    options="--hosts-dir $run/hosts"
    # ctr fetches, not the daemon: the transfer service of containerd 1.7 does not support --hosts-dir.
    if containerd images pull --help | grep -q -e --local; then
        options="$options --local"
    fi
    # shellcheck disable=SC2086
    output=$(containerd images pull $options "$image" 2>&1) || fail 12 "$output"
    rm -rf "$run/hosts"
}

unpack() {
    mkdir -p "$run/image"
    output=$(containerd images mount "$image" "$run/image" 2>&1) || fail 13 "$output"
    new=$top/.new-$$
    mkdir "$new"
    output=$(cp -a "$run/image/." "$new/" 2>&1) || fail 13 "$output"
    # A Python needs no setuid or setgid programs.
    chmod -R u-s,g-s "$new"
    for directory in usr/local/bin usr/bin; do
        if [ -x "$new/$directory/npuops-python" ] && [ ! -e "$new/python3" ]; then
            ln -s "$directory/npuops-python" "$new/python3"
        fi
    done
    [ -e "$new/python3" ] || fail 14 "it has no npuops-python"
    output=$("$new/python3" -c 'import ctypes, fcntl, json, lzma, ssl, zlib' 2>&1) || fail 14 "$output"
    to_disk
}

bring() {
    find_containerd
    mkdir -p "$top"
    mkdir -p "$run"
    chmod 0700 "$run"
    if command -v flock >/dev/null; then
        exec 9>"$run/lock"
        flock -w 900 9 || fail 15 "another run has been installing it for 15 minutes"
    fi
    if [ "$(current)" = "$name" ]; then
        return
    fi
    trap clean EXIT
    trap 'exit 1' HUP INT TERM
    clean
    pull
    unpack
    rm -rf "${top:?}/$name"
    mv -T "$new" "$top/$name"
    rm -f "$top/.new-current"
    ln -s "$name" "$top/.new-current"
    mv -fT "$top/.new-current" "$top/current"
    to_disk
    for path in "$top"/*; do
        case ${path##*/} in
        "$name" | current) ;;
        *) rm -rf "$path" ;;
        esac
    done
}

remove() {
    rm -f "$top/current"
    rm -rf "$top" "$run"
    rmdir "$fs/var/lib/npuops" "$fs/run/npuops" 2>/dev/null || true
}

# A function, so that the shell reads the whole script before it runs anything, even if the connection breaks.
main() {
    case $task in
    look) look ;;
    bring) bring ;;
    remove) remove ;;
    *) fail 2 "unknown task: $task" ;;
    esac
}

main </dev/null
