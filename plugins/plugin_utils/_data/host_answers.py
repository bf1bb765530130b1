# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What crosses from a host to the controller: each field with its type, and the check that it has it.

The modules npu_facts, npu_validate and npu_trial_boot make it; their documentation tells users the same. A host may have been taken
over, or run another version: what is read here for many hosts must not depend on what one of them says. Fields of a
``total=False`` may be missing; fields that are not named here are let be.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import STATES, VERDICTS
from ansible_collections.npuops.ascend.plugins.module_utils._chips.chip_faults import MOST_CODES
from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import TEMPLATE_NAMES
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import PORTS
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import (
    Misfit,
    Shape,
    listing,
    number,
    one_of,
    shown,
    text,
)


def _family(value: Any, where: str) -> None:
    """Its words become labels, resources and names of objects."""
    if value not in [family._asdict() for family in FAMILIES.values()]:
        raise Misfit("%s is %s, which this version does not know" % (where, shown(value)))


def _pair(value: Any, where: str) -> None:
    listing(text(256), 2)(value, where)
    if len(value) != 2:
        raise Misfit("%s has %d entries, not two" % (where, len(value)))


Word = Annotated[str, text(256)]
Told = Annotated[str, text(4096)]
# Of all checks together.
Summary = Annotated[str, text(64 * 1024)]
# As of uname -r; becomes part of tags and of directory names.
Kernel = Annotated[str, text(255, r"[0-9A-Za-z][0-9A-Za-z._+~-]*", "a kernel release")]
BusId = Annotated[str, text(16, r"[0-9a-f:.]+", "a PCI address")]
# Other hosts are told to send packets there.
Address = Annotated[str, text(15, r"[0-9]{1,3}(\.[0-9]{1,3}){3}", "an IPv4 address")]
# It becomes part of the name of a file.
Moment = Annotated[str, text(20, schema.MOMENT, "a time in UTC")]
# Components mount it, and it stands in their manifests.
Path = Annotated[str, text(256, r"/[A-Za-z0-9._/@:+-]*", "a path")]


# --- npu_facts ---


class OperatingSystem(TypedDict, total=False):
    """/etc/os-release; "" for what it does not say."""

    id: Word | None  # the distribution, such as openEuler
    version_id: Word | None
    pretty_name: Told | None  # both, for people


class Family(TypedDict, total=False):
    """What the chips of a host are; one of module_utils/_chips/pci.py's FAMILIES."""

    name: str  # Huawei's, such as 910B
    key: str  # in the tags of driver images
    resource: str  # that pods ask for
    accelerator: str  # value of the label of that name


class Vnpu(TypedDict):
    """A virtual NPU that the host is to have."""

    chip: Annotated[int, number(0, 1023)]  # N of /dev/davinciN
    id: Annotated[int, number(0, 2**16)]  # N of /dev/vdavinciN
    template: Annotated[str, one_of(*TEMPLATE_NAMES)]


Vnpus = Annotated[list[Vnpu], listing(schema.of(Vnpu), 2048)]


class _ChipHealth(TypedDict):
    npu: Annotated[int, number(0, 10**9)]  # of its card
    chip: Annotated[int, number(0, 10**9)]  # on that card
    bus_id: BusId
    health: Annotated[str, text(32, r"[A-Za-z0-9 _./-]+", "a word of npu-smi")]  # OK, Warning, Alarm, Critical or another


FaultCode = Annotated[str, text(8, r"[0-9A-F]{4,8}", "a fault code")]


class ChipHealth(_ChipHealth, total=False):
    """A chip that npu-smi lists."""

    codes: Annotated[list[FaultCode], listing(schema.of(FaultCode), MOST_CODES)] | None  # the worst first; of a chip that is not OK
    codes_left_out: Annotated[int, number(0, 10**5)] | None  # how many others it has


ChipsHealth = Annotated[list[ChipHealth], listing(schema.of(ChipHealth), 1024)]


class VnpuPlan(TypedDict):
    """What has to change until the host has the virtual NPUs that it is to have."""

    changed: bool
    target: Vnpus
    destroy: Vnpus
    create: Vnpus
    problem: Told | None  # why it cannot be done


class Runtime(TypedDict, total=False):
    """The container runtime that the kubelet uses; None for what is unknown."""

    name: Word | None  # containerd, k3s, rke2, k0s, microk8s, cri-o, docker or none
    version: Word | None  # of containerd or CRI-O
    address: Told | None  # path of its socket
    ctr: Told | None  # the command line of that program
    config_path: Told | None  # the file containerd or CRI-O was started with
    kubelet: bool | None  # whether a kubelet runs on the host
    control_plane: bool | None  # whether the unit of the kubelet also runs the API server
    kubelet_dir: Told | None  # the kubelet's root directory
    conflict: Told | None  # why it is not clear which runtime is meant
    ascend_docker_runtime: list[Told] | None  # the files that configure that
    mode: Word | None  # how containers get their chips: cdi or ascend


class Marker(TypedDict, total=False):
    """What the boot unit published in this boot, in /run/npuops: driver-ready or driver-failed."""

    reason: Told | None  # why the driver does not work; of driver-failed


class Driver(TypedDict, total=False):
    """The driver on the host."""

    root: Path | None  # the directory with ``driver`` in it
    managed: bool | None  # whether ``driver`` is a link of ours
    package: Path | None  # where a .run package installed a driver that is still there
    tree: Path | None  # the driver tree, where there is one
    version: Word | None  # of that tree
    release: Word | None  # the one that ``driver`` names
    complete: bool | None  # whether that release is there as it was staged
    good: Word | None  # the release that was confirmed last
    next: Word | None  # the release that the next boot will try
    loaded: bool | None  # whether any driver's modules are loaded
    loaded_release: Word | None  # the release that they are from
    loaded_version: Word | None  # the version that they tell
    ready: Marker | None
    failed: Marker | None
    problem: Told | None  # why install cannot go on with the driver source that is set


class Disk(TypedDict, total=False):
    """The file system that the driver is on."""

    path: Told | None  # the nearest directory that exists
    free_bytes: Annotated[int, number(most=2**63)] | None  # free for root, in bytes


class Brings(TypedDict):
    """A firmware package."""

    version: Word
    drivers: Annotated[list[Word], listing(schema.of(Word), 64)]  # what the drivers' versions that it works with begin with


class StagedFirmware(Brings, total=False):
    """A firmware package in a release on the host."""

    sha256: Word | None  # of the file


class Flash(TypedDict, total=False):
    """The last write of firmware into the chips of a host."""

    state: Word  # writing, written or failed
    release: Word | None
    version: Word | None
    sha256: Word | None
    generation: int | None
    boot_id: Word | None  # of the boot in which it was written
    reason: Told | None  # why it failed


class Staged(TypedDict, total=False):
    """A complete release on the host."""

    version: Word | None
    kernel: Word | None  # as of uname -r
    digest: Word | None  # of the image that it is from
    firmware: Annotated[list[str], _pair] | None  # lowest and highest that it declares to work with
    brings: StagedFirmware | None  # the firmware package with it


class Holder(TypedDict):
    """A process that has a chip open or mapped."""

    pid: int
    command: Told  # program and first argument
    device: Told  # names without /dev/, with commas


class HolderOfHost(Holder, total=False):
    pod: bool | None  # whether it is in a container of Kubernetes


class UpgradeFacts(TypedDict, total=False):
    """What only an upgrade asks for."""

    generation: int | None  # the largest of a maintenance that has been at the host, 0 for none
    previous: Word | None  # the release that was good before
    trial: Word | None  # the release that this boot tries, not confirmed yet
    staged: dict[str, Staged] | None  # by release
    holders: Annotated[list[HolderOfHost], listing(schema.of(HolderOfHost), 10000)] | None
    flash: Flash | None


class NextKernel(TypedDict):
    """The kernel that the next boot of a host loads, where that is not the running one."""

    kernel: Kernel
    release: Word | None  # the staged release that the next boot would select for it
    symvers: Word | None  # the file with the symbols that it exports


class ChipsBefore(TypedDict):
    """The chips that install has found before."""

    count: Annotated[int, number(0, 2048)]  # 0: it has recorded none
    gone: Annotated[list[BusId], listing(schema.of(BusId), 1024)]  # those that are missing
    boot: Word | None  # when the host booted, RFC 3339


class Facts(TypedDict, total=False):
    """A host, before anything is changed on it."""

    hostname: Word | None
    boot_id: Word | None  # as of the kernel, and of status.nodeInfo.bootID of the Node
    uptime: float | None  # seconds since the kernel started
    kernel: Word | None  # as of uname -r
    symvers: Word | None  # the file with the symbols that the kernel exports
    next_kernel: NextKernel | None  # also None where the boot loader's default is unknown
    machine: Word | None  # as of uname -m
    cgroup_version: Annotated[int, number(1, 2)] | None
    os: OperatingSystem | None
    kernel_key: Word | None  # the kernel in the tag of a driver image
    os_key: Word | None  # the operating system likewise
    python: Word | None  # the version that modules run with
    chips: list[dict[str, Any]] | None  # PCI functions: pci_address, device_id, subsystem_device_id, chips (how many)
    chip_count: Annotated[int, number(0, 1024)] | None
    chips_before: ChipsBefore | None
    family: Annotated[Family, _family] | None  # None without chips, or with chips of two families
    chip_numbers: Annotated[list[int], listing(number(0, 1023), 1024)] | None  # N of /dev/davinciN
    vnpus: Vnpus | None  # those that are recorded
    vnpus_missing: Vnpus | None  # those that were to be created, and could not
    vnpu_record: bool | None  # whether there is a record, also of a change that was interrupted
    vnpu_plan: VnpuPlan | None  # where it was asked for, and the driver is loaded
    runtime: Runtime | None
    driver: Driver | None
    firmware_version: Word | None  # of the firmware package on the host
    disk: Disk | None
    upgrade: UpgradeFacts | None  # where it was asked for
    problems: list[Told] | None  # what must be repaired before a driver can be installed, as sentences
    notes: list[Told] | None  # what a person should know, as clauses


# --- npu_validate ---


class Check(TypedDict):
    """One thing that was looked at."""

    name: Word  # npu_validate documents them
    ok: bool
    expected: Any  # for people, as the next two
    seen: Any
    message: Told | None  # what to do; None when it is ok


class _Verdict(TypedDict):
    valid: bool  # whether all checks are ok
    msg: Summary  # the failed checks and what to do, or that there are none


class Verdict(_Verdict, total=False):
    """What a maintenance reads of a validation that took place."""

    firmware_version: Word | None  # that the chips run; with commas where they differ
    chips: Annotated[int, number(0, 1024)] | None  # how many the host has
    chip_health: ChipsHealth | None  # of those that npu-smi lists
    vnpus: Vnpus | None  # those that the host is to have
    reserved: list[Told] | None  # for which containers outside of Kubernetes the driver reserves chips, as sentences


Link = Annotated[str, one_of("UP", "DOWN")]
NetworkMode = Annotated[str, one_of("warn", "strict")]


class ConfiguredPort(TypedDict, total=False):
    """What /etc/hccn.conf says of a chip."""

    address: Address | None
    dhcp: bool | None  # whether the port gets its address from elsewhere


class PortOfChip(TypedDict, total=False):
    """The network port of a chip; None for what is unknown, or what it does not have."""

    chip: Annotated[int, number(0, 1023)]  # N of /dev/davinciN
    link: Link | None
    speed: Annotated[int, number(0, 10**8)] | None  # Mb/s
    address: Address | None
    netmask: Address | None
    gateway: Address | None
    tls: bool | None
    mtu: Annotated[int, number(0, 10**5)] | None
    configured: ConfiguredPort | None


class HccnConfig(TypedDict, total=False):
    """/etc/hccn.conf."""

    exists: bool
    problems: list[Told]


class Network(TypedDict, total=False):
    """The network ports of a host."""

    mode: NetworkMode
    roce: bool  # whether its chips have ports
    reason: Told | None  # why they have none
    cabled: bool  # whether any port is in use
    config: HccnConfig
    chips: Annotated[list[PortOfChip], listing(schema.of(PortOfChip), 1024)]
    checks: list[Check]  # those of the host alone, where they do not make it invalid


class Validation(TypedDict, total=False):
    """Whether the host offers its chips as it should. Without ``valid`` the module itself failed, and ``msg`` says why."""

    valid: bool | None  # whether all checks are ok
    checks: list[Check] | None
    chips: Annotated[int, number(0, 1024)] | None  # how many the host has
    version: Word | None  # of the driver tree
    firmware_version: Word | None  # that the chips run; with commas where they differ
    chip_health: ChipsHealth | None  # of those that npu-smi lists
    vnpus: Vnpus | None  # those that the host is to have
    network: Network | None  # None where it was not asked for, or there is none
    reserved: list[Told] | None  # for which containers outside of Kubernetes the driver reserves chips, as sentences
    msg: Summary | None  # the failed checks and what to do, or that there are none


# --- npu_hccn_ping ---


class PingResult(TypedDict):
    """A ping through the port of a chip."""

    chip: Annotated[int, number(0, 1023)]  # N of /dev/davinciN
    address: Address
    sent: Annotated[int, number(0, 10**4)] | None  # packets; None if it is unknown whether the address answers
    received: Annotated[int, number(0, 10**4)] | None
    problem: Told | None  # why it is unknown


class PingAnswer(TypedDict):
    """What npu_hccn_ping answers."""

    results: Annotated[list[PingResult], listing(schema.of(PingResult), 64)]


# --- npu_accept ---


class AcceptanceFinding(TypedDict):
    """The result of one check."""

    name: Word
    level: Annotated[int, number(1, 3)]
    verdict: Annotated[str, one_of(*VERDICTS)]
    seen: Told
    advice: Told | None  # what to do


class AcceptanceResult(TypedDict):
    """What an acceptance has found."""

    level: Annotated[int, number(1, 3)]
    began: Moment
    ended: Moment
    driver: Word | None
    firmware: Word | None  # with commas where they differ
    chips: Annotated[int, number(0, 1024)]
    findings: Annotated[list[AcceptanceFinding], listing(schema.of(AcceptanceFinding), 256)]


class AcceptanceAnswer(TypedDict):
    """What npu_accept answers."""

    state: Annotated[str, one_of(*STATES)]
    boot_id: Word  # of this boot
    began: Word  # in UTC
    result: AcceptanceResult | None  # None unless the state is done


class FinishedAcceptance(TypedDict):
    """The same, when it has ended."""

    boot_id: Word
    result: AcceptanceResult


# --- all together ---


class AskedHost(TypedDict, total=False):
    """A host of the inventory and what it answered, as the filter npu_hosts makes it."""

    name: str  # in the inventory; always there
    facts: Facts | None  # None where there are none, or none that are valid
    validation: Validation | None
    unreachable: bool
    error: str | None  # why there are no facts
    pending: str  # why there are none yet, where install will see to it; in check mode
    config: dict[str, Any]  # its variables, by their names without npu_
    variables: list[str]  # the names of all of its variables that begin with npu_
    pings: list[PingResult]  # where it was asked to make any


# --- npu_trial_boot ---


class Trial(TypedDict):
    """The last boot that tried a release, which has not been confirmed since. It has ended unless its boot is this one."""

    generation: int  # of the maintenance that it was for
    release: Word
    boot_id: Word


class _View(TypedDict):
    boot_id: Word  # of this boot
    generation: int  # the largest that has asked for a reboot, 0 for none
    driver: Word | None  # the release of this boot
    good: Word | None  # the release that was confirmed last
    next: Word | None  # the release that the next boot will try
    previous: Word | None  # the release that was good before
    releases: list[Word]  # those that are completely there
    trial: Trial | None
    holders: Annotated[list[Holder], listing(schema.of(Holder), 10000)]
    ready: Marker | None  # when the driver works in this boot
    failed: Marker | None  # when it does not
    loaded_version: Word | None  # that the loaded modules tell
    unit: Word  # state of npu-driver.service, as of systemctl is-active
    uptime: float  # seconds since the boot
    kernel: Word  # as of uname -r
    going_down: bool  # whether this boot is about to end


class View(_View, total=False):
    """All that a maintenance decides by."""

    chips: ChipsHealth | None  # those that npu-smi lists, if it was asked; None if it does not answer
    ports: Annotated[dict[str, str], PORTS] | None  # link and address by chip, if it was asked; None if there are none
    firmware: Flash | None  # the last write of it into the chips
    next_kernel: Kernel | None  # that the next boot loads; None if that is not known


class FirmwareAnswer(TypedDict):
    """What became of a request to write firmware."""

    state: Word | None  # writing, written or failed; None: nothing had to be written, or chips are in use
    held: Annotated[list[Holder], listing(schema.of(Holder), 10000)]  # because of whom nothing was written
    msg: Told  # what was done, or why it failed


class VnpuAnswer(TypedDict):
    """What became of a request to divide the chips."""

    changed: bool
    msg: Told  # what was done


class RebootAnswer(TypedDict):
    """What became of a request to reboot."""

    already: bool  # the boot that was to end had ended before
    queued: bool  # the host is about to go down, by this call or an earlier one
    held: Annotated[list[Holder], listing(schema.of(Holder), 10000)]  # who kept it from being rebooted


# --- the checks ---

ADVICE = "Check that its address belongs to the right host, and that its Python was not changed"
_FACTS, _VALIDATION = schema.of(Facts), schema.of(Validation)
_VERDICT, _VIEW, _REBOOT_ANSWER = schema.of(Verdict), schema.of(View), schema.of(RebootAnswer)
_ACCEPTANCE_ANSWER = schema.of(AcceptanceAnswer)
_FIRMWARE_ANSWER, _VNPU_ANSWER, _PING_ANSWER = schema.of(FirmwareAnswer), schema.of(VnpuAnswer), schema.of(PingAnswer)


def why_not(facts: Any, validation: Any = None) -> str | None:
    """Why this cannot be a host's Facts and its Validation, as a sentence; None if they can."""
    try:
        _FACTS(facts if facts is not None else {}, "")
        _VALIDATION(validation if validation is not None else {}, "validation")
        # Each host with chips says these; what is decided for it needs them.
        for name in ("kernel", "boot_id") if facts and facts.get("chip_count") else ():
            if not facts.get(name):
                raise Misfit("%s is missing" % name)
    except Misfit as exc:
        return "its facts are not valid: %s. %s" % (exc, ADVICE)
    return None


def verdict(answer: Any) -> Verdict:
    """What npu_validate answered. Raises NpuError."""
    return _checked(_VERDICT, answer)


def chips_of(validation: Any) -> list[ChipHealth]:
    """``chip_health`` of a validation that has not been checked; [] if it is not valid."""
    try:
        _VALIDATION(validation, "")
    except Misfit:
        return []
    return validation.get("chip_health") or []


def ping_results(answer: Any) -> list[PingResult]:
    """What npu_hccn_ping answered; [] if it failed, or it is not valid."""
    try:
        _PING_ANSWER(answer, "")
    except Misfit:
        return []
    return answer["results"]


def view(answer: Any) -> View:
    """What npu_trial_boot answered as ``view``. Raises NpuError."""
    return _checked(_VIEW, answer)


def acceptance_answer(answer: Any) -> AcceptanceAnswer:
    """What npu_accept answered. Raises NpuError."""
    return _checked(_ACCEPTANCE_ANSWER, answer)


def reboot_answer(answer: Any) -> RebootAnswer:
    """What npu_trial_boot answered to state=rebooted. Raises NpuError."""
    return _checked(_REBOOT_ANSWER, answer)


def firmware_answer(answer: Any) -> FirmwareAnswer:
    """What npu_firmware answered. Raises NpuError."""
    return _checked(_FIRMWARE_ANSWER, answer)


def vnpu_answer(answer: Any) -> VnpuAnswer:
    """What npu_vnpu answered. Raises NpuError."""
    return _checked(_VNPU_ANSWER, answer)


def waiting_firmware(facts: Facts | dict[str, Any]) -> str | None:
    """The firmware that was written into the chips in this boot, and that they run after the next one; None without any."""
    flash = (facts.get("upgrade") or {}).get("flash") or {}
    boot_id = facts.get("boot_id")
    return flash.get("version") if boot_id and (flash.get("state"), flash.get("boot_id")) == ("written", boot_id) else None


def _checked(shape: Shape, answer: Any) -> Any:
    try:
        shape(answer, "")
    except Misfit as exc:
        raise NpuError("What the host answered is not valid: %s. %s" % (exc, ADVICE))
    return answer
