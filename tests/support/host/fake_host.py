# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts below a temporary directory: PCI functions, a driver release, programs that stand in for the kernel's."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat

from support.paths import CHECKOUT, FIXTURES

KERNEL = os.uname().release
DIGESTS = {"a": "a" * 12, "b": "b" * 12, "c": "c" * 12}

INSMOD = """#!/bin/sh
# insmod PATH: the module appears in /sys/module, and with the last one the devices do.
name=$(basename "$1" .ko)
echo "insmod $name" >>"$FAKE/calls"
[ ! -e "$FAKE/fail-$name" ] || { echo "insmod: ERROR: could not insert module $1: Invalid module format" >&2; exit 1; }
mkdir -p "$NPU_HOST_ROOT/sys/module/$name"
echo live >"$NPU_HOST_ROOT/sys/module/$name/initstate"
sed -n 's/^Version=//p' "$(dirname "$1")/../version.info" >"$NPU_HOST_ROOT/sys/module/$name/version"
[ "$name" = drv_pcie_hdc_host ] || exit 0
touch "$NPU_HOST_ROOT/dev/davinci_manager"
i=0
while [ "$i" -lt "$(cat "$FAKE/chips")" ]; do
    touch "$NPU_HOST_ROOT/dev/davinci$i"
    i=$((i + 1))
done
"""

MODPROBE = """#!/bin/sh
echo "modprobe $1" >>"$FAKE/calls"
[ ! -e "$FAKE/fail-$1" ] || { echo "modprobe: FATAL: Module $1 not found" >&2; exit 1; }
"""

# npu-smi of the tree. It must have been given its libraries, and prints what the test laid out.
NPU_SMI = """#!/bin/sh
echo "npu-smi $*" >>"$FAKE/calls"
case ":$LD_LIBRARY_PATH:" in
*:*/lib64/driver:*/lib64/common:*) ;;
*) echo "npu-smi: error while loading shared libraries: libdcmi.so" >&2; exit 127 ;;
esac
[ ! -e "$FAKE/hang" ] || exec sleep 600
cat "$FAKE/npu-smi.out"
exit "$(cat "$FAKE/npu-smi.status")"
"""

UNAME = """#!/bin/sh
[ "$1" = -r ] && cat "$FAKE/kernel"
"""

# systemctl start/restart runs the boot script, as systemd does.
SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >>"$FAKE/calls"
case $1 in
show)
    case "$*" in
    *containerd.service*) [ ! -e "$FAKE/show-containerd" ] || exec cat "$FAKE/show-containerd" ;;
    esac
    [ ! -e "$FAKE/show" ] || cat "$FAKE/show"
    ;;
is-active)
    shift
    for unit in "$@"; do
        case $unit in
        npuops-reboot.service) [ -e "$FAKE/reboot" ] && echo active || echo inactive ;;
        *) cat "$FAKE/state" ;;
        esac
    done
    ;;
is-system-running) [ -e "$FAKE/stopping" ] && echo stopping || echo running ;;
start | restart)
    sh "$NPU_HOST_ROOT/var/lib/npuops/bin/npu-driver" load
    status=$?
    [ "$status" = 0 ] && echo active >"$FAKE/state" || echo failed >"$FAKE/state"
    exit "$status"
    ;;
enable)
    mkdir -p "$NPU_HOST_ROOT/etc/systemd/system/multi-user.target.wants"
    ln -s "../$2" "$NPU_HOST_ROOT/etc/systemd/system/multi-user.target.wants/$2"
    ;;
disable) rm -f "$NPU_HOST_ROOT/etc/systemd/system/multi-user.target.wants/$3" ;;
esac
"""

# A transient unit exists once. A reboot that is queued ends with its boot.
SYSTEMD_RUN = """#!/bin/sh
echo "systemd-run" $* >>"$FAKE/calls"
[ ! -e "$FAKE/reboot" ] || { echo "Failed to start transient service unit: Unit npuops-reboot.service already exists." >&2; exit 1; }
[ ! -e "$FAKE/fail-systemd-run" ] || { echo "Failed to create bus connection: No such file or directory" >&2; exit 1; }
touch "$FAKE/reboot"
"""


def add_process(fs, pid, name, *argv, **facts):
    """A process of the host below ``fs``: root's, with systemd's namespaces. ``facts``: exe, namespace, cgroup, cwd, uid."""
    directory = os.path.join(fs, "proc", str(pid))
    os.makedirs(os.path.join(directory, "ns"))
    for own in ("self/ns", "1/ns"):
        os.makedirs(os.path.join(fs, "proc", own), exist_ok=True)
    links = {"exe": facts.get("exe") or argv[0], "cwd": facts.get("cwd", "/srv"), "root": "/"}
    for kind in ("pid", "mnt"):
        links["ns/" + kind] = facts.get("namespace", kind + ":[1]")
        links["../1/ns/" + kind] = kind + ":[1]"
    for link, target in links.items():
        path = os.path.join(directory, link)
        if not os.path.lexists(path):
            os.symlink(target, path)
    uid = facts.get("uid", 0)
    texts = {
        "comm": name + "\n",
        "cmdline": "\0".join(argv) + "\0",
        "cgroup": facts.get("cgroup", ""),
        "status": "Name:\t%s\nUid:\t%d\t%d\t%d\t%d\n" % (name, uid, uid, uid, uid),
    }
    for file, text in texts.items():
        with open(os.path.join(directory, file), "w", encoding="utf-8") as stream:
            stream.write(text)


@contextlib.contextmanager
def listening(path):
    """This very process listens on the socket ``path``; a process of the host has to have its ID then."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(8)
        yield os.getpid()


FILES = str(CHECKOUT / "roles" / "npu_driver" / "files")


class Host:
    """A host whose / is the directory ``fs``."""

    def __init__(self, path):
        self.fs = str(path / "host")
        self.fake = str(path / "fake")
        self.bin = str(path / "bin")
        for directory in (self.fake, self.bin):
            os.makedirs(directory)
        for directory in ("dev", "run/systemd/system", "etc/systemd/system", "lib", "sys/module", "sys/bus/pci/devices"):
            os.makedirs(os.path.join(self.fs, directory))
        self.write("etc/os-release", 'ID=openEuler\nVERSION_ID="24.03"\nVERSION="24.03 (LTS-SP3)"\n')
        self.boot(kernel=KERNEL)
        programs = {
            "insmod": INSMOD,
            "modprobe": MODPROBE,
            "systemctl": SYSTEMCTL,
            "systemd-run": SYSTEMD_RUN,
            "uname": UNAME,
        }
        for name, text in programs.items():
            self.program(os.path.join(self.bin, name), text)
        self.set("chips", "0")
        self.set("state", "inactive")
        self.env = dict(os.environ, PATH=self.bin + ":" + os.environ["PATH"], NPU_HOST_ROOT=self.fs, FAKE=self.fake)
        self.root = os.path.join(self.fs, "var/lib/Ascend")

    def write(self, path, text):
        path = os.path.join(self.fs, path.lstrip("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def read(self, path):
        with open(os.path.join(self.fs, path.lstrip("/")), encoding="utf-8") as stream:
            return stream.read()

    def exists(self, path):
        return os.path.lexists(os.path.join(self.fs, path.lstrip("/")))

    def json(self, path):
        return json.loads(self.read(path))

    def program(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(path, 0o755)

    def set(self, name, text=""):
        with open(os.path.join(self.fake, name), "w", encoding="utf-8") as stream:
            stream.write(text)

    def unset(self, name):
        os.unlink(os.path.join(self.fake, name))

    @property
    def calls(self):
        try:
            with open(os.path.join(self.fake, "calls"), encoding="utf-8") as stream:
                return stream.read().splitlines()
        except FileNotFoundError:
            return []

    def forget_calls(self):
        self.set("calls")

    def boot(self, kernel=None, boot_id="boot-1"):
        """A new boot: /run, /dev and /sys/module are fresh."""
        for top in ("run", "dev", "sys/module"):
            for directory, names, files in os.walk(os.path.join(self.fs, top), topdown=False):
                for name in files:
                    os.unlink(os.path.join(directory, name))
                for name in names:
                    os.rmdir(os.path.join(directory, name))
        os.makedirs(os.path.join(self.fs, "run/systemd/system"))
        self.write("proc/sys/kernel/random/boot_id", boot_id + "\n")
        if kernel:
            self.set("kernel", kernel + "\n")
        self.set("state", "inactive")
        for name in ("reboot", "stopping"):
            if os.path.exists(os.path.join(self.fake, name)):
                self.unset(name)

    def function(self, address, device="0xd802", subsystem="0x3003", vendor="0x19e5", device_class="0x120000", vf=False):
        """A PCI function."""
        directory = "sys/bus/pci/devices/%s/" % address
        for name, value in (
            ("vendor", vendor),
            ("class", device_class),
            ("device", device),
            ("subsystem_device", subsystem),
        ):
            self.write(directory + name, value + "\n")
        if vf:
            os.symlink("../0000:00:00.0", os.path.join(self.fs, directory + "physfn"))

    def kunpeng(self):
        """What the CPU of an Ascend server has on the bus: its compression engines look like chips (lspci -Dn)."""
        for line in (FIXTURES / "pci" / "kunpeng-920.txt").read_text().splitlines():
            address, device_class, ids = line.split()[:3]
            vendor, device = ids.split(":")
            self.function(address, "0x" + device, "0x0000", "0x" + vendor, "0x%s00" % device_class[:4])

    def chips(self, count):
        """``count`` 910B chips that npu-smi lists once they are up."""
        self.kunpeng()
        for index in range(count):
            self.function("0000:c%d:00.0" % index)
        self.set("chips", str(count))
        self.npu_smi(count)

    def npu_smi(self, count, status=0, health="OK"):
        lines = [
            "+------+",
            "| npu-smi 25.5.0                   Version: 25.5.0                                               |",
            "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|",
            "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |",
        ]
        for index in range(count):
            lines.append("| %d     910B3 | %s | 93.6        40                0    / 0 |" % (index, health))
            lines.append("| 0            | 0000:C%d:00.0  | 0           0    / 0          3161 / 65536 |" % index)
        self.set("npu-smi.out", "\n".join(lines) + "\n")
        self.set("npu-smi.status", str(status))

    def release(self, letter, kernel=KERNEL, version="25.5.0", plan=None, complete=True):
        """A staged release; returns its name."""
        name = "%s-%s-%s" % (version, kernel, DIGESTS[letter])
        tree = "var/lib/Ascend/releases/%s/driver/" % name
        self.write(tree + "version.info", "Version=%s\n" % version)
        self.write(tree + "lib64/driver/libdcmi.so", "")
        for module in ("drv_seclib_host", "drv_vascend", "drv_pcie_host", "drv_pcie_hdc_host"):
            self.write(tree + "host/%s.ko" % module, "")
        self.program(os.path.join(self.fs, tree + "tools/npu-smi"), NPU_SMI)
        self.write(
            tree + "modules.load",
            plan
            or "modprobe fat required\n"
            "insmod host/drv_seclib_host.ko required\n"
            "insmod host/drv_vascend.ko optional\n"
            "insmod host/drv_pcie_host.ko required\n"
            "insmod host/drv_pcie_hdc_host.ko required\n",
        )
        if complete:
            manifest = {"version": version, "kernel": kernel, "digest": "sha256:" + DIGESTS[letter] * 5 + "0000"}
            self.write("var/lib/Ascend/releases/%s/manifest.json" % name, json.dumps(manifest))
        return name

    def link(self, link, name):
        os.makedirs(self.root, exist_ok=True)
        os.symlink("releases/%s/driver" % name, os.path.join(self.root, link))

    def links(self):
        """What each link names, as a dict without those that are not there."""
        found = {}
        for link in ("driver", "good", "next", "previous"):
            path = os.path.join(self.root, link)
            if os.path.islink(path):
                found[link] = os.readlink(path).split("/")[1]
        return found

    def boot_files(self):
        """The scripts and units as the role passes them."""
        files = []
        for name in ("npu-driver-select", "npu-driver", "npu-driver-select.service", "npu-driver.service"):
            with open(os.path.join(FILES, name), encoding="utf-8") as stream:
                content = stream.read()
            directory = "/etc/systemd/system/" if name.endswith(".service") else "/var/lib/npuops/bin/"
            mode = "0644" if name.endswith(".service") else "0755"
            files.append({"path": directory + name, "content": content, "mode": mode})
        return files

    def modes(self, path):
        return stat.S_IMODE(os.stat(os.path.join(self.fs, path.lstrip("/"))).st_mode)
