# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot scripts, run for real by every shell there is, on a host below a temporary directory."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process

from support.host.fake_host import FILES, KERNEL, NPU_SMI, Host
from support.patience import PATIENCE

# Each shell there is, once: sh is a link to one of the others.
SHELLS = list(
    {
        os.path.realpath(shutil.which(shell[0])): shell
        for shell in (["bash", "--posix"], ["busybox", "sh"], ["dash"], ["sh"])
        if shutil.which(shell[0])
    }.values()
)
CLOCK_THAT_JUMPS = """#!/bin/sh
year=$(cat "$FAKE/year" 2>/dev/null || echo 1)
echo $((year + 1)) >"$FAKE/year"
echo $((year * 31536000))
"""
OTHER_KERNEL = "6.6.0-145.0.4.135.oe2403sp3.x86_64"


def run(host, script, *arguments, shell=("sh",), env=None, timeout=PATIENCE):
    return subprocess.run(
        list(shell) + [os.path.join(FILES, script)] + list(arguments),
        env=dict(host.env, **(env or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        text=True,
        check=False,
    )


# Seconds in which an npu-smi that answers has answered, also in an emulator on a machine with much to do.
ANSWERS = 8


def conf(host, **settings):
    """The host's settings. What is to come gets all the time there is; a test of what does not come sets its limit."""
    settings = dict({"NPU_DEVICE_WAIT": PATIENCE, "NPU_SMI_WAIT": PATIENCE, "NPU_DRIVER_CHIP": "910b"}, **settings)
    host.write("var/lib/npuops/driver.conf", "".join("%s=%s\n" % item for item in settings.items()))


# --- npu-driver-select ---


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_next_becomes_driver(host, shell):
    old, new = host.release("a"), host.release("b")
    for link, name in (("driver", old), ("good", old), ("next", new)):
        host.link(link, name)
    result = run(host, "npu-driver-select", shell=shell)
    assert result.returncode == 0, result.stdout
    assert host.links() == {"driver": new, "good": old}
    assert host.json("run/npuops/maintenance") == {"generation": 0}
    assert host.json("var/lib/npuops/trial") == {"generation": 0, "release": new, "boot_id": "boot-1"}


def test_maintenance_of_a_trial_keeps_its_generation(host):
    old, new = host.release("a"), host.release("b")
    for link, name in (("driver", old), ("good", old), ("next", new)):
        host.link(link, name)
    host.write("var/lib/npuops/maintenance", '{"generation": 7}\n')
    run(host, "npu-driver-select")
    assert host.json("run/npuops/maintenance") == {"generation": 7}
    assert host.json("var/lib/npuops/trial") == {"generation": 7, "release": new, "boot_id": "boot-1"}


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_unconfirmed_trial_ends_by_itself(host, shell):
    old, new = host.release("a"), host.release("b")
    host.link("driver", new)
    host.link("good", old)
    assert run(host, "npu-driver-select", shell=shell).returncode == 0
    assert host.links() == {"driver": old, "good": old}
    assert not host.exists("run/npuops/maintenance")
    assert not host.exists("var/lib/npuops/trial")


def test_confirmed_driver_stays(host):
    name = host.release("a")
    host.link("driver", name)
    host.link("good", name)
    before = os.lstat(os.path.join(host.root, "driver")).st_ino
    assert run(host, "npu-driver-select").returncode == 0
    assert os.lstat(os.path.join(host.root, "driver")).st_ino == before


def test_very_first_driver_stays_without_good(host):
    name = host.release("a")
    host.link("driver", name)
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links() == {"driver": name}


def test_nothing_staged(host):
    result = run(host, "npu-driver-select")
    assert result.returncode == 0
    assert "no complete release to select" in result.stdout
    assert host.links() == {}


def test_missing_driver_comes_back_from_good(host):
    name = host.release("a")
    host.link("good", name)
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links() == {"driver": name, "good": name}


def test_dangling_good_does_not_take_the_driver_away(host):
    name = host.release("a")
    host.link("driver", name)
    host.link("good", "25.5.0-gone-cccccccccccc")
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links()["driver"] == name


@pytest.mark.parametrize("state", ["gone", "incomplete"])
def test_next_without_a_complete_release_is_removed(host, state):
    name = host.release("a")
    broken = host.release("b", complete=False) if state == "incomplete" else "25.5.0-gone-cccccccccccc"
    for link, target in (("driver", name), ("good", name), ("next", broken)):
        host.link(link, target)
    result = run(host, "npu-driver-select")
    assert "removed" in result.stdout
    assert host.links() == {"driver": name, "good": name}
    assert not host.exists("run/npuops/maintenance")


@pytest.mark.parametrize("with_next", [True, False])
def test_empty_directory_in_place_of_the_link(host, with_next):
    """containerd creates one for a hostPath that does not exist yet."""
    name = host.release("a")
    host.link("next" if with_next else "good", name)
    os.mkdir(os.path.join(host.root, "driver"))
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links()["driver"] == name


def test_directory_with_data_is_left_alone(host):
    host.link("good", host.release("a"))
    host.write("var/lib/Ascend/driver/data", "precious")
    result = run(host, "npu-driver-select")
    assert result.returncode == 1
    assert "not changed" in result.stdout
    assert host.read("var/lib/Ascend/driver/data") == "precious"


def test_absolute_link_of_a_person_is_understood(host):
    old, new = host.release("a"), host.release("b")
    host.link("driver", old)
    os.symlink("/var/lib/Ascend/releases/%s/driver" % new, os.path.join(host.root, "good"))
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links()["driver"] == new


def test_link_out_of_the_releases_is_not_followed(host):
    name = host.release("a")
    host.link("driver", name)
    os.symlink("releases/../../../../etc/driver", os.path.join(host.root, "good"))
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links()["driver"] == name


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_kernel_changed_and_its_release_is_staged(host, shell):
    old = host.release("a")
    new = host.release("b", kernel=OTHER_KERNEL)
    host.release("c", kernel=OTHER_KERNEL, version="25.5.1")
    host.link("driver", old)
    host.link("good", old)
    host.boot(kernel=OTHER_KERNEL)
    assert run(host, "npu-driver-select", shell=shell).returncode == 0
    assert host.links() == {"driver": new, "good": old}
    # and it stays so
    inode = os.lstat(os.path.join(host.root, "driver")).st_ino
    assert run(host, "npu-driver-select", shell=shell).returncode == 0
    assert os.lstat(os.path.join(host.root, "driver")).st_ino == inode


def test_kernel_changed_together_with_the_upgrade(host):
    old = host.release("a")
    planned = host.release("b", version="25.5.1")
    fitting = host.release("c", version="25.5.1", kernel=OTHER_KERNEL)
    for link, name in (("driver", old), ("good", old), ("next", planned)):
        host.link(link, name)
    host.boot(kernel=OTHER_KERNEL)
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links() == {"driver": fitting, "good": old}
    assert host.exists("run/npuops/maintenance")
    assert host.json("var/lib/npuops/trial")["release"] == fitting


def test_kernel_changed_and_the_newest_of_two_counts(host):
    old = host.release("a")
    newest = host.release("b", kernel=OTHER_KERNEL)
    older = host.release("c", kernel=OTHER_KERNEL)
    os.utime(os.path.join(host.root, "releases", older, "manifest.json"), (1000, 1000))
    host.link("good", old)
    host.boot(kernel=OTHER_KERNEL)
    run(host, "npu-driver-select")
    assert host.links()["driver"] == newest


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_kernel_whose_name_begins_like_another(host, shell):
    """6.6.0 runs, and the release is for 6.6.0-145."""
    name = host.release("a", kernel="6.6.0-145")
    host.link("driver", name)
    host.link("good", name)
    host.boot(kernel="6.6.0")
    result = run(host, "npu-driver-select", shell=shell)
    assert "of its version is for kernel 6.6.0\n" in result.stdout
    fitting = host.release("b", kernel="6.6.0")
    run(host, "npu-driver-select", shell=shell)
    assert host.links() == {"driver": fitting, "good": name}


def test_back_in_the_kernel_of_before(host):
    """The new kernel was a mistake: its driver has not become good by itself."""
    old = host.release("a")
    new = host.release("b", kernel=OTHER_KERNEL)
    host.link("driver", old)
    host.link("good", old)
    for kernel, name in ((OTHER_KERNEL, new), (KERNEL, old)):
        host.boot(kernel=kernel)
        run(host, "npu-driver-select")
        assert host.links() == {"driver": name, "good": old}


def test_a_trial_that_failed_in_a_new_kernel_returns_to_good_there(host):
    old, old_there = host.release("a"), host.release("a", kernel=OTHER_KERNEL)
    planned = host.release("b", version="25.5.1")
    there = host.release("b", version="25.5.1", kernel=OTHER_KERNEL)
    for link, name in (("driver", old), ("good", old), ("next", planned)):
        host.link(link, name)
    for boot_id, name in (("boot-2", there), ("boot-3", old_there)):
        host.boot(kernel=OTHER_KERNEL, boot_id=boot_id)
        run(host, "npu-driver-select")
        assert host.links() == {"driver": name, "good": old}


def test_kernel_changed_and_nothing_is_staged(host):
    name = host.release("a")
    host.link("driver", name)
    host.link("good", name)
    host.boot(kernel=OTHER_KERNEL)
    result = run(host, "npu-driver-select")
    assert result.returncode == 0
    assert "of its version is for kernel " + OTHER_KERNEL in result.stdout
    assert host.links() == {"driver": name, "good": name}


def test_links_stay_while_a_driver_is_loaded(host):
    old, new = host.release("a"), host.release("b")
    for link, name in (("driver", old), ("good", old), ("next", new)):
        host.link(link, name)
    host.write("sys/module/drv_pcie_host/initstate", "live\n")
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links() == {"driver": old, "good": old, "next": new}


def test_preinstalled_changes_no_link(host):
    old, new = host.release("a"), host.release("b")
    host.link("driver", old)
    host.link("good", new)
    conf(host, NPU_DRIVER_SOURCE="preinstalled")
    assert run(host, "npu-driver-select").returncode == 0
    assert host.links() == {"driver": old, "good": new}


# A power cut: the program that changes something is the last thing that ran, or did not run any more.
CUT = """#!/bin/sh
count=$(($(cat "$FAKE/count") + 1))
echo "$count" >"$FAKE/count"
[ "$count" = "$CUT_AT" ] && [ "$CUT_WHEN" = before ] && kill -9 $PPID
[ "$count" = "$CUT_AT" ] && [ "$CUT_WHEN" = before ] && exit 1
%s "$@"
status=$?
[ "$count" = "$CUT_AT" ] && [ "$CUT_WHEN" = after ] && kill -9 $PPID
exit "$status"
"""

# The links before; what driver may name when the boot after the cut went through undisturbed; and what it may name after
# a further boot, when nothing was confirmed.
CUT_CASES = {
    "trial": ({"driver": "a", "good": "a", "next": "b"}, "ab", "a"),
    "trial over an empty directory": ({"driver": None, "good": "a", "next": "b"}, "ab", "a"),
    "very first trial": ({"next": "b"}, "b", "b"),
    "end of a trial": ({"driver": "b", "good": "a"}, "a", "a"),
    "first driver": ({"driver": "a"}, "a", "a"),
    "lost link": ({"good": "a"}, "a", "a"),
    "broken next": ({"driver": "a", "good": "a", "next": "gone"}, "a", "a"),
    "kernel changed": ({"driver": "k", "good": "k"}, "ab", "ab"),
    "kernel changed in an upgrade": ({"driver": "k", "good": "k", "next": "m"}, "abc", "ab"),
}


def set_up_cut(host, case):
    names = {
        "a": host.release("a"),
        "b": host.release("b"),
        "c": host.release("c", version="25.5.1"),
        "k": host.release("a", kernel=OTHER_KERNEL),
        "m": host.release("b", kernel=OTHER_KERNEL, version="25.5.1"),
        "gone": "25.5.0-gone-cccccccccccc",
    }
    for link, letter in CUT_CASES[case][0].items():
        if letter:
            host.link(link, names[letter])
        elif link == "driver":
            os.mkdir(os.path.join(host.root, "driver"))
    return names


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("case", CUT_CASES)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_power_cut_at_each_change(tmp_path, case, when, shell):
    cuts = 0
    for cut_at in range(1, 30):
        host = Host(tmp_path / str(cut_at))
        names = set_up_cut(host, case)
        before = host.links().get("driver")
        for name in ("mv", "ln", "rm", "rmdir", "mkdir", "sync"):
            host.program(os.path.join(host.bin, name), CUT % shutil.which(name))
        host.set("count", "0")
        result = run(host, "npu-driver-select", shell=shell, env={"CUT_AT": str(cut_at), "CUT_WHEN": when})
        was_cut = result.returncode == -9
        cuts += was_cut
        one_boot_later, two_boots_later = ({names[letter] for letter in letters} for letters in CUT_CASES[case][1:])
        # Right after the cut the link is the old one or a new one.
        now = host.links().get("driver")
        assert now == before or now in one_boot_later, (cut_at, host.links())
        for boot_id, allowed in (("boot-2", one_boot_later), ("boot-3", two_boots_later)):
            host.boot(boot_id=boot_id)
            assert run(host, "npu-driver-select", shell=shell, env={"CUT_AT": "0"}).returncode == 0
            assert host.links()["driver"] in allowed, (cut_at, host.links())
            assert os.path.isfile(os.path.join(host.root, "driver", "version.info"))
            assert "next" not in host.links()
        if not was_cut:
            break
    else:
        pytest.fail("never ran to its end")
    assert cuts >= (0 if case == "first driver" else 1)


# --- npu-driver ---


@pytest.fixture
def ready_host(host):
    """Two chips and a release that driver names."""
    host.chips(2)
    host.name = host.release("a")
    host.link("driver", host.name)
    conf(host)
    return host


def reason(host):
    return host.json("run/npuops/driver-failed")["reason"]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_load(ready_host, shell):
    result = run(ready_host, "npu-driver", "load", shell=shell)
    assert result.returncode == 0, result.stdout
    assert ready_host.calls == [
        "modprobe fat",
        "insmod drv_seclib_host",
        "insmod drv_vascend",
        "insmod drv_pcie_host",
        "insmod drv_pcie_hdc_host",
        "npu-smi info",
    ]
    assert ready_host.json("run/npuops/driver-ready") == {
        "boot_id": "boot-1",
        "source": "image",
        "release": ready_host.name,
        "version": "25.5.0",
    }
    assert not ready_host.exists("run/npuops/driver-failed")
    assert ready_host.modes("run/npuops/driver-ready") == 0o644


def test_load_again_only_looks(ready_host):
    run(ready_host, "npu-driver", "load")
    ready_host.forget_calls()
    ready_host.write("run/npuops/driver-suspended", "{}")
    assert run(ready_host, "npu-driver", "load").returncode == 0
    assert [call for call in ready_host.calls if not call.startswith("modprobe")] == ["npu-smi info"]
    assert ready_host.exists("run/npuops/driver-ready")
    assert not ready_host.exists("run/npuops/driver-suspended")


def test_suspended_driver_that_still_fails_stays_suspended(ready_host):
    run(ready_host, "npu-driver", "load")
    conf(ready_host, NPU_SMI_WAIT=ANSWERS)
    ready_host.npu_smi(0, status=187)
    os.rename(ready_host.fs + "/run/npuops/driver-ready", ready_host.fs + "/run/npuops/driver-suspended")
    assert run(ready_host, "npu-driver", "load").returncode == 1
    assert ready_host.exists("run/npuops/driver-suspended")
    assert not ready_host.exists("run/npuops/driver-ready")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_optional_module_may_fail(ready_host, shell):
    ready_host.set("fail-drv_vascend")
    result = run(ready_host, "npu-driver", "load", shell=shell)
    assert result.returncode == 0
    assert "because the module is optional" in result.stdout


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("module", ["fat", "drv_pcie_host"])
def test_module_that_must_load_fails(ready_host, module, shell):
    ready_host.set("fail-" + module)
    result = run(ready_host, "npu-driver", "load", shell=shell)
    assert result.returncode == 1
    assert module in reason(ready_host)
    assert re.search("not found|Invalid module format", reason(ready_host))
    assert ready_host.json("run/npuops/driver-failed")["boot_id"] == "boot-1"
    assert not ready_host.exists("run/npuops/driver-ready")
    # Nothing was loaded behind it.
    assert "insmod drv_pcie_hdc_host" not in ready_host.calls
    # A second start goes on where the first one stopped.
    ready_host.unset("fail-" + module)
    ready_host.forget_calls()
    assert run(ready_host, "npu-driver", "load", shell=shell).returncode == 0
    assert ready_host.calls[-1] == "npu-smi info"
    assert not ready_host.exists("run/npuops/driver-failed")


def test_release_for_another_kernel_is_not_loaded(ready_host):
    ready_host.boot(kernel=OTHER_KERNEL)
    result = run(ready_host, "npu-driver", "load")
    assert result.returncode == 1
    assert ready_host.calls == []
    said = reason(ready_host)
    assert KERNEL in said and OTHER_KERNEL in said and "25.5.0-910b-<kernel>-<os>" in said
    assert said in result.stdout


def test_no_release_is_chosen(host):
    host.chips(2)
    assert run(host, "npu-driver", "load").returncode == 1
    assert "does not exist: run npuops.ascend.install" in reason(host)


def test_incomplete_release_is_not_loaded(host):
    host.chips(2)
    host.link("driver", host.release("a", complete=False))
    assert run(host, "npu-driver", "load").returncode == 1
    assert "not a complete release" in reason(host)
    assert host.calls == []


def test_foreign_driver_is_left_alone(ready_host):
    ready_host.write("sys/module/drv_pcie_host/initstate", "live\n")
    ready_host.write("sys/module/drv_pcie_host/version", "24.1.0\n")
    assert run(ready_host, "npu-driver", "load").returncode == 1
    assert "another driver is already loaded" in reason(ready_host)
    assert "24.1.0" in reason(ready_host)
    assert ready_host.calls == []


def test_half_loaded_other_release_is_left_alone(ready_host):
    ready_host.write("sys/module/drv_seclib_host/initstate", "live\n")
    ready_host.write("run/npuops/driver-loading", "25.5.1-other-bbbbbbbbbbbb\n")
    assert run(ready_host, "npu-driver", "load").returncode == 1
    assert "drv_seclib_host" in reason(ready_host)
    assert ready_host.calls == []


def test_chip_without_a_device(ready_host):
    conf(ready_host, NPU_DEVICE_WAIT=1)
    ready_host.set("chips", "1")
    assert run(ready_host, "npu-driver", "load").returncode == 1
    assert "1 of 2 chips have a device" in reason(ready_host)


def test_no_chip_on_the_bus(host):
    host.function("0000:00:01.0", vendor="0x8086", device_class="0x060400")
    host.link("driver", host.release("a"))
    assert run(host, "npu-driver", "load").returncode == 1
    assert "no Ascend chip" in reason(host)


@pytest.mark.parametrize("device", [None, "0xd9ff"])
def test_accelerators_that_are_no_chips(host, device):
    host.kunpeng()
    if device:
        host.function("0000:01:00.0", device=device)
    conf(host)
    host.link("driver", host.release("a"))
    assert run(host, "npu-driver", "load").returncode == 1
    assert "no Ascend chip" in reason(host)


def test_device_ids_are_those_of_the_library(host):
    """The boot script has its own list, because no Python runs at boot. A device ID that cannot be read counts in both."""
    for number, device in enumerate(["", "0xd8", "0xd9ff", *("0x" + device for device in pci.FAMILIES)]):
        host.function("0000:%02x:00.0" % number, device=device)
    chips = pci.chip_count(pci.chip_functions(host.fs + "/sys/bus/pci/devices"))
    assert chips == len(pci.FAMILIES) + 2
    conf(host, NPU_DEVICE_WAIT=1)
    host.set("chips", "0")
    host.link("driver", host.release("a"))
    assert run(host, "npu-driver", "load").returncode == 1
    assert "0 of %d chips" % chips in reason(host)
    assert set(re.findall(r"\b0x(d[0-9a-f]{3})\b", pathlib.Path(FILES, "npu-driver").read_text())) == set(pci.FAMILIES)


def test_duo_counts_twice_and_virtual_functions_not(host):
    host.function("0000:01:00.0", device="0xd500", subsystem="0x0110")
    host.function("0000:02:00.0", device="0xd500", subsystem="0x0100")
    host.function("0000:02:10.0", device="0xd500", subsystem="0x0110", vf=True)
    host.function("0000:03:00.0", device="0xa222", device_class="0x020000")
    host.set("chips", "2")
    host.npu_smi(2)
    conf(host, NPU_DEVICE_WAIT=1)
    host.link("driver", host.release("a"))
    assert run(host, "npu-driver", "load").returncode == 1
    assert "2 of 3 chips" in reason(host)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_npu_smi_fails(ready_host, shell):
    conf(ready_host, NPU_SMI_WAIT=ANSWERS)
    ready_host.set("npu-smi.out", 'dcmi module initialize failed. ret is -8005\nand a "quote" \\ \t\n')
    ready_host.set("npu-smi.status", "187")
    assert run(ready_host, "npu-driver", "load", shell=shell).returncode == 1
    assert "status 187" in reason(ready_host)
    assert "ret is -8005" in reason(ready_host) and '"quote" \\' in reason(ready_host)


def test_npu_smi_lists_fewer_chips(ready_host):
    conf(ready_host, NPU_SMI_WAIT=ANSWERS)
    ready_host.npu_smi(1)
    assert run(ready_host, "npu-driver", "load").returncode == 1
    assert "lists 1 of 2 chips" in reason(ready_host)


def test_npu_smi_that_takes_its_time_is_not_taken_for_one_that_hangs(ready_host):
    """Less than it takes is left of the wait when it is asked for the last time."""
    conf(ready_host, NPU_SMI_WAIT=ANSWERS)
    smi = os.path.join(ready_host.root, "driver/tools/npu-smi")
    first = '#!/bin/sh\n[ -e "$FAKE/asked" ] && sleep %d\n: >"$FAKE/asked"\n' % (ANSWERS + 1)
    ready_host.program(smi, first + NPU_SMI)
    ready_host.npu_smi(1)
    assert run(ready_host, "npu-driver", "load").returncode == 1
    assert "lists 1 of 2 chips" in reason(ready_host)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_npu_smi_hangs(ready_host, shell):
    conf(ready_host, NPU_SMI_WAIT=1)
    ready_host.set("hang")
    assert run(ready_host, "npu-driver", "load", shell=shell).returncode == 1
    assert "hangs" in reason(ready_host)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_clock_that_is_set_at_boot_ends_no_wait(ready_host, shell):
    """NTP comes up: with each look it is a year later. npu-smi answers at its second try."""
    # Years pass with each look, but not PATIENCE by the clock that counts.
    ready_host.program(os.path.join(ready_host.bin, "date"), CLOCK_THAT_JUMPS)
    smi = os.path.join(ready_host.root, "driver/tools/npu-smi")
    ready_host.program(smi, '#!/bin/sh\n[ -e "$FAKE/asked" ] || { : >"$FAKE/asked"; exit 1; }\n' + NPU_SMI)
    result = run(ready_host, "npu-driver", "load", shell=shell)
    assert result.returncode == 0, result.stdout
    assert ready_host.exists("run/npuops/driver-ready")


@pytest.mark.skipif(not shutil.which("flock"), reason="needs flock of util-linux")
def test_no_second_npu_smi_beside_one_that_hangs(ready_host):
    conf(ready_host, NPU_SMI_WAIT=1)
    ready_host.write("run/npuops/npu-smi.lock", "")
    lock = os.path.join(ready_host.fs, "run/npuops/npu-smi.lock")
    os.chmod(lock, 0o600)
    with holding(lock):
        assert run(ready_host, "npu-driver", "load").returncode == 1
    assert "another npu-smi has been hanging" in reason(ready_host)
    assert "npu-smi info" not in ready_host.calls


@contextlib.contextmanager
def holding(path):
    """Another process, which could open ``path`` for reading, holds the lock on it."""
    with subprocess.Popen(["flock", "--shared", "--no-fork", path, "sleep", "60"]) as holder:
        try:
            while subprocess.run(["flock", "-n", path, "true"], check=False).returncode == 0:
                assert holder.poll() is None
            yield
        finally:
            holder.kill()


@pytest.mark.skipif(not shutil.which("flock"), reason="needs flock of util-linux")
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o606])
def test_a_lock_that_others_can_open_is_nobodys(ready_host, shell, mode):
    """Any process that opens it, even if only for reading, could hold it for ever, and the node would look wedged."""
    ready_host.write("run/npuops/npu-smi.lock", "")
    lock = os.path.join(ready_host.fs, "run/npuops/npu-smi.lock")
    os.chmod(lock, mode)
    with holding(lock):
        result = run(ready_host, "npu-driver", "load", shell=shell)
    assert result.returncode == 0, result.stdout
    assert os.stat(lock).st_mode & 0o7777 == 0o600


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("kind", ["nothing", "link", "second name", "pipe", "directory", "other owner"])
def test_the_lock_is_a_file_of_roots_alone(ready_host, shell, kind):
    directory = os.path.join(ready_host.fs, "run/npuops")
    lock, other = os.path.join(directory, "npu-smi.lock"), os.path.join(ready_host.fs, "other")
    os.makedirs(directory)
    os.chmod(directory, 0o777)
    with open(other, "w", encoding="ascii") as stream:
        stream.write("precious")
    make = {
        "nothing": lambda: None,
        "link": lambda: os.symlink(other, lock),
        "second name": lambda: (os.chmod(other, 0o600), os.link(other, lock)),
        "pipe": lambda: os.mkfifo(lock, 0o600),
        "directory": lambda: os.mkdir(lock),
        "other owner": lambda: (open(lock, "w").close(), os.chmod(lock, 0o600), os.geteuid() == 0 and os.chown(lock, 1, 1)),
    }
    make[kind]()
    result = run(ready_host, "npu-driver", "load", shell=shell)
    assert result.returncode == 0, result.stdout
    info = os.lstat(lock)
    assert stat.S_ISREG(info.st_mode) and info.st_mode & 0o7777 == 0o600 and info.st_uid == os.geteuid() and info.st_nlink == 1
    with open(other, encoding="ascii") as stream:
        assert stream.read() == "precious"
    assert os.stat(directory).st_mode & 0o022 == 0


# --- the network ports of the chips ---

HCCN_TOOL = """#!/bin/sh
echo "hccn_tool $*" >>"$FAKE/calls"
case ":$LD_LIBRARY_PATH:" in
*:*/lib64/driver:*/lib64/common:*) ;;
*) echo "hccn_tool: error while loading shared libraries" >&2; exit 127 ;;
esac
[ ! -e "$FAKE/port-hangs" ] || exec sleep 600
[ "$2" != "$(cat "$FAKE/port-fails" 2>/dev/null)" ] || { echo "Recovery failed. Check the log."; exit 1; }
"""
RECOVERIES = ["hccn_tool -i 0 -cfg recovery", "hccn_tool -i 1 -cfg recovery"]


@pytest.fixture
def host_with_ports(ready_host):
    ready_host.program(os.path.join(ready_host.root, "driver/tools/hccn_tool"), HCCN_TOOL)
    ready_host.write("etc/hccn.conf", "address_0=10.64.11.10\nnetmask_0=255.255.0.0\n")
    return ready_host


def recoveries(host):
    return sorted(call for call in host.calls if call.startswith("hccn_tool"))


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_addresses_come_back_after_a_boot(host_with_ports, shell):
    """Huawei's package installs a script that the kernel starts for this; a driver image does not."""
    result = run(host_with_ports, "npu-driver", "load", shell=shell)
    assert result.returncode == 0, result.stdout
    assert recoveries(host_with_ports) == RECOVERIES and "failed" not in result.stdout
    assert host_with_ports.exists("run/npuops/driver-ready")


def test_addresses_are_applied_once_for_each_boot(host_with_ports):
    """It interrupts jobs. So neither a second start of the unit does it, nor a first one by a later version of this script."""
    run(host_with_ports, "npu-driver", "load")
    host_with_ports.forget_calls()
    assert run(host_with_ports, "npu-driver", "load").returncode == 0
    assert recoveries(host_with_ports) == []


def test_addresses_are_applied_if_the_first_start_was_stopped(host_with_ports):
    conf(host_with_ports, NPU_SMI_WAIT=1)
    host_with_ports.npu_smi(0, status=187)
    assert run(host_with_ports, "npu-driver", "load").returncode == 1
    conf(host_with_ports)
    host_with_ports.npu_smi(2)
    assert run(host_with_ports, "npu-driver", "load").returncode == 0
    assert recoveries(host_with_ports) == RECOVERIES


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("fault, text", [("port-fails", "Recovery failed. Check the log."), ("port-hangs", "status 137")])
def test_a_port_that_fails_does_not_stop_the_driver(host_with_ports, fault, text, shell):
    conf(host_with_ports, NPU_PORT_WAIT=1 if fault == "port-hangs" else PATIENCE)
    host_with_ports.set(fault, "1")
    result = run(host_with_ports, "npu-driver", "load", shell=shell)
    assert result.returncode == 0, result.stdout
    assert text in result.stdout and "The port of chip 1 may have no address" in result.stdout
    assert ("chip 0 may" in result.stdout) == (fault == "port-hangs")
    assert host_with_ports.exists("run/npuops/driver-ready")
    assert [name for name in os.listdir(host_with_ports.fs + "/run/npuops") if "port" in name] == []


@pytest.mark.parametrize("content", [None, "", "\n \n", "# address_0=10.64.11.10\n"])
def test_without_addresses_nothing_is_applied(host_with_ports, content):
    os.unlink(host_with_ports.fs + "/etc/hccn.conf")
    if content is not None:
        host_with_ports.write("etc/hccn.conf", content)
    assert run(host_with_ports, "npu-driver", "load").returncode == 0
    assert recoveries(host_with_ports) == []


@pytest.mark.parametrize("script", ["npu-driver", "npu-driver-select"])
def test_no_boot_script_asks_the_clock(script):
    with open(os.path.join(FILES, script), encoding="utf-8") as stream:
        assert not re.search(r"\bdate\b|EPOCH|SECONDS", stream.read())


def test_preinstalled_is_probed_only(host):
    host.chips(2)
    host.write("usr/local/Ascend/driver/version.info", "Version=25.2.0\n")
    host.program(os.path.join(host.fs, "usr/local/sbin/npu-smi"), NPU_SMI)
    conf(host, NPU_DRIVER_SOURCE="preinstalled", NPU_DRIVER_ROOT="/usr/local/Ascend")
    for name in ("davinci0", "davinci1", "davinci_manager"):
        host.write("dev/" + name, "")
    result = run(host, "npu-driver", "load")
    assert result.returncode == 0, result.stdout
    assert host.calls == ["npu-smi info"]
    marker = host.json("run/npuops/driver-ready")
    assert (marker["source"], marker["version"], marker["release"]) == ("preinstalled", "25.2.0", "")


def test_ended_by_systemd_says_where(ready_host):
    ready_host.write("run/npuops/driver-step", "loading drv_pcie_host\n")
    run(ready_host, "npu-driver", "ended", env={"SERVICE_RESULT": "timeout"})
    assert "timeout" in reason(ready_host) and "loading drv_pcie_host" in reason(ready_host)


def test_ended_well_says_nothing(ready_host):
    os.makedirs(os.path.join(ready_host.fs, "run/npuops"))
    assert run(ready_host, "npu-driver", "ended", env={"SERVICE_RESULT": "success"}).returncode == 0
    assert not ready_host.exists("run/npuops/driver-failed")


# --- units ---


def unit(name):
    with open(os.path.join(FILES, name), encoding="utf-8") as stream:
        return stream.read()


def test_units_hold_up_nobody():
    select, load = unit("npu-driver-select.service"), unit("npu-driver.service")
    before = " ".join(re.findall("^Before=(.*)$", select, re.MULTILINE)).split()
    assert set(before) >= {unit for one in distributions.DISTRIBUTIONS for unit in one.units} | set(
        host_process.CONTAINERD_UNITS.values()
    )
    assert re.findall("^Before=(.*)$", load, re.MULTILINE) == ["shutdown.target"]
    for text in (select, load):
        assert "WantedBy=multi-user.target" in text
        assert not re.search("^(Requires|RequiredBy|BindsTo|Requisite)=", text, re.MULTILINE)
        assert re.search("^TimeoutStartSec=[0-9]+$", text, re.MULTILINE)
    # Otherwise multi-user.target would be ordered after the loading of the driver.
    assert "DefaultDependencies=no" in load


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs shellcheck")
@pytest.mark.parametrize("script", ["npu-driver", "npu-driver-select"])
def test_shellcheck(script):
    result = subprocess.run(["shellcheck", "-s", "sh", os.path.join(FILES, script)], stdout=subprocess.PIPE, check=False)
    assert result.returncode == 0, result.stdout.decode()
