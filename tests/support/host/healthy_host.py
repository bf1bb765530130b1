# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in a directory on which everything is in order, for what looks at all of it. Device nodes need root."""

from __future__ import annotations

import json
import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_tool
from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec, containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import host_validation

RELEASE = "25.5.0-5.10.0-0123456789ab"
BOOT = "7d0ee3a4-0000-0000-0000-000000000000"
LINE = "+-----------------------------------------+---------------+---------------------+\n"


class Daemon:
    """containerd, as far as the checks look."""

    address = "/run/containerd/containerd.sock"
    on = True

    def dump(self):
        return containerd_config.Dump(
            '[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = %s\ncdi_spec_dirs = ["/etc/cdi"]\n' % str(self.on).lower()
        )


class HealthyHost:
    """A / with two 910B chips and everything in order."""

    def __init__(self, root):
        self.root = root
        self.daemon = Daemon()
        self.health = ["OK", "OK"]
        for bus, device in (("00", "d802"), ("01", "d802"), ("75", "a250")):
            self.function("0000:%s:00.0" % bus, device)
        for minor, name in enumerate(("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc")):
            self.node(name, minor)
        tree = "var/lib/Ascend/releases/%s/driver" % RELEASE
        self.write(tree + "/version.info", "Version=25.5.0\ncompatible_version_fw=[7.0.0,7.8.99]\n")
        self.write(tree + "/lib64/driver/libdcmi.so", "")
        self.write("var/lib/Ascend/releases/%s/manifest.json" % RELEASE, "{}")
        for link in ("driver", "good"):
            os.symlink("releases/%s/driver" % RELEASE, root / "var/lib/Ascend" / link)
        self.write("sys/module/drv_pcie_host/version", "25.5.0\n")
        self.write("sys/module/drv_pcie_host/initstate", "live\n")
        self.write("proc/sys/kernel/random/boot_id", BOOT + "\n")
        self.write("run/npuops/driver-loading", RELEASE + "\n")
        self.marker()
        self.firmware("7.8.0.6.201")
        self.spec()
        for name in cdi_spec.HOOK_PROGRAMS:
            self.write("usr/sbin/" + name, "").chmod(0o755)
        self.write(cdi_spec.HOOK.lstrip("/"), "#!/bin/sh\n").chmod(0o755)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def function(self, address, device):
        for name, value in (("vendor", "19e5"), ("class", "120000"), ("device", device), ("subsystem_device", "3003")):
            self.write("sys/bus/pci/devices/%s/%s" % (address, name), "0x%s\n" % value)

    def node(self, name, minor):
        (self.root / "dev").mkdir(exist_ok=True)
        os.mknod(self.root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.chmod(self.root / "dev" / name, 0o666)

    def marker(self, **changes):
        marker = dict({"boot_id": BOOT, "release": RELEASE, "version": "25.5.0"}, **changes)
        self.write("run/npuops/driver-ready", json.dumps(marker))

    def firmware(self, version):
        self.npu_smi('if [ "$2" = -t ]; then echo "Firmware Version : %s"; else cat <<E\n%sE\nfi\n' % (version, self.table()))

    def table(self, version="25.5.0", chips=None):
        text = LINE + "| npu-smi %s    Version: %s |\n" % (version, version) + LINE
        text += "| NPU   Name | Health | Power(W) Temp(C) |\n| Chip | Bus-Id | AICore(%) Memory-Usage(MB) |\n" + LINE
        for number, health in enumerate(self.health if chips is None else chips):
            text += "| %d 910B3 | %s | 90 40 |\n| 0 | 0000:0%d:00.0 | 0 0 / 0 |\n" % (number, health, number) + LINE
        return text

    def npu_smi(self, script):
        self.write("var/lib/Ascend/driver/tools/npu-smi", "#!/bin/sh\n" + script).chmod(0o755)

    def spec(self):
        fs = str(self.root)
        document = cdi_spec.spec(cdi_spec.look(fs), "/var/lib/Ascend", fs=fs)
        self.write("etc/cdi/huawei.com-npu.json", cdi_spec.text(document))

    @property
    def tools(self):
        """Options of a Validation: npu-smi and hccn_tool of this host."""
        tree, run = "%s/var/lib/Ascend/driver" % self.root, "%s/run/npuops" % self.root
        return {
            "npu_smi": chips_npu_smi.NpuSmi(tree, 2, lock=run + "/npu-smi.lock", fallbacks=()),
            "hccn_tool": hccn_tool.HccnTool(tree, lock=run + "/hccn-tool.lock"),
        }

    def validate(self, **options):
        options.setdefault("root", "/var/lib/Ascend")
        validation = host_validation.Validation(fs=str(self.root), **self.tools, **options)
        validation.run(lambda: self.daemon)
        return validation
