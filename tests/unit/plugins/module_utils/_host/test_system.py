# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._activation import driver_paths
from ansible_collections.npuops.ascend.plugins.module_utils._host import system as host_system
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import mounted

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("useradd", path="/usr/sbin:/usr/bin:/sbin"), reason="needs root and useradd"
)


def split(steps):
    steps = list(steps)
    return (
        [step for step in steps if isinstance(step, host_system.Change)],
        [step.text for step in steps if isinstance(step, host_system.Missing)],
    )


def entries(host, path):
    return {line.split(":")[0]: line.split(":") for line in host.read(path).splitlines()}


@pytest.fixture
def accounts(host):
    host.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
    host.write("etc/group", "root:x:0:\n")
    host.write("etc/shadow", "root:*:1::::::\n")
    host.write("etc/gshadow", "root:*::\n")
    os.makedirs(host.fs + "/home")
    return host


@needs_root
def test_users_are_made_once(accounts):
    changes, missing = split(host_system.accounts(accounts.fs))
    assert missing == [] and len(changes) == 4
    for change in changes:
        change.apply()
    users, groups = entries(accounts, "etc/passwd"), entries(accounts, "etc/group")
    assert users["HwHiAiUser"][2:4] == ["1000", "1000"]
    assert users["hwMindX"][2:4] == ["9000", "9000"]
    assert users["hwMindX"][6].endswith("nologin")
    assert groups["HwHiAiUser"][2:] == ["1000", "hwMindX"]
    assert split(host_system.accounts(accounts.fs)) == ([], [])


@needs_root
def test_missing_membership_is_added(accounts):
    for change in split(host_system.accounts(accounts.fs))[0]:
        change.apply()
    text = accounts.read("etc/group").replace("HwHiAiUser:x:1000:hwMindX", "HwHiAiUser:x:1000:")
    accounts.write("etc/group", text)
    accounts.write("etc/gshadow", accounts.read("etc/gshadow").replace("HwHiAiUser:!::hwMindX", "HwHiAiUser:!::"))
    changes, missing = split(host_system.accounts(accounts.fs))
    assert [change.reason for change in changes] == ["add hwMindX to the group HwHiAiUser"] and not missing
    changes[0].apply()
    assert entries(accounts, "etc/group")["HwHiAiUser"][3] == "hwMindX"


def test_id_that_belongs_to_somebody_else(accounts):
    accounts.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
    accounts.write("etc/group", "root:x:0:\nubuntu:x:1000:\nweb:x:9000:\n")
    changes, missing = split(host_system.accounts(accounts.fs))
    assert changes == []
    assert "UID 1000 belongs to the user ubuntu" in missing[0] and "device nodes belong to root alone" in missing[0]
    assert "GID 9000 belongs to the group web" in missing[1]


def test_user_with_other_ids_is_left_as_it_is(accounts):
    accounts.write("etc/passwd", "HwHiAiUser:x:1001:1002::/home/HwHiAiUser:/bin/bash\n")
    accounts.write("etc/group", "HwHiAiUser:x:1002:\n")
    missing = split(host_system.accounts(accounts.fs))[1]
    assert "UID 1001 and GID 1002" in missing[0]


def test_host_without_useradd(accounts, monkeypatch):
    monkeypatch.setenv("PATH", accounts.bin)
    monkeypatch.setattr(host_system, "_BIN", accounts.bin)
    changes, missing = split(host_system.accounts(accounts.fs))
    assert changes == [] and all("no useradd" in text for text in missing) and len(missing) == 2


def test_log_directories(host):
    changes, missing = split(host_system.log_directories(["device_plugin", "exporter"], host.fs))
    assert missing == []
    for change in changes:
        change.apply()
    assert host.modes("var/log/mindx-dl") == 0o755
    assert host.modes("var/log/mindx-dl/devicePlugin") == 0o750
    assert host.modes("var/log/mindx-dl/npu-exporter") == 0o750
    assert split(host_system.log_directories(["device_plugin", "exporter"], host.fs)) == ([], [])


def test_log_directories_of_enabled_components_only(host):
    for change in split(host_system.log_directories(["exporter"], host.fs))[0]:
        change.apply()
    assert not host.exists("var/log/mindx-dl/devicePlugin")
    assert split(host_system.log_directories([], host.fs)) == ([], [])


def test_wrong_mode_is_repaired(host):
    os.makedirs(host.fs + "/var/log/mindx-dl/devicePlugin")
    os.chmod(host.fs + "/var/log/mindx-dl/devicePlugin", 0o777)
    os.chmod(host.fs + "/var/log/mindx-dl", 0o755)
    changes = split(host_system.log_directories(["device_plugin"], host.fs))[0]
    assert [change.reason for change in changes] == ["set the mode of /var/log/mindx-dl/devicePlugin to 0750"]
    changes[0].apply()
    assert host.modes("var/log/mindx-dl/devicePlugin") == 0o750


def test_file_in_place_of_a_log_directory(host):
    host.write("var/log/mindx-dl", "")
    with pytest.raises(NpuError, match="is not a directory"):
        list(host_system.log_directories(["exporter"], host.fs))


def test_paths_keep_what_the_firmware_wrote(host):
    host.write(
        "etc/ascend_install.info",
        "UserName=HwHiAiUser\nFirmware_Install_Path_Param=/usr/local/Ascend\nFirmware_Install_Type=full\n",
    )
    for change in split(driver_paths.driver_paths("/var/lib/Ascend", host.fs))[0]:
        change.apply()
    assert host.read("lib/davinci.conf") == "DAVINCI_HOME_PATH=/var/lib/Ascend\n"
    info = dict(line.split("=") for line in host.read("etc/ascend_install.info").splitlines())
    assert info["Firmware_Install_Path_Param"] == "/usr/local/Ascend"
    assert info["Driver_Install_Path_Param"] == "/var/lib/Ascend"
    assert info["Driver_Install_Status"] == "complete"
    assert split(driver_paths.driver_paths("/var/lib/Ascend", host.fs)) == ([], [])


def test_read_only_lib_is_told_with_its_cost(host):
    """A real read-only mount, as on an immutable host."""
    program = (
        "from ansible_collections.npuops.ascend.plugins.module_utils._activation import driver_paths\n"
        "for step in driver_paths.driver_paths('/var/lib/Ascend', %r): print(step[0])"
    ) % host.fs
    told, change = mounted.output_of(["-t", "tmpfs", "-o", "ro", "none", host.fs + "/lib"], program).splitlines()
    assert told.startswith("/lib/davinci.conf cannot be written") and "do not start" in told
    assert change == "write /etc/ascend_install.info"


def test_library_path(host):
    os.makedirs(host.fs + "/etc/ld.so.conf.d")
    changes = split(driver_paths.library_path("/var/lib/Ascend", host.fs))[0]
    changes[0].apply()
    assert host.read("etc/ld.so.conf.d/ascend_driver_so.conf").splitlines() == [
        "/var/lib/Ascend/driver/lib64/common",
        "/var/lib/Ascend/driver/lib64/driver",
        "/var/lib/Ascend/driver/lib64",
    ]
    assert split(driver_paths.library_path("/var/lib/Ascend", host.fs)) == ([], [])
