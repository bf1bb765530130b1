# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One healthy host in a directory, then one thing after the other broken on it: which checks fail, and what they
say.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import stat

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory, pci
from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec, containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import host_validation
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_record
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_record import Record

from support.host import crio as crio_host
from support.host.hccn import Hccn
from support.host.healthy_host import BOOT, RELEASE, HealthyHost
from support.paths import UNIT

ALWAYS = {
    "chips",
    "device_nodes",
    "device_permissions",
    "npu_smi",
    "health",
    "driver_version",
    "loaded_driver",
    "npu_smi_version",
    "release",
    "loaded_release",
    "driver_ready",
    "firmware",
    "library_ownership",
    "cdi_spec",
    "cdi_mounts",
    "cdi_driver_version",
    "cdi_files",
    "cdi_config",
    "cdi_running",
    "cdi_hook",
}


@pytest.fixture
def host(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        pytest.fail("device nodes and owners are what is tested here: run this as root")
    tmp_path.chmod(0o755)
    monkeypatch.setattr(cri, "status", lambda address, timeout=5: cri.CriStatus(True, True, ["/etc/cdi"]))
    return HealthyHost(tmp_path)


def failed(validation):
    assert all(bool(result["message"]) != result["ok"] for result in validation.results)
    return {result["name"]: result for result in validation.results if not result["ok"]}


def test_all_is_well(host):
    validation = host.validate()
    assert failed(validation) == {}
    assert {result["name"] for result in validation.results} == ALWAYS
    assert validation.valid and validation.firmware == "7.8.0.6.201"
    assert host_validation.summary(validation.results) == "all 20 checks passed"
    assert all(sorted(result) == ["expected", "message", "name", "ok", "seen"] for result in validation.results)


# --- the network ports ---


@pytest.fixture
def hccn(host):
    hccn = Hccn(host.root / "var/lib/Ascend/driver")
    hccn.config(host.root)
    host.spec()  # which mounts the file
    return hccn


def view(validation):
    return host_validation._network_view(validation)


def test_the_network_is_not_looked_at_by_default(host, hccn):
    validation = host.validate()
    assert failed(validation) == {} and hccn.calls == [] and view(validation) is None


@pytest.mark.parametrize("mode", ["warn", "strict"])
def test_a_network_that_works(host, hccn, mode):
    validation = host.validate(network=mode)
    assert failed(validation) == {} and validation.notes == []
    assert view(validation)["mode"] == mode and [chip["address"] for chip in view(validation)["chips"]] == [
        "10.20.0.10",
        "10.20.0.11",
    ]
    assert len(validation.results) == 20 + (6 if mode == "strict" else 0)


def test_a_stale_address_makes_the_host_invalid_if_that_is_wanted(host, hccn):
    hccn.config(host.root, address_1="10.20.0.77")
    validation = host.validate(network="warn")
    assert validation.valid and failed(validation) == {}
    (told,) = validation.notes
    assert told.startswith("network_config: chip 1: address 10.20.0.11, the file has 10.20.0.77 (expected: each chip as in /etc")
    assert [result["name"] for result in view(validation)["checks"] if not result["ok"]] == ["network_config"]
    validation = host.validate(network="strict")
    assert list(failed(validation)) == ["network_config"] and view(validation)["checks"] == []


def test_ports_that_are_not_there(host):
    """The driver has no hccn_tool."""
    validation = host.validate(network="strict")
    assert failed(validation) == {} and not view(validation)["roce"] and "hccn_tool" in view(validation)["reason"]


def test_nothing_is_asked_of_chips_that_do_not_respond(host, hccn):
    host.npu_smi("exit 187")
    validation = host.validate(network="strict")
    assert list(failed(validation)) == ["npu_smi"] and hccn.calls == [] and view(validation) is None


def test_no_hook(host):
    os.unlink(host.root / cdi_spec.HOOK.lstrip("/"))
    result = failed(host.validate())["cdi_hook"]
    assert result["seen"] == "no " + cdi_spec.HOOK and "run npuops.ascend.install" in result["message"]


def test_a_program_of_the_hook_is_missing(host):
    os.unlink(host.root / "usr/sbin/umount")
    result = failed(host.validate())["cdi_hook"]
    assert result["seen"] == "no umount" and "npu_runtime_library_path: env" in result["message"]


def test_a_spec_without_hook_needs_none(host):
    os.unlink(host.root / cdi_spec.HOOK.lstrip("/"))
    document = cdi_spec.spec(cdi_spec.look(str(host.root)), "/var/lib/Ascend", "env", str(host.root))
    host.write("etc/cdi/huawei.com-npu.json", cdi_spec.text(document))
    assert failed(host.validate(library_path="env")) == {}


def test_no_chip_nothing_to_check(tmp_path):
    validation = host_validation.Validation("/var/lib/Ascend", fs=str(tmp_path))
    assert validation.run() == [] and validation.valid
    assert "nothing to check" in host_validation.summary([])


def test_two_families(host):
    host.function("0000:81:00.0", "d500")
    validation = host.validate()
    assert list(failed(validation)) == ["chips"] and not validation.valid


def test_an_unknown_accelerator_is_told_and_fails_nothing(host):
    host.function("0000:81:00.0", "d9ff")
    assert failed(host.validate()) == {}
    message = host_validation.validate("/var/lib/Ascend", "image", fs=str(host.root))["msg"]
    assert message.splitlines()[-1].startswith("the unknown accelerator 19e5:d9ff (0000:81:00.0) may be a newer chip")


def test_chip_without_a_node(host):
    (host.root / "dev" / "davinci1").unlink()
    (host.root / "dev" / "hisi_hdc").unlink()
    results = failed(host.validate())
    assert list(results) == ["device_nodes"]
    assert results["device_nodes"]["seen"] == "1 x /dev/davinciN, no /dev/davinci1, /dev/hisi_hdc"


def test_node_without_a_chip(host):
    host.node("davinci2", 2)
    host.spec()
    assert failed(host.validate())["device_nodes"]["seen"] == "3 x /dev/davinciN"


def test_plain_file_instead_of_a_node(host):
    (host.root / "dev" / "davinci1").unlink()
    host.write("dev/davinci1", "")
    assert "davinci1 is not a device" in failed(host.validate())["device_permissions"]["seen"]


def test_node_that_only_root_can_use(host, monkeypatch):
    monkeypatch.setattr(host_validation, "_group", lambda name: 1000)
    os.chmod(host.root / "dev" / "davinci0", 0o600)
    results = failed(host.validate())
    assert list(results) == ["device_permissions"] and "/dev/davinci0 0600 group 0" in results["device_permissions"]["seen"]
    os.chown(host.root / "dev" / "davinci0", 1000, 1000)
    os.chmod(host.root / "dev" / "davinci0", 0o660)
    assert not failed(host.validate())


@pytest.mark.parametrize(
    "script, words",
    [
        ("echo 'dcmi module initialize failed. ret is -8005'; exit 187", "DCMI -8005"),
        ("sleep 60", "did not end within"),
        ("echo garbage", "cannot parse"),
    ],
)
def test_npu_smi_fails_hangs_or_talks_nonsense(host, script, words):
    host.npu_smi(script)
    validation = host.validate()
    results = failed(validation)
    assert list(results) == ["npu_smi"] and words in results["npu_smi"]["message"]
    assert "health" not in {result["name"] for result in validation.results}
    assert "cdi_running" in {result["name"] for result in validation.results}


def test_npu_smi_lists_fewer_chips(host):
    host.npu_smi("if [ $# = 1 ]; then cat <<E\n%sE\nelse echo 'Firmware Version : 7.8.0'; fi" % host.table(chips=["OK"]))
    results = failed(host.validate())
    assert list(results) == ["npu_smi"]
    assert (results["npu_smi"]["expected"], results["npu_smi"]["seen"]) == ("2 chips listed", "1 chips listed")


SHARED = "\tNPU ID                         : 0\n\tChip Count                     : 1\n\n\tDevice-share Status            : %s\n\tChip ID : 0\n"


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((SHARED % "True", SHARED % "True"), "beside it: device-share is on for all NPUs"),
        ((SHARED % "True", SHARED % "False"), "Stop the container. device-share is off for NPU 1: one container at a time"),
        ((SHARED % "True" + SHARED % "False", SHARED % "True"), "device-share is off for NPU 0: "),
        (("Device-share Status : {{ 5 }}", SHARED % "True"), "Stop the container"),
        (None, "Stop the container"),
    ],
)
def test_a_chip_that_is_reserved_and_whether_chips_are_shared(host, answers, said):
    uda = host.root / "proc/uda"
    uda.mkdir(parents=True)
    text = "ns_id 0 identify 5 root_tgid 2679173 dev_num 8 namespace 0000000011110000, udev list:\nlogic_devid udevid\n  0  1\n"
    (uda / "namespace_node").write_text(text, encoding="ascii")
    script = 'if [ "$3" = device-share ]; then %s; elif [ "$2" = -t ]; then echo "Firmware Version : 7"; else cat <<E\n%sE\nfi\n'
    answer = "exit 211" if answers is None else "case $5 in 0) cat <<E\n%s\nE\n;; 1) cat <<E\n%s\nE\n;; esac" % answers
    host.npu_smi(script % (answer, host.table()))
    validation = host.validate()
    (note,) = validation.reserved
    assert "/dev/davinci1" in note and note in validation.notes
    assert said in note and ("device-share" in note) is ("device-share" in said) and "{{" not in note


@pytest.mark.parametrize("health", ["Warning", "Alarm", "Critical", "UNKNOWN"])
def test_sick_chip(host, health):
    host.health = ["OK", health]
    host.firmware("7.8.0")
    validation = host.validate()
    told = "NPU 1 chip 0 (0000:01:00.0): %s" % health
    assert validation.valid and validation.notes[0].startswith(told + ". Run npu-smi info -t health")
    assert {"npu": 1, "chip": 0, "bus_id": "0000:01:00.0", "health": health} in validation.chip_health


def test_a_sick_chip_with_its_fault_codes(host):
    host.health = ["OK", "Alarm"]
    host.npu_smi(
        'if [ "$3" = health ]; then echo "Error Code : 80E18402 ABCDEF12"; exit; fi\n'
        'if [ "$2" = -t ]; then echo "Firmware Version : 7.8"; else cat <<E\n%sE\nfi\n' % host.table()
    )
    validation = host.validate()
    assert validation.valid and "Alarm with 80E18402 (SeparateNPU: 64 HBM rows" in validation.notes[0]
    assert [chip.get("codes") for chip in validation.chip_health] == [None, ["80E18402", "ABCDEF12"]]


@pytest.mark.parametrize("health, valid", [("Alarm", True), ("Critical", False), ("UNKNOWN", False)])
def test_no_chip_is_well(host, health, valid):
    host.health = [health, health]
    host.firmware("7.8.0")
    results = failed(host.validate())
    assert list(results) == ([] if valid else ["health"])
    if not valid:
        assert results["health"]["seen"] == "NPU 0 chip 0 (0000:00:00.0): %s, NPU 1 chip 0 (0000:01:00.0): %s" % (health, health)


def test_a_chip_that_is_gone_after_a_reboot(host):
    """The host serves with the other one, and says which one is missing; the CDI spec may still describe it."""
    fs = str(host.root)
    functions = pci.chip_functions(fs + "/sys/bus/pci/devices")
    chip_memory.write(chip_memory.of(functions), fs + chip_memory.PATH)
    assert host.validate().notes == []
    shutil.rmtree(host.root / "sys/bus/pci/devices/0000:01:00.0")
    os.unlink(host.root / "dev/davinci1")
    host.health = ["OK"]
    host.firmware("7.8.0")
    host.write("proc/uptime", "100.0 50.0\n")
    validation = host.validate()
    assert validation.valid, failed(validation)
    (told,) = validation.notes
    assert told.startswith("1 of 2 chips: 0000:01:00.0 is missing from the PCI bus since the boot of 20")
    # A spec of neither is not valid.
    document = cdi_spec.read(fs + cdi_spec.PATH)
    document["devices"][1]["name"] = "7"
    host.write(cdi_spec.PATH.lstrip("/"), cdi_spec.text(document))
    assert list(failed(host.validate())) == ["cdi_spec"]


def test_a_chip_that_is_gone_from_a_bus_that_was_renumbered(host):
    """Which one it is, is not known; the CDI spec is valid all the same."""
    fs = str(host.root)
    before = {"0000:00:00.0": 1, "0000:02:00.0": 1, "0000:03:00.0": 1}
    chip_memory.write(before, fs + chip_memory.PATH)
    document = cdi_spec.spec(cdi_spec.look(fs).with_chips(3), "/var/lib/Ascend", fs=fs)
    host.write(cdi_spec.PATH.lstrip("/"), cdi_spec.text(document))
    validation = host.validate()
    assert validation.valid, failed(validation)
    (told,) = validation.notes
    assert told.startswith("2 of 3 chips are on the PCI bus. ")


def test_a_host_that_has_lost_all_its_chips(host):
    fs = str(host.root)
    chip_memory.write(chip_memory.of(pci.chip_functions(fs + "/sys/bus/pci/devices")), fs + chip_memory.PATH)
    for address in ("0000:00:00.0", "0000:01:00.0"):
        shutil.rmtree(host.root / "sys/bus/pci/devices" / address)
    validation = host.validate()
    results = failed(validation)
    assert list(results) == ["chips"] and not validation.valid and validation.notes == []
    assert results["chips"]["seen"].startswith("0 of 2 chips: 0000:00:00.0, 0000:01:00.0 are missing from the PCI bus since")
    assert "npuops.ascend.uninstall" in results["chips"]["message"]
    # After that, nothing says that it is to have any.
    os.unlink(fs + chip_memory.PATH)
    assert host.validate().results == []


def test_another_version_than_wanted(host):
    assert list(failed(host.validate(version="25.7.0"))) == ["driver_version"]


def test_another_version_in_the_kernel(host):
    host.write("sys/module/drv_pcie_host/version", "25.3.0\n")
    results = failed(host.validate())
    assert list(results) == ["loaded_driver"] and results["loaded_driver"]["seen"] == "25.3.0"


def test_driver_not_loaded(host):
    for path in (host.root / "sys/module/drv_pcie_host").iterdir():
        path.unlink()
    (host.root / "sys/module/drv_pcie_host").rmdir()
    assert failed(host.validate())["loaded_driver"]["seen"] == "not loaded"


def test_module_without_a_version(host):
    (host.root / "sys/module/drv_pcie_host/version").unlink()
    assert not failed(host.validate())


def test_npu_smi_of_another_version(host):
    host.npu_smi("if [ $# = 1 ]; then cat <<E\n%sE\nelse echo 'Firmware Version : 7.8.0'; fi" % host.table("25.3.0"))
    assert list(failed(host.validate())) == ["npu_smi_version"]


def test_other_release_is_good(host):
    (host.root / "var/lib/Ascend/good").unlink()
    results = failed(host.validate())
    assert list(results) == ["release"] and "good: -" in results["release"]["seen"]


def test_on_trial_good_may_be_another(host):
    good = host.root / "var/lib/Ascend/good"
    good.unlink()
    good.symlink_to("releases/25.3.0-another/driver")
    assert list(failed(host.validate())) == ["release"]
    assert failed(host.validate(trial=True)) == {}
    os.symlink("releases/%s/driver" % RELEASE, host.root / "var/lib/Ascend/next")
    assert list(failed(host.validate(trial=True))) == ["release"]


def test_after_a_change_of_kernel_good_is_that_for_the_kernel_before(host):
    good = host.root / "var/lib/Ascend/good"
    good.unlink()
    version = RELEASE.partition("-")[0]
    good.symlink_to("releases/%s-4.19.90-0123456789ab/driver" % version)
    assert failed(host.validate()) == {}
    host.write("var/lib/npuops/trial", json.dumps({"generation": 1, "release": RELEASE, "boot_id": BOOT}))
    assert list(failed(host.validate())) == ["release"], "another image of that version, on trial"


def test_trial_boot_under_way(host):
    os.symlink("releases/%s/driver" % RELEASE, host.root / "var/lib/Ascend/next")
    assert list(failed(host.validate())) == ["release"]


def test_modules_of_another_release(host):
    host.write("run/npuops/driver-loading", "25.5.0-5.10.0-ffffffffffff\n")
    assert list(failed(host.validate())) == ["loaded_release"]


@pytest.mark.parametrize("change", [{"boot_id": "another"}, {"version": "25.3.0"}, {"release": "x"}])
def test_marker_of_something_else(host, change):
    host.marker(**change)
    assert list(failed(host.validate())) == ["driver_ready"]


def test_boot_unit_said_why(host):
    (host.root / "run/npuops/driver-ready").unlink()
    host.write("run/npuops/driver-failed", json.dumps({"boot_id": BOOT, "reason": "no devices"}))
    assert failed(host.validate())["driver_ready"]["seen"] == "no devices"


@pytest.mark.parametrize("version, ok", [("7.8.99.3", True), ("7.9.0", False), ("6.4.0", False), ("NA", True)])
def test_firmware_range(host, version, ok):
    host.firmware(version)
    validation = host.validate()
    results = failed(validation)
    assert list(results) == ([] if ok else ["firmware"])
    if version == "NA":
        assert [check["seen"] for check in validation.results if check["name"] == "firmware"] == ["unknown"]
    if not ok:
        assert results["firmware"]["seen"] == "%s (NPU 0, 1)" % version


@pytest.mark.parametrize(
    "second, chips, known",
    [("7.8.0.6.201", 2, True), ("NA", 2, False), ("7.8.0.6.201", 1, False)],
    ids=["all", "one-does-not-tell", "one-is-not-listed"],
)
def test_the_firmware_of_a_host_is_that_of_all_its_chips(host, second, chips, known):
    version = "if [ $5 = 1 ]; then echo 'Firmware Version : %s'; else echo 'Firmware Version : 7.8.0.6.201'; fi" % second
    host.npu_smi('if [ "$2" = -t ]; then %s; else cat <<E\n%sE\nfi\n' % (version, host.table(chips=["OK"] * chips)))
    assert host.validate().firmware == ("7.8.0.6.201" if known else None)


@pytest.mark.parametrize(
    "path, mode",
    [
        ("var/lib/Ascend/driver/lib64/driver/libdcmi.so", 0o664),
        ("var/lib/Ascend/driver/lib64", 0o757),
        ("var/lib/Ascend/releases", 0o775),
        ("var", 0o1777),
    ],
)
def test_libraries_others_can_replace(host, path, mode):
    (host.root / path).chmod(mode)
    results = failed(host.validate())
    assert list(results) == ["library_ownership"] and "mode %04o" % mode in results["library_ownership"]["seen"]


def test_libraries_of_somebody_else(host):
    os.chown(host.root / "var/lib/Ascend/driver/lib64/driver", 1000, 0)
    assert "belongs to user ID 1000" in failed(host.validate())["library_ownership"]["seen"]


def test_no_spec(host):
    (host.root / "etc/cdi/huawei.com-npu.json").unlink()
    results = failed(host.validate())
    assert list(results) == ["cdi_spec"] and results["cdi_spec"]["seen"] == "there is no CDI spec"


def test_spec_with_a_mount_that_is_gone(host):
    (host.root / "var/lib/Ascend/driver/tools/npu-smi").unlink()
    assert failed(host.validate())["cdi_mounts"]["seen"] == "no /var/lib/Ascend/driver/tools/npu-smi"


def test_spec_of_another_tree(host):
    """A spec that another program wrote: containers would get the libraries of another driver."""
    host.write("opt/driver/version.info", "Version=24.1.0\n")
    path = host.root / "etc/cdi/huawei.com-npu.json"
    path.write_text(path.read_text().replace('"/var/lib/Ascend/driver"', '"/opt/driver"'))
    results = failed(host.validate())
    assert set(results) == {"cdi_spec", "cdi_driver_version"}
    assert results["cdi_driver_version"]["seen"].startswith("24.1.0 in ")


def test_foreign_and_broken_spec_files(host):
    host.write("etc/cdi/other.yaml", "kind: huawei.com/npu\n")
    host.write("var/run/cdi/empty.json", "")
    assert list(failed(host.validate())) == ["cdi_files"]
    (host.root / "var/run/cdi/empty.json").unlink()
    assert "other.yaml is of the same kind" in failed(host.validate())["cdi_files"]["seen"]
    (host.root / "etc/cdi/other.yaml").unlink()
    host.write("var/run/cdi/empty.json", "")
    assert "empty.json is invalid" in failed(host.validate())["cdi_files"]["seen"]


def test_cdi_off_in_the_file(host):
    host.daemon.on = False
    results = failed(host.validate())
    assert list(results) == ["cdi_config"] and "enable_cdi = false" in results["cdi_config"]["seen"]


def test_cdi_off_in_the_process(host, monkeypatch):
    monkeypatch.setattr(cri, "status", lambda address, timeout=5: cri.CriStatus(True, False, ["/etc/cdi"]))
    results = failed(host.validate())
    assert list(results) == ["cdi_running"] and "restarted" in results["cdi_running"]["message"]


def test_chips_by_ascend_docker_runtime(host, monkeypatch):
    """No CDI is needed then, and what is wrong with that runtime is told."""
    program = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"
    host.write("var/lib/npuops/device-plugins/runtime-mode", "ascend\n")
    (host.root / cdi_spec.PATH.lstrip("/")).unlink()
    host.daemon.on = False
    assert list(failed(host.validate())) == ["ascend_runtime_config", "ascend_runtime_running"]
    text = (UNIT / "fixtures/containerd/ascend-default.toml").read_text(encoding="utf-8")
    monkeypatch.setattr(host.daemon, "dump", lambda: containerd_config.Dump(text))
    results = failed(host.validate())
    assert list(results) == ["ascend_runtime_files", "ascend_runtime_running"]
    assert results["ascend_runtime_files"]["seen"] == "there is no program %s" % program
    monkeypatch.setattr(cri, "status", lambda address: cri.CriStatus(True, False, [], ("ascend", program)))
    for name in ("runtime", "hook", "cli"):
        host.write(os.path.dirname(program).lstrip("/") + "/ascend-docker-" + name, "").chmod(0o550)
    host.write("etc/ascend-docker-runtime.d/base.list", "/usr/local/Ascend/driver/lib64\n")
    (host.root / "usr/local/Ascend/driver/lib64").mkdir(parents=True)
    validation = host.validate()
    assert failed(validation) == {}
    names = {result["name"] for result in validation.results}
    assert names - ALWAYS == {"ascend_runtime_config", "ascend_runtime_files", "ascend_runtime_running"}
    assert not any(name.startswith("cdi_") for name in names)


def test_no_containerd(host):
    def find():
        raise NpuError("This host has no containerd")

    host.daemon = None
    fs = str(host.root)
    validation = host_validation.Validation("/var/lib/Ascend", fs=fs, npu_smi=chips_npu_smi.NpuSmi(fs + "/x", lock=fs + "/l"))
    validation.run(find)
    assert failed(validation)["cdi_config"]["message"] == "This host has no containerd"


@pytest.fixture
def crio_machine(host):
    """The same host, in which the kubelet uses CRI-O. Its path is short, as that of a socket must be."""
    with crio_host.crio() as machine:
        shutil.copytree(host.root, machine.fs, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
        host.root = pathlib.Path(machine.fs)
        host.daemon = None
        yield machine


def _copy(source, target):
    info = os.stat(source)
    if stat.S_ISCHR(info.st_mode):
        os.mknod(target, info.st_mode, info.st_rdev)
        os.chmod(target, stat.S_IMODE(info.st_mode))
    else:
        shutil.copy2(source, target)


def test_cri_o(host, crio_machine):
    crio_machine.start()
    validation = host.validate()
    assert failed(validation) == {} and {result["name"] for result in validation.results} == ALWAYS
    seen = {result["name"]: result["seen"] for result in validation.results}
    assert seen["cdi_config"] == seen["cdi_running"] == "cdi_spec_dirs = /etc/cdi, /var/run/cdi"


def test_cri_o_that_reads_other_directories(host, crio_machine):
    crio_machine.write("/etc/crio/crio.conf.d/20-site.conf", '[crio.runtime]\ncdi_spec_dirs = ["/opt/cdi"]\n')
    crio_machine.start()
    results = failed(host.validate())
    assert list(results) == ["cdi_config"]
    assert results["cdi_config"]["seen"] == "cdi_spec_dirs = /opt/cdi"
    assert results["cdi_config"]["message"].startswith("/etc/crio/crio.conf.d/20-site.conf sets cdi_spec_dirs to /opt/cdi. Add ")
    crio_machine.write("/etc/crio/crio.conf.d/20-site.conf", "")
    crio_machine.answer = crio_host.answer("/opt/cdi")
    results = failed(host.validate())
    assert list(results) == ["cdi_running"] and "has not been restarted" in results["cdi_running"]["message"]


def test_cri_o_that_does_not_answer(host, crio_machine):
    crio_machine.write("/etc/crio/crio.conf.d/20-site.conf", "[")
    crio_machine.answer = b""
    crio_machine.start()
    results = failed(host.validate())
    assert [(name, result["seen"]) for name, result in results.items()] == [
        ("cdi_config", "unknown"),
        ("cdi_running", "no response"),
    ]


def test_a_socket_of_cri_o_that_is_not_safe(host, crio_machine):
    crio_machine.start(uid=1000)
    results = failed(host.validate())
    assert list(results) == ["cdi_config"] and "is not safe to use" in results["cdi_config"]["message"]


def test_preinstalled_has_no_releases(host):
    """The same tree, used where it was installed: no links are expected."""
    tree = host.root / "usr/local/Ascend/driver"
    tree.parent.mkdir(parents=True)
    (host.root / "var/lib/Ascend/releases" / RELEASE / "driver").rename(tree)
    for link in ("driver", "good"):
        (host.root / "var/lib/Ascend" / link).unlink()
    (host.root / "run/npuops/driver-loading").unlink()
    host.marker(release="")
    fs = str(host.root)
    document = cdi_spec.spec(cdi_spec.look(fs), "/usr/local/Ascend", fs=fs)
    host.write("etc/cdi/huawei.com-npu.json", cdi_spec.text(document))
    npu_smi = chips_npu_smi.NpuSmi(str(tree), 2, lock=fs + "/run/npuops/npu-smi.lock", fallbacks=())
    validation = host_validation.Validation("/var/lib/Ascend", source="preinstalled", fs=fs, npu_smi=npu_smi)
    validation.run(lambda: host.daemon)
    assert failed(validation) == {}
    assert {"release", "loaded_release"} & {result["name"] for result in validation.results} == set()


def test_summary_is_for_a_person(host):
    host.daemon.on = False
    host.health = ["Critical", "Critical"]
    host.firmware("7.8.0")
    lines = host_validation.summary(host.validate().results).splitlines()
    assert lines[0] == "2 of 20 checks failed"
    assert lines[1].startswith("health: NPU 0 chip 0 (0000:00:00.0): Critical, NPU 1 ")
    assert lines[1].endswith(": Critical (expected: a chip that is not Critical)")
    assert lines[2].startswith("  -> ") and lines[3].startswith("cdi_config: ")


def test_virtual_npus(host):
    """Missing ones and leftovers are named; without any and without a record, there is no such check."""
    fs = str(host.root)
    assert "virtual_npus" not in {result["name"] for result in host.validate().results}
    told = (UNIT / "fixtures/npu-smi-vnpu/info-vnpu_910B4-1_26.0.rc1.txt").read_text(encoding="utf-8")
    none = told.replace("vnpu: 2", "vnpu: 0").partition("|  212")[0]
    place = 'echo "NPU ID : $5"; echo "Chip ID : 0"'
    host.npu_smi(
        'case "$3$5" in phyid*) %s ;; info-vnpu1) cat <<E\n%sE\n;; info-vnpu*) cat <<E\n%sE\n;; "") cat <<E\n%sE\n;; esac\n'
        % (place, told, none, host.table())
    )
    wanted = [Vnpu(1, 212, "vir10_3c_32g"), Vnpu(1, 213, "vir10_3c_32g")]
    vnpu_record.write(Record(wanted, []), fs)
    assert next(result for result in host.validate().results if result["name"] == "virtual_npus")["ok"]
    vnpu_record.write(Record(wanted[:1] + [Vnpu(0, 100, "vir05_1c_16g")], []), fs)
    wrong = failed(host.validate())["virtual_npus"]
    assert wrong["expected"] == "100 (vir05_1c_16g, chip 0), 212 (vir10_3c_32g, chip 1)"
    assert wrong["message"] == (
        "Missing: 100 (vir05_1c_16g, chip 0). Run systemctl restart npu-driver, which creates them. Not recorded, but holding parts of"
        " their chips: 213 (vir10_3c_32g, chip 1). Run npuops.ascend.npu_vnpu with leftovers: destroy, or npu-smi set -t destroy-vnpu"
    )
    # Of a host without a layout, npu_vnpu destroys nothing.
    vnpu_record.write(Record([], []), fs)
    (host.root / "dev/vdavinci212").touch()
    assert failed(host.validate())["virtual_npus"]["message"] == (
        "Not recorded, but holding parts of their chips: 212 (vir10_3c_32g, chip 1), 213 (vir10_3c_32g, chip 1)."
        " Destroy each with npu-smi set -t destroy-vnpu"
    )
    host.npu_smi('echo "The vnpu is not in docker mode"\n')
    assert "printed something unexpected" in failed(host.validate())["virtual_npus"]["message"]


@pytest.mark.parametrize("said, told", [("OK", False), ("NA", False), ("", False), ("Not OK", True)])
def test_firmware_that_npu_smi_calls_incompatible(host, said, told):
    board = "Firmware Version : 7.8.0.6.201\\nCompatibility : %s\\n" % said
    host.npu_smi('if [ "$2" = -t ]; then printf "%s"; else cat <<E\n%sE\nfi\n' % (board, host.table()))
    assert any("are not compatible" in note for note in host.validate().notes) == told
