# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's part of a maintenance, on a host below a temporary directory; boots run the real npu-driver-select."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import tempfile
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._activation import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts

from support.host.fake_host import FILES, KERNEL, Host
from support.host.hccn import Hccn, chips_of_host

ROOT = "/var/lib/Ascend"
WANTS = "etc/systemd/system/multi-user.target.wants/npu-driver-select.service"
OTHER_KERNEL = "6.6.0-145.0.4.135.oe2403sp3.x86_64"


def set_up(host):
    """A host whose driver a is loaded and good, with b staged; returns both names."""
    old, new = host.release("a"), host.release("b", version="25.5.1")
    for link in ("driver", "good"):
        host.link(link, old)
    host.write(WANTS, "")
    host.write("proc/uptime", "12.50 40.00\n")
    os.makedirs(os.path.join(host.fs, "run/npuops"))
    return old, new


@pytest.fixture
def npu_host(host):
    host.old, host.new = set_up(host)
    return host


def reboot(host, boot_id="boot-1", generation=1, release=None, **options):
    return trial_boot.reboot(ROOT, boot_id, generation, release, fs=host.fs, **options)


def next_kernel(host, kernel):
    """GRUB boots that kernel by default."""
    host.write("lib/modules/%s/modules.dep" % kernel, "")
    host.write("boot/grub2/grub.cfg", "menuentry 'os' {\n\tlinux /vmlinuz-%s ro\n}\n" % kernel)


def boot(host, boot_id, kernel=None):
    """What a boot does to the links."""
    host.boot(boot_id=boot_id, kernel=kernel)
    result = subprocess.run(
        ["sh", os.path.join(FILES, "npu-driver-select")],
        env=host.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "No such file" not in result.stdout


def reboots(host):
    return [call for call in host.calls if call.startswith("systemd-run")]


# --- One maintenance from its reboot to its confirmation ---


@pytest.mark.parametrize(("looks", "ready", "unit"), [(3, True, "activating"), (2, False, "failed"), (None, False, "activating")])
def test_waiting_until_the_driver_has_decided(npu_host, monkeypatch, looks, ready, unit):
    """Ready, failed, or the time is over; ``looks``: after how many, None: never."""
    clock = {"now": 0.0, "looks": 0}

    def look(*_arguments):
        clock["looks"] += 1
        return {"ready": {"release": "x"} if ready and clock["looks"] >= looks else None}

    monkeypatch.setattr(trial_boot.loaded_driver, "driver_facts", look)
    monkeypatch.setattr(trial_boot, "_state", lambda _unit: unit if not ready and clock["looks"] >= (looks or 0) else "activating")
    monkeypatch.setattr(trial_boot.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(trial_boot.time, "sleep", lambda seconds: clock.update(now=clock["now"] + seconds))
    trial_boot.wait_decided(ROOT, 30, npu_host.fs)
    assert (clock["looks"] == looks) if looks else (clock["now"] >= 30)


def test_view_of_a_host_at_rest(npu_host):
    seen = trial_boot.view(ROOT, npu_host.fs)
    assert seen == {
        "boot_id": "boot-1",
        "generation": 0,
        "driver": npu_host.old,
        "good": npu_host.old,
        "next": None,
        "previous": None,
        "releases": sorted([npu_host.old, npu_host.new]),
        "trial": None,
        "holders": [],
        "ready": None,
        "failed": None,
        "loaded_version": None,
        "unit": "inactive",
        "uptime": 12.5,
        "kernel": os.uname().release,
        "next_kernel": None,
        "going_down": False,
        "firmware": None,
    }


def test_view_with_the_chips(npu_host):
    npu_host.npu_smi(2, health="Alarm")
    assert [chip["health"] for chip in trial_boot.view(ROOT, npu_host.fs, chips=True)["chips"]] == ["Alarm", "Alarm"]
    npu_host.npu_smi(2, status=187)
    assert trial_boot.view(ROOT, npu_host.fs, chips=True)["chips"] is None


def test_view_with_the_network_ports(npu_host):
    assert trial_boot.view(ROOT, npu_host.fs, network=True)["ports"] is None
    chips_of_host(npu_host.fs, 2)
    for chip in range(2):
        npu_host.write("dev/davinci%d" % chip, "")
    hccn = Hccn(os.path.join(npu_host.root, "driver"), 2)
    hccn.answer(1, "link", "link status: DOWN\n")
    hccn.answer(1, "ip", "no ip was preset\n", fails=True)
    assert trial_boot.view(ROOT, npu_host.fs, network=True)["ports"] == {"0": "UP 10.20.0.10", "1": "DOWN -"}
    assert {call.split()[2] for call in hccn.calls} == {"-link", "-ip"}
    assert "ports" not in trial_boot.view(ROOT, npu_host.fs)


def test_reboot_into_a_trial_and_confirm_it(npu_host):
    result = reboot(npu_host, generation=3, release=npu_host.new)
    assert result == {"reason": "reboot, to try " + npu_host.new, "already": False, "queued": False, "held": []}
    assert npu_host.links() == {"driver": npu_host.old, "good": npu_host.old, "next": npu_host.new}
    assert npu_host.json("run/npuops/maintenance") == npu_host.json("var/lib/npuops/maintenance") == {"generation": 3}
    assert len(reboots(npu_host)) == 1 and reboots(npu_host)[0].endswith(" systemctl reboot")
    boot(npu_host, "boot-2")
    seen = trial_boot.view(ROOT, npu_host.fs)
    assert (seen["driver"], seen["good"], seen["next"], seen["generation"]) == (npu_host.new, npu_host.old, None, 3)
    assert seen["trial"] == {"generation": 3, "release": npu_host.new, "boot_id": "boot-2"}
    # The same call again: the boot it names has ended.
    assert reboot(npu_host, generation=3, release=npu_host.new)["already"]
    assert len(reboots(npu_host)) == 1 and npu_host.links()["good"] == npu_host.old
    assert trial_boot.confirm_boot(ROOT, 3, npu_host.new, "boot-2", npu_host.fs) == "point good to " + npu_host.new
    seen = trial_boot.view(ROOT, npu_host.fs)
    assert (seen["driver"], seen["good"], seen["previous"]) == (npu_host.new, npu_host.new, npu_host.old)
    assert seen["trial"] is None and seen["generation"] == 3
    assert not npu_host.exists("run/npuops/maintenance")
    assert trial_boot.confirm_boot(ROOT, 3, npu_host.new, "boot-2", npu_host.fs) is None
    boot(npu_host, "boot-3")
    assert npu_host.links()["driver"] == npu_host.new


def test_trial_that_ended_by_itself_is_told_from_one_that_never_was(npu_host):
    reboot(npu_host, generation=3, release=npu_host.new)
    boot(npu_host, "boot-2")
    boot(npu_host, "boot-3")
    seen = trial_boot.view(ROOT, npu_host.fs)
    assert seen["driver"] == npu_host.old and seen["boot_id"] == "boot-3"
    assert seen["trial"] == {"generation": 3, "release": npu_host.new, "boot_id": "boot-2"}
    # A later maintenance whose reboot came without next: its generation is in no trial.
    npu_host.link("next", npu_host.new)
    reboot(npu_host, "boot-3", generation=4)
    boot(npu_host, "boot-4")
    assert trial_boot.view(ROOT, npu_host.fs)["trial"]["generation"] == 3


def test_reboot_without_a_release_tries_nothing(npu_host):
    npu_host.link("next", npu_host.new)
    assert reboot(npu_host)["reason"] == "reboot"
    assert "next" not in npu_host.links() and len(reboots(npu_host)) == 1
    boot(npu_host, "boot-2")
    assert npu_host.links()["driver"] == npu_host.old
    assert trial_boot.view(ROOT, npu_host.fs)["trial"] is None


def test_a_person_goes_back_and_forth(npu_host):
    for generation, release, other in ((1, npu_host.new, npu_host.old), (2, npu_host.old, npu_host.new)):
        boot_id = trial_boot.view(ROOT, npu_host.fs)["boot_id"]
        reboot(npu_host, boot_id, generation, release)
        boot(npu_host, "boot-%d" % (generation + 1))
        trial_boot.confirm_boot(ROOT, generation, release, fs=npu_host.fs)
        assert npu_host.links() == {"driver": release, "good": release, "previous": other}


# --- What is refused, and then changes nothing ---


def snapshot(host):
    found = {}
    for directory, names, files in os.walk(host.fs):
        for name in names + files:
            path = os.path.join(directory, name)
            if not path.endswith("/boot.lock"):
                found[path] = (os.lstat(path).st_ino, os.lstat(path).st_mtime_ns if name in files else 0)
    return found


@pytest.mark.parametrize("state", ["rebooted", "confirmed", "withdrawn"])
def test_older_run_is_fenced_off(npu_host, state):
    npu_host.write("var/lib/npuops/maintenance", '{"generation": 5}\n')
    npu_host.write("run/npuops/maintenance", '{"generation": 5}\n')
    npu_host.link("next", npu_host.new)
    before = snapshot(npu_host)
    calls = {
        "rebooted": lambda: reboot(npu_host, generation=4, release=npu_host.new),
        "confirmed": lambda: trial_boot.confirm_boot(ROOT, 4, npu_host.old, fs=npu_host.fs),
        "withdrawn": lambda: trial_boot.withdraw(ROOT, 4, npu_host.fs),
    }
    with pytest.raises(NpuError, match="generation 5, this run has 4"):
        calls[state]()
    assert snapshot(npu_host) == before and reboots(npu_host) == []


def test_release_that_is_not_there_is_not_tried(npu_host):
    before = snapshot(npu_host)
    for name in ("25.5.2-%s-cccccccccccc" % KERNEL, npu_host.release("c", complete=False)):
        before = snapshot(npu_host)
        with pytest.raises(NpuError, match="not complete"):
            reboot(npu_host, release=name)
        assert snapshot(npu_host) == before
    assert reboots(npu_host) == []


def test_damaged_release_is_not_tried(npu_host):
    manifest = "var/lib/Ascend/releases/%s/manifest.json" % npu_host.new
    npu_host.write(manifest, json.dumps(dict(npu_host.json(manifest), files={"gone.ko": "0"})))
    with pytest.raises(NpuError, match=r"gone.ko of release .* is missing. Run npuops.ascend.upgrade, which stages it again"):
        reboot(npu_host, release=npu_host.new)
    assert "next" not in npu_host.links() and reboots(npu_host) == []


def test_release_for_another_kernel_is_not_tried(npu_host):
    other = npu_host.release("c", kernel=OTHER_KERNEL, version="25.6.0")
    with pytest.raises(NpuError, match="Neither release .* is for the kernel of this host"):
        reboot(npu_host, release=other)
    # One of the same version for this kernel is what npu-driver-select takes instead.
    npu_host.release("a", version="25.6.0")
    assert reboot(npu_host, release=other)["reason"]


def test_kernel_that_was_installed_after_the_plan(npu_host):
    """Between plan and reboot there may be days, and the reboot would leave the host without a driver."""
    next_kernel(npu_host, OTHER_KERNEL)
    assert trial_boot.view(ROOT, npu_host.fs)["next_kernel"] == OTHER_KERNEL
    told = "would be into kernel %s, for which no release of driver 25.5.1 is staged" % re.escape(OTHER_KERNEL)
    with pytest.raises(NpuError, match=told):
        reboot(npu_host, release=npu_host.new)
    assert "next" not in npu_host.links() and reboots(npu_host) == []
    npu_host.release("c", kernel=OTHER_KERNEL, version="25.5.1")
    assert reboot(npu_host, release=npu_host.new)["reason"]


def test_the_way_back_needs_no_driver_for_the_next_kernel(npu_host):
    next_kernel(npu_host, OTHER_KERNEL)
    assert reboot(npu_host)["reason"]


def test_host_that_would_not_try_it_is_not_rebooted(npu_host):
    os.unlink(os.path.join(npu_host.fs, WANTS))
    with pytest.raises(NpuError, match="npuops.ascend.install"):
        reboot(npu_host, release=npu_host.new)
    assert reboots(npu_host) == [] and reboot(npu_host)["reason"] == "reboot"


def test_reboot_that_cannot_be_queued(npu_host):
    npu_host.set("fail-systemd-run")
    with pytest.raises(NpuError, match="could not be queued: .*bus connection"):
        reboot(npu_host, release=npu_host.new)
    npu_host.unset("fail-systemd-run")
    assert reboot(npu_host, release=npu_host.new)["reason"]


@pytest.mark.parametrize("case", ["silent", "queued"])
def test_a_reboot_that_may_be_queued_is_not_called_refused(npu_host, monkeypatch, case):
    """systemd-run waits for its job, and PID 1 may take long; an earlier call, whose answer was lost, makes it fail."""
    run = host_command.run

    def slow(argv, *arguments, **options):
        if argv[0] != "systemd-run":
            return run(argv, *arguments, **options)
        if case == "queued":
            run(argv, *arguments, **options)
            return host_command.Result(1, "", "Unit npuops-reboot.service was already loaded")
        return host_command.Result(None, "", "")

    monkeypatch.setattr(host_command, "run", slow)
    looks = iter([False, True])
    monkeypatch.setattr(trial_boot, "is_going_down", lambda: case == "queued" and next(looks))
    assert reboot(npu_host, release=npu_host.new)["reason"].startswith("reboot")


CHIP, MANAGER = os.makedev(237, 0), os.makedev(238, 0)
TOLD = "Character devices:\n  1 mem\n 10 misc\n237 devdrv-cdev\n238 davinci_manager\n\nBlock devices:\n  7 loop\n"


def node(host, name, device=CHIP):
    """The character device /dev/NAME of the host, or whose link is called that."""
    path = "%s/dev/%s" % (host.fs, name)
    if os.path.lexists(path):
        os.unlink(path)
    os.mknod(path, stat.S_IFCHR | 0o600, device)


def hold(host, pid=4242, fds=("/dev/null", "/dev/davinci3"), maps="", exe="/usr/bin/python3.11"):
    """What /proc says of such a process. Where it is real, its links lead to what is open whatever they are called."""
    process = "proc/%d/" % pid
    host.write("proc/devices", TOLD)
    for target in fds:
        if re.match(r"/dev/davinci([0-9]+|_manager)( \(deleted\))?\Z", target) and not os.path.lexists(host.fs + target):
            node(host, target[len("/dev/") :], MANAGER if "manager" in target else CHIP + int(re.sub("[^0-9]", "", target)))
    host.write(process + "cmdline", "/usr/bin/python3\0train.py\0--token=secret\0")
    host.write(process + "maps", maps)
    os.makedirs(os.path.join(host.fs, process, "fd"))
    if exe:
        os.symlink(exe, os.path.join(host.fs, process, "exe"))
    for number, target in enumerate(fds):
        os.symlink(host.fs + target, os.path.join(host.fs, process, "fd", str(number)))
    for first, last, name in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) .* (/dev/davinci[0-9]+)$", maps, re.MULTILINE):
        link = os.path.join(host.fs, process, "map_files", "%x-%x" % (int(first, 16), int(last, 16)))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(host.fs + name, link)


def test_a_reserved_chip_that_nothing_has_open_does_not(npu_host):
    """By a container outside of Kubernetes, which began after the plan. The plan names it; the reboot ends it."""
    head = "ns_id 0 identify 5 root_tgid 4242 dev_num 8 namespace 0000000011110000, udev list:\nlogic_devid udevid\n"
    npu_host.write("proc/uda/namespace_node", head + "       3        3\n\n")
    npu_host.write("proc/4242/cmdline", "/bin/bash\0-l\0")
    npu_host.write("proc/4242/cgroup", "0::/system.slice/docker-%s.scope\n" % ("ab" * 32))
    told = facts.upgrade_facts(ROOT, npu_host.fs)["holders"]
    assert [(entry["pid"], entry["pod"]) for entry in told] == [(4242, False)]
    assert trial_boot.view(ROOT, npu_host.fs)["holders"] == []
    assert reboot(npu_host, release=npu_host.new)["reason"] and len(reboots(npu_host)) == 1


def test_held_chip_keeps_the_host_up(npu_host):
    hold(npu_host)
    before = snapshot(npu_host)
    held = [{"pid": 4242, "command": "/usr/bin/python3 train.py", "device": "davinci3"}]
    result = reboot(npu_host, release=npu_host.new)
    assert result["held"] == held and result["reason"] is None
    assert snapshot(npu_host) == before and reboots(npu_host) == []
    assert trial_boot.view(ROOT, npu_host.fs)["holders"] == held
    assert reboot(npu_host, release=npu_host.new, refuse_held=False)["reason"]
    assert len(reboots(npu_host)) == 1


def test_who_holds_a_chip(npu_host):
    node(npu_host, "davinci12", CHIP + 12)
    mapped = "00007f00-7f01 rw-s 00000000 00:05 301                        /dev/davinci12\n"
    hold(npu_host, 10, ["/dev/davinci1", "/dev/davinci0", "/dev/davinci_manager (deleted)"])
    hold(npu_host, 11, ["/dev/null"], maps="55-56 r-xp 0 08:01 1 /usr/bin/python3\n" + mapped)
    hold(npu_host, 12, ["/dev/davinci", "/home/dev/davinci0", "/dev/davinci0.log"], maps="1-2 r--p 0 08:01 1 /x/davinci0\n")
    hold(npu_host, 13, [], maps=mapped, exe=None)
    hold(npu_host, os.getpid())
    found = {entry["pid"]: entry["device"] for entry in trial_boot.holders(npu_host.fs)}
    assert found == {10: "davinci0, davinci1, davinci_manager", 11: "davinci12"}


@pytest.mark.parametrize(
    "make",
    [
        lambda path: open(path, "w", encoding="utf-8").close(),
        os.mkfifo,
        lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3)),
        lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(10, 229)),
        lambda path: os.mknod(path, stat.S_IFBLK | 0o666, CHIP),
    ],
)
def test_what_only_has_a_chips_name_holds_nobody_up(npu_host, make):
    """In a mount namespace of their own, users call whatever they have /dev/davinci0."""
    # As if its node were gone: so it is not the host's own.
    make("%s/dev/davinci7 (deleted)" % npu_host.fs)
    node(npu_host, "davinci0")
    hold(npu_host, 10, ["/dev/davinci7 (deleted)"])
    assert trial_boot.holders(npu_host.fs) == []
    # Nor where nothing says which numbers the driver has.
    os.unlink(npu_host.fs + "/dev/davinci0")
    npu_host.write("proc/devices", "Character devices:\n  1 mem\n 10 misc\n")
    assert trial_boot.holders(npu_host.fs) == []


def test_a_chip_is_known_by_its_number(npu_host):
    """In a container it may have another name. And its device node may have been removed while a process has it open."""
    node(npu_host, "davinci3", CHIP + 3)
    node(npu_host, "npu", CHIP + 3)
    node(npu_host, "davinci5 (deleted)", CHIP + 5)
    hold(npu_host, 10, ["/dev/npu"])
    hold(npu_host, 11, ["/dev/davinci5 (deleted)"])
    assert {entry["pid"]: entry["device"] for entry in trial_boot.holders(npu_host.fs)} == {10: "davinci3", 11: "davinci5"}
    npu_host.write("proc/devices", "Character devices:\n  1 mem\n")
    assert {entry["pid"]: entry["device"] for entry in trial_boot.holders(npu_host.fs)} == {10: "davinci3", 11: "davinci5"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_a_real_process_with_a_file_of_that_name_in_its_own_namespace():
    script = "mount -t tmpfs none /dev && echo x >/dev/davinci0 && exec 3</dev/davinci0 && echo ready && read -r line"
    with subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        assert os.readlink("/proc/%d/fd/3" % process.pid) == "/dev/davinci0"
        assert process.pid not in [entry["pid"] for entry in trial_boot.holders()]
        process.communicate(b"\n")


def test_a_command_cannot_move_the_cursor(npu_host):
    hold(npu_host, 10, ["/dev/davinci1"])
    npu_host.write("proc/10/cmdline", "evil\x1b[2J\nnpu-b: ready\0")
    assert trial_boot.holders(npu_host.fs)[0]["command"] == "evil?[2J?npu-b: ready"


def test_own_open_files_are_read_from_the_real_proc(tmp_path):
    """The kernel's own /proc. Without a device, the test can only show that nothing fails and that no holder is unknown."""
    assert [entry for entry in trial_boot.holders() if entry["command"] == "unknown"] == []


# --- Exactly once ---


def test_second_call_while_the_reboot_is_on_its_way(npu_host):
    reboot(npu_host, release=npu_host.new)
    result = reboot(npu_host, release=npu_host.new)
    assert result == {"reason": None, "already": False, "queued": True, "held": []}
    npu_host.unset("reboot")
    npu_host.set("stopping")
    assert reboot(npu_host, release=npu_host.new)["queued"]
    assert len(reboots(npu_host)) == 1


def test_many_at_once_queue_one_reboot(npu_host):
    results = []
    threads = [threading.Thread(target=lambda: results.append(reboot(npu_host, release=npu_host.new))) for _number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6 and len(reboots(npu_host)) == 1
    assert sorted(result["queued"] for result in results) == [False] + [True] * 5


# --- Confirming and withdrawing ---


def test_only_the_driver_of_this_boot_is_confirmed(npu_host):
    with pytest.raises(NpuError, match="cannot be confirmed"):
        trial_boot.confirm_boot(ROOT, 1, npu_host.new, fs=npu_host.fs)
    with pytest.raises(NpuError, match="rebooted after its driver was validated"):
        trial_boot.confirm_boot(ROOT, 1, npu_host.old, "boot-0", npu_host.fs)
    assert npu_host.links() == {"driver": npu_host.old, "good": npu_host.old}


def test_confirm_ends_a_maintenance_without_a_new_driver(npu_host):
    """A recovery: the driver is the good one before and after."""
    npu_host.write("run/npuops/maintenance", '{"generation": 2}')
    assert trial_boot.confirm_boot(ROOT, 2, npu_host.old, "boot-1", npu_host.fs) == "end the maintenance"
    assert not npu_host.exists("run/npuops/maintenance")
    assert npu_host.links() == {"driver": npu_host.old, "good": npu_host.old}


def test_withdraw(npu_host):
    npu_host.link("next", npu_host.new)
    npu_host.write("run/npuops/maintenance", '{"generation": 2}')
    npu_host.write("var/lib/npuops/maintenance", '{"generation": 2}')
    assert trial_boot.withdraw(ROOT, 2, npu_host.fs) == "remove next"
    assert npu_host.links() == {"driver": npu_host.old, "good": npu_host.old}
    assert not npu_host.exists("run/npuops/maintenance")
    assert npu_host.json("var/lib/npuops/maintenance") == {"generation": 2}
    assert trial_boot.withdraw(ROOT, 2, npu_host.fs) is None


def test_what_was_withdrawn_is_not_asked_for_again_by_a_run_that_wakes_up(npu_host):
    assert trial_boot.withdraw(ROOT, 5, npu_host.fs) == "refuse requests of older runs"
    with pytest.raises(NpuError, match="generation 5, this run has 4"):
        reboot(npu_host, generation=4, release=npu_host.new)
    assert "next" not in npu_host.links() and not reboots(npu_host)
    assert trial_boot.view(ROOT, npu_host.fs)["generation"] == 5
    assert trial_boot.withdraw(ROOT, 5, npu_host.fs) is None


def test_a_reboot_that_is_on_its_way_shows(npu_host):
    reboot(npu_host, generation=3, release=npu_host.new)
    assert trial_boot.view(ROOT, npu_host.fs)["going_down"] is True


def test_dangling_next_is_withdrawn_too(npu_host):
    npu_host.link("next", "25.5.0-gone-cccccccccccc")
    assert trial_boot.withdraw(ROOT, 0, npu_host.fs) == "remove next"
    assert "next" not in npu_host.links()


def test_reasons_alone_change_nothing(npu_host):
    npu_host.link("next", npu_host.new)
    before = snapshot(npu_host)
    assert trial_boot.reboot_reason(ROOT, "boot-1", 1, npu_host.new, npu_host.fs) == "reboot, to try " + npu_host.new
    assert trial_boot.confirm_reason(ROOT, 1, npu_host.old, fs=npu_host.fs) is None
    assert trial_boot.withdraw_reason(ROOT, 1, npu_host.fs) == "remove next"
    assert snapshot(npu_host) == before and reboots(npu_host) == []


# --- A power cut at every change ---

CUT_EXIT = 77
# Every call of the library that changes something on the disk or in systemd goes through one of these.
CHANGES = (
    (os, "rename"),
    (os, "symlink"),
    (os, "unlink"),
    (os, "makedirs"),
    (os, "fsync"),
    (os, "fchmod"),
    (tempfile, "mkstemp"),
    (host_command, "run"),
)


def cut(call, cut_at, when):
    """Run ``call`` in a process that dies before or after its change number ``cut_at``; returns whether it died."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            counter = [0]

            def dying(function):
                def wrapped(*arguments, **keywords):
                    counter[0] += 1
                    if counter[0] == cut_at and when == "before":
                        os._exit(CUT_EXIT)
                    result = function(*arguments, **keywords)
                    if counter[0] == cut_at:
                        os._exit(CUT_EXIT)
                    return result

                return wrapped

            for module, name in CHANGES:
                setattr(module, name, dying(getattr(module, name)))
            call()
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, CUT_EXIT), status
    return os.WEXITSTATUS(status) == CUT_EXIT


def is_loadable(host):
    """driver names a complete release for the running kernel."""
    tree = os.path.join(host.root, "driver")
    name = host.links()["driver"]
    return (
        KERNEL in name and os.path.isfile(tree + "/modules.load") and host.exists("var/lib/Ascend/releases/%s/manifest.json" % name)
    )


def finish(host, release, generation):
    """The rest of the maintenance as the cycle does it; returns how often it had to reboot the host."""
    count = 0
    seen = trial_boot.view(ROOT, host.fs)
    number = 10
    while not seen["driver"] == seen["good"] == release:
        if seen["driver"] == release:
            trial_boot.confirm_boot(ROOT, generation, release, seen["boot_id"], host.fs)
        else:
            assert trial_boot.reboot(ROOT, seen["boot_id"], generation, release, fs=host.fs)["reason"]
            boot(host, "boot-%d" % number)
            count += 1
        number += 1
        assert number < 15, seen
        seen = trial_boot.view(ROOT, host.fs)
    trial_boot.withdraw(ROOT, generation, host.fs)
    return count


def enumerate_cuts(tmp_path, prepare, call, check):
    """Cut ``call(host)`` before and after each of its changes on a new host, boot, and ``check(host, number, when)``."""
    for when in ("before", "after"):
        for cut_at in range(1, 100):
            path = tmp_path / ("%s-%d" % (when, cut_at))
            host = Host(path)
            os.environ.update({name: host.env[name] for name in ("PATH", "NPU_HOST_ROOT", "FAKE")})
            host.old, host.new = set_up(host)
            prepare(host)
            was_cut = cut(lambda host=host: call(host), cut_at, when)
            boot(host, "boot-2")
            assert is_loadable(host), (when, cut_at)
            check(host, cut_at, when)
            if not was_cut:
                break
        else:
            pytest.fail("never ran to its end")
        assert cut_at >= 5


@pytest.fixture
def environment(monkeypatch):
    """What enumerate_cuts sets is taken back."""
    for name in ("PATH", "NPU_HOST_ROOT", "FAKE"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


def test_power_cut_while_the_reboot_is_prepared(tmp_path, environment):
    queued_without_fence = []

    def check(host, cut_at, when):
        """Boot 2 came by the reboot, or by the cut before it."""
        seen = trial_boot.view(ROOT, host.fs)
        assert seen["driver"] in (host.old, host.new) and seen["next"] is None
        if reboots(host) and seen["generation"] != 7:
            queued_without_fence.append((when, cut_at))
        if seen["driver"] == host.new:
            # A trial that was not requested yet would not be of this generation.
            assert seen["trial"] == {"generation": 7, "release": host.new, "boot_id": "boot-2"}
        finish(host, host.new, 7)
        assert host.links() == {"driver": host.new, "good": host.new, "previous": host.old}
        assert not host.exists("run/npuops/maintenance")
        boot(host, "boot-20")
        assert host.links()["driver"] == host.new

    enumerate_cuts(tmp_path, lambda host: None, lambda host: reboot(host, generation=7, release=host.new), check)
    assert queued_without_fence == []


def test_power_cut_while_a_trial_is_given_up(tmp_path, environment):
    """The reboot of a rollback: whatever happens, the old release comes back and stays."""

    def prepare(host):
        reboot(host, generation=7, release=host.new)
        boot(host, "boot-1b")
        host.forget_calls()

    def check(host, cut_at, when):
        assert host.links() == {"driver": host.old, "good": host.old}
        assert trial_boot.view(ROOT, host.fs)["trial"]["generation"] == 7
        assert finish(host, host.old, 7) == 0

    enumerate_cuts(tmp_path, prepare, lambda host: reboot(host, "boot-1b", 7), check)


def test_power_cut_while_the_trial_is_confirmed(tmp_path, environment):
    def prepare(host):
        reboot(host, generation=7, release=host.new)
        boot(host, "boot-1b")

    outcomes = set()

    def check(host, cut_at, when):
        """good had moved, or the trial has ended: then it is said so, and one more reboot finishes."""
        seen = trial_boot.view(ROOT, host.fs)
        outcomes.add(seen["driver"])
        if seen["driver"] == host.old:
            assert seen["good"] == host.old and seen["trial"]["boot_id"] == "boot-1b"
            assert finish(host, host.new, 8) == 1
        else:
            assert finish(host, host.new, 8) == 0
        assert host.links() == {"driver": host.new, "good": host.new, "previous": host.old}

    enumerate_cuts(tmp_path, prepare, lambda host: trial_boot.confirm_boot(ROOT, 7, host.new, "boot-1b", host.fs), check)
    assert len(outcomes) == 2


def test_power_cut_while_next_is_withdrawn(tmp_path, environment):
    def prepare(host):
        host.link("next", host.new)
        host.write("run/npuops/maintenance", '{"generation": 7}')

    def check(host, cut_at, when):
        boot(host, "boot-3")
        assert host.links() == {"driver": host.old, "good": host.old}

    enumerate_cuts(tmp_path, prepare, lambda host: trial_boot.withdraw(ROOT, 7, host.fs), check)
