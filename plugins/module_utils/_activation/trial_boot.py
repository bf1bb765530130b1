# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a maintenance that happens on the host: select the release that the next boot tries, reboot, confirm or withdraw it.

After any interruption, the next boot selects a complete release (npu-driver-select), and the same call continues. The order of the
writes ensures that no reboot is queued before the fence excludes older runs, and that a release is tried only by a reboot that a
run requested.

    /var/lib/npuops/maintenance   {"generation"}: the fence. A call with a smaller generation is refused
    /run/npuops/maintenance       the same; while it exists, the health watch reports nothing
    /var/lib/npuops/trial         {"generation", "release", "boot_id"}: the last trial boot, written by npu-driver-select
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_ports, npu_smi, port_losses
from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._driver import loaded_driver
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout, parts
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import fence as host_fence
from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels as host_kernels
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import (
    exclusive,
    make_directory,
    read_object,
    read_text,
    remove_file,
    write_atomic,
)

MAINTENANCE = "/run/npuops/maintenance"
TRIAL = "/var/lib/npuops/trial"
LOCK = "/run/npuops/boot.lock"
DRIVER_UNIT = "npu-driver.service"
_NPU_SMI_SECONDS = 15  # which may first wait for another one; a call of a maintenance must end within 60
_PORT_SECONDS, _PORTS_SECONDS = 5, 20  # for one call of hccn_tool, and for those of all ports
ENABLED = "/etc/systemd/system/multi-user.target.wants/npu-driver-select.service"

# The transient unit for a reboot. It exists only in systemd's memory, so a queued reboot does not outlive its boot.
REBOOT_UNIT = "npuops-reboot"
# It waits for the calling process, at most 5 s and a little more, so that the result is sent before the connection ends.
# It contains no dollar sign, which systemd would expand.
_REBOOT_SCRIPT = "for try in %s; do [ -e /proc/%%d ] || break; sleep 0.1; done; sleep 0.3; exec systemctl reboot" % (
    " ".join(str(number) for number in range(50))
)


def view(root, fs="", chips=False, network=False):
    """The state of the host on which a maintenance depends, as a dict; see the module npu_trial_boot. ``chips``: with those that
    npu-smi lists; ``network``: with their network ports.
    """
    layout = Layout(fs + root)
    facts = loaded_driver.driver_facts(root, "image", fs)
    asked = {"chips": _listed(root, fs)} if chips else {}
    if network:
        asked["ports"] = _ports(root, fs)
    return dict(
        asked,
        boot_id=host_boot.boot_id(fs),
        generation=host_fence.generation(fs),
        driver=facts["release"],
        good=facts["good"],
        next=facts["next"],
        previous=layout.target("previous"),
        releases=layout.releases(),
        trial=read_object(fs + TRIAL),
        holders=holders(fs),
        ready=facts["ready"],
        failed=facts["failed"],
        loaded_version=facts["loaded_version"],
        unit=_state(DRIVER_UNIT),
        uptime=host_boot.uptime(fs),
        kernel=os.uname().release,
        next_kernel=host_kernels.next_kernel(fs),
        going_down=is_going_down(),
        firmware=flash_state.view(host_boot.boot_id(fs), fs),
    )


def _listed(root, fs):
    """What npu-smi lists; None if it does not, for whatever reason."""
    try:
        return npu_smi.NpuSmi(fs + root + "/driver", timeout=_NPU_SMI_SECONDS, lock=fs + npu_smi.LOCK).info()["chips"]
    except NpuError:
        return None


def _ports(root, fs):
    """The network ports as port_losses.by_chip has them; None if there are none, or nothing is known of them."""
    try:
        ports = hccn_ports.gather(fs + root + "/driver", fs, _PORT_SECONDS, _PORTS_SECONDS, items=("link", "ip"))
    except NpuError:
        return None
    return port_losses.by_chip(ports) or None


def wait_decided(root, seconds, fs=""):
    """Wait until the driver of this boot is ready or its unit has failed, at most ``seconds`` seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if loaded_driver.driver_facts(root, "image", fs)["ready"] or _state(DRIVER_UNIT) == "failed":
            return
        time.sleep(0.2)


def reboot_reason(root, boot_id, generation, release=None, fs=""):
    """Why the host would be rebooted, as a phrase; None if it was already rebooted or the reboot is queued. Raises NpuError if the
    host must not be rebooted.

    The same check as that of ``reboot``, without the processes that have a chip open.
    """
    current = host_boot.boot_id(fs)
    check_generation(generation, fs)
    if boot_id != current:
        return None
    if is_going_down():
        return None
    flash = flash_state.view(current, fs)
    if flash is not None and flash["state"] == flash_state.WRITING:
        raise NpuError(
            "The firmware %s is being written into the chips of this host. A reboot now could damage them: wait until it ends"
            % flash["version"]
        )
    if release is None:
        return "reboot"
    layout = Layout(fs + root)
    damage = layout.damage(release)
    if damage:
        raise NpuError("%s. Run npuops.ascend.upgrade, which stages it again" % damage, release=release)
    check_kernel(layout, release, fs)
    if not os.path.lexists(fs + ENABLED):
        raise NpuError(
            "npu-driver-select.service is not enabled on this host, so the next boot would not try %s. Run npuops.ascend.install"
            % release
        )
    return "reboot, to try %s" % release


def reboot(root, boot_id, generation, release=None, refuse_held=True, fs=""):
    """Reboot the host, unless ``boot_id`` is no longer its boot. With ``release``, the next boot tries that release.

    Returns {"reason", "already", "queued", "held"}; reason: what was done, or None if nothing was done. Returns before the host
    goes down. Raises NpuError without any change if the generation is older than the host's, or if the release cannot be tried.
    """
    result = {"reason": None, "already": False, "queued": False, "held": []}
    with alone(fs):
        reason = reboot_reason(root, boot_id, generation, release, fs)
        if reason is None:
            result["already"] = boot_id != host_boot.boot_id(fs)
            result["queued"] = not result["already"]
            return result
        if refuse_held:
            result["held"] = holders(fs)
            if result["held"]:
                return result
        fence(generation, fs)
        layout = Layout(fs + root)
        if release is None:
            layout.remove_link("next")
        else:
            layout.point("next", release)
        _queue_reboot()
    result["reason"] = reason
    return result


def fence(generation, fs=""):
    """Exclude runs with a smaller generation, and tell the health watch that the host is in maintenance."""
    content = json.dumps({"generation": generation}) + "\n"
    _write(fs + host_fence.FENCE, content)
    _write(fs + MAINTENANCE, content)


def confirm_reason(root, generation, release, boot_id=None, fs=""):
    """What ``confirm`` would do, as a phrase, or None. Raises NpuError if the driver of this boot is not that release."""
    layout = Layout(fs + root)
    check_generation(generation, fs)
    current = host_boot.boot_id(fs)
    if boot_id and boot_id != current:
        raise NpuError("The host was rebooted after its driver was validated (boot ID %s, expected %s)" % (current, boot_id))
    if layout.target("driver") != release:
        raise NpuError("The driver of this boot is %s, so %s cannot be confirmed" % (layout.target("driver"), release))
    if layout.target("good") != release:
        return "point good to %s" % release
    if os.path.lexists(fs + MAINTENANCE):
        return "end the maintenance"
    return None


def confirm(layout, release, fs=""):
    """Confirm ``release``: previous := good, good := release. This ends the maintenance of this host.

    After any interruption, good points to the old or the new release.
    """
    good = layout.target("good")
    if good != release:
        if good is not None and layout.is_complete(good):
            layout.point("previous", good)
        layout.point("good", release)
    _unlink(fs + TRIAL)
    _unlink(fs + MAINTENANCE)


def confirm_boot(root, generation, release, boot_id=None, fs=""):
    """``confirm`` the trial of this boot; returns the phrase of ``confirm_reason``."""
    with alone(fs):
        reason = confirm_reason(root, generation, release, boot_id, fs)
        if reason:
            confirm(Layout(fs + root), release, fs)
    return reason


def withdraw_reason(root, generation, fs=""):
    """What ``withdraw`` would do, as a phrase, or None."""
    check_generation(generation, fs)
    if os.path.islink(os.path.join(fs + root, "next")):
        return "remove next"
    if os.path.lexists(fs + MAINTENANCE):
        return "end the maintenance"
    if generation > host_fence.generation(fs):
        return "refuse requests of older runs"
    return None


def withdraw(root, generation, fs=""):
    """Ensure that the next boot tries no release, and end the maintenance. Returns the phrase of ``withdraw_reason``.

    The fence comes first, so that a run that was considered dead and resumes cannot make the host try a release.
    """
    with alone(fs):
        reason = withdraw_reason(root, generation, fs)
        if reason:
            _write(fs + host_fence.FENCE, json.dumps({"generation": generation}) + "\n")
            Layout(fs + root).remove_link("next")
            _unlink(fs + MAINTENANCE)
    return reason


def check_generation(generation, fs=""):
    """Raise NpuError if a run with a larger ``generation`` has been at this host."""
    stored = host_fence.generation(fs)
    if stored > generation:
        raise NpuError(
            "Another run has taken this host over (generation %d, this run has %d): nothing was changed" % (stored, generation),
            generation=stored,
        )


def check_kernel(layout, release, fs=""):
    """Raise NpuError unless the release, or another release of its version, is for the kernel that the next boot loads; for the
    running one if that is unknown. npu-driver-select can select either.
    """
    running, version = os.uname().release, parts(release)[0]
    kernel = host_kernels.next_kernel(fs) or running
    kernels = {layout.manifest(name).get("kernel") for name in layout.releases() if name == release or parts(name)[0] == version}
    if kernel in kernels:
        return
    if kernel != running:
        raise NpuError(
            "The reboot of this host would be into kernel %s, for which no release of driver %s is staged. Run "
            "npuops.ascend.upgrade, which stages one, or let the host boot %s" % (kernel, version, running),
            release=release,
        )
    raise NpuError(
        "Neither release %s nor another staged release of %s is for the kernel of this host (%s). Run npuops.ascend.upgrade, "
        "which stages one" % (release, version, kernel),
        release=release,
    )


@contextlib.contextmanager
def alone(fs=""):
    """Allow one of these calls at a time. The lock ends with the process, or with the boot."""
    make_directory(os.path.dirname(fs + LOCK))
    with exclusive(fs + LOCK, 20, "changing what the next boot does"):
        yield


def _write(path, content):
    make_directory(os.path.dirname(path))
    if read_text(path) != content:
        write_atomic(path, content, 0o644)


def _unlink(path):
    if os.path.lexists(path):
        remove_file(path)


def _state(unit):
    """The state of the unit: active, activating, inactive, failed, or unknown."""
    return host_command.run(["systemctl", "is-active", unit], 10).stdout.strip() or "unknown"


def is_going_down():
    """Whether this boot is about to end: a reboot of this collection is queued, or systemd shuts the host down."""
    if _state(REBOOT_UNIT + ".service") in ("active", "activating"):
        return True
    return host_command.run(["systemctl", "is-system-running"], 10).stdout.strip() == "stopping"


def _queue_reboot():
    # A unit that failed before would block the name.
    systemd.forget_failures(REBOOT_UNIT + ".service")
    result = host_command.run(
        [
            "systemd-run",
            "--quiet",
            "--unit=" + REBOOT_UNIT,
            "--description=Reboot for the maintenance of npuops.ascend",
            "sh",
            "-c",
            _REBOOT_SCRIPT % os.getpid(),
        ],
        20,
    )
    # Without a response, systemd may start it still: who asked waits, and asks again if the boot ID stays. An earlier call may also
    # have queued it, whose answer was lost.
    if result.rc and not is_going_down():
        raise NpuError("The reboot could not be queued: systemd-run: %s" % (result.text or "no output"))
