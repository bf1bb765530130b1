# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's part of a maintenance: what the next boot tries, the reboot itself, and what a boot is taken for.

Whatever is interrupted here, the next boot chooses a complete release (npu-driver-select), and the same call
again goes on. The order of writes sees to two things: no reboot is on its way before the fence keeps older runs out,
and a release is only ever tried with a reboot that somebody wanted.

    /var/lib/npuops/maintenance   {"generation"}: the fence. A call with a smaller generation is refused
    /run/npuops/maintenance       the same; while it exists the health watch keeps quiet
    /var/lib/npuops/trial         {"generation", "release", "boot_id"}: the last trial boot, by npu-driver-select
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._driver.releases import Layout
from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import (
    exclusive,
    make_directory,
    read_text,
    remove_file,
    write_atomic,
)

FENCE = "/var/lib/npuops/maintenance"
MAINTENANCE = "/run/npuops/maintenance"
TRIAL = "/var/lib/npuops/trial"
LOCK = "/run/npuops/boot.lock"
DRIVER_UNIT = "npu-driver.service"
ENABLED = "/etc/systemd/system/multi-user.target.wants/npu-driver-select.service"

# The transient unit of a reboot. It lives in systemd's memory only: a reboot that is queued ends with its boot.
REBOOT_UNIT = "npuops-reboot"
# It waits for the process that asked, so that the answer gets out before the connection dies: at most 5 s, and a moment more.
# Without a dollar sign, which systemd would take for its own.
_REBOOT_SCRIPT = "for try in %s; do [ -e /proc/%%d ] || break; sleep 0.1; done; sleep 0.3; exec systemctl reboot" % (
    " ".join(str(number) for number in range(50))
)


def view(root, fs=""):
    """Everything of the host that a maintenance decides by, as a dict; see the module npu_trial_boot."""
    layout = Layout(fs + root)
    facts = host_facts.driver_facts(root, "image", fs)
    return {
        "boot_id": host_facts.boot_id(fs),
        "generation": _generation(fs),
        "driver": facts["release"],
        "good": facts["good"],
        "next": facts["next"],
        "previous": layout.target("previous"),
        "releases": layout.releases(),
        "trial": _read_json(fs + TRIAL),
        "holders": holders(fs),
        "ready": facts["ready"],
        "failed": facts["failed"],
        "loaded_version": facts["loaded_version"],
        "unit": _state(DRIVER_UNIT),
        "uptime": host_facts.uptime(fs),
        "kernel": os.uname().release,
        "going_down": _reboot_is_queued(),
    }


def wait_decided(root, seconds, fs=""):
    """Wait until the driver of this boot is ready or its unit has failed, at most so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if host_facts.driver_facts(root, "image", fs)["ready"] or _state(DRIVER_UNIT) == "failed":
            return
        time.sleep(0.5)


def reboot_reason(root, boot_id, generation, release=None, fs=""):
    """Why the host would be rebooted, as a phrase; None when it was, or will be in a moment. NpuError if it must not.

    The same check that ``reboot`` makes, without the holders of chips.
    """
    current = host_facts.boot_id(fs)
    _check_generation(generation, fs)
    if boot_id != current:
        return None
    if _reboot_is_queued():
        return None
    if release is None:
        return "reboot"
    layout = Layout(fs + root)
    damage = layout.damage(release)
    if damage:
        raise NpuError("%s: stage it again (npuops.ascend.upgrade does)" % damage, release=release)
    _check_kernel(layout, release)
    if not os.path.lexists(fs + ENABLED):
        raise NpuError(
            "npu-driver-select.service is not enabled on this host, so no boot would try %s. Run npuops.ascend.install" % release
        )
    return "reboot, to try %s" % release


def reboot(root, boot_id, generation, release=None, refuse_held=True, fs=""):
    """Reboot the host once, unless ``boot_id`` is no longer its boot: with ``release``, the next boot tries that.

    Returns {"reason", "already", "queued", "held"}; reason: what was done, or None when nothing was. Returns before the host
    goes down. NpuError, and nothing changed, when the generation is older than the host's or the release cannot be tried.
    """
    result = {"reason": None, "already": False, "queued": False, "held": []}
    with _alone(fs):
        reason = reboot_reason(root, boot_id, generation, release, fs)
        if reason is None:
            result["already"] = boot_id != host_facts.boot_id(fs)
            result["queued"] = not result["already"]
            return result
        if refuse_held:
            result["held"] = holders(fs)
            if result["held"]:
                return result
        fence = json.dumps({"generation": generation}) + "\n"
        _write(fs + FENCE, fence)
        _write(fs + MAINTENANCE, fence)
        layout = Layout(fs + root)
        if release is None:
            layout.remove_link("next")
        else:
            layout.point("next", release)
        _queue_reboot()
    result["reason"] = reason
    return result


def confirm_reason(root, generation, release, boot_id=None, fs=""):
    """What ``confirm`` would do, as a phrase, or None. NpuError when this boot's driver is not that release."""
    layout = Layout(fs + root)
    _check_generation(generation, fs)
    current = host_facts.boot_id(fs)
    if boot_id and boot_id != current:
        raise NpuError("The host was rebooted since its driver was validated (boot ID %s, expected %s)" % (current, boot_id))
    if layout.target("driver") != release:
        raise NpuError("The driver of this boot is %s, not %s: that one is not taken as good" % (layout.target("driver"), release))
    if layout.target("good") != release:
        return "let good name %s" % release
    if os.path.lexists(fs + MAINTENANCE):
        return "end the maintenance"
    return None


def confirm(layout, release, fs=""):
    """Take ``release`` as good: previous := good, good := release; the maintenance of this host is over.

    Interrupted anywhere, good names the old release or the new one.
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
    with _alone(fs):
        reason = confirm_reason(root, generation, release, boot_id, fs)
        if reason:
            confirm(Layout(fs + root), release, fs)
    return reason


def withdraw_reason(root, generation, fs=""):
    """What ``withdraw`` would do, as a phrase, or None."""
    _check_generation(generation, fs)
    if os.path.islink(os.path.join(fs + root, "next")):
        return "remove next"
    if os.path.lexists(fs + MAINTENANCE):
        return "end the maintenance"
    if generation > _generation(fs):
        return "refuse what older runs ask for"
    return None


def withdraw(root, generation, fs=""):
    """The next boot tries nothing, and the maintenance of this boot is over. Returns the phrase of ``withdraw_reason``.

    The fence comes first: a run that was taken for dead and wakes up must not let the host try something after all.
    """
    with _alone(fs):
        reason = withdraw_reason(root, generation, fs)
        if reason:
            _write(fs + FENCE, json.dumps({"generation": generation}) + "\n")
            Layout(fs + root).remove_link("next")
            _unlink(fs + MAINTENANCE)
    return reason


def _check_generation(generation, fs):
    stored = _generation(fs)
    if stored > generation:
        raise NpuError(
            "Another run has taken this host over (generation %d, ours is %d): nothing was changed" % (stored, generation),
            generation=stored,
        )


def _check_kernel(layout, release):
    """NpuError unless the release, or another one of its version, is for the running kernel. npu-driver-select knows both."""
    kernel, version = os.uname().release, release.split("-", 1)[0]
    kernels = {
        layout.manifest(name).get("kernel") for name in layout.releases() if name == release or name.startswith(version + "-")
    }
    if kernel not in kernels:
        raise NpuError(
            "Release %s is not for the kernel of this host (%s), and no staged release of %s is" % (release, kernel, version),
            release=release,
        )


def _generation(fs):
    found = _read_json(fs + FENCE) or {}
    generation = found.get("generation")
    return generation if isinstance(generation, int) else 0


def _read_json(path):
    """The JSON object in ``path``, or None."""
    try:
        found = json.loads(read_text(path) or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


@contextlib.contextmanager
def _alone(fs):
    """One of these calls at a time; the lock ends with its process, or with the boot."""
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
    """active, activating, inactive, failed...; unknown when systemd does not say."""
    return host_command.run(["systemctl", "is-active", unit], 10).stdout.strip() or "unknown"


def _reboot_is_queued():
    """Whether this boot is about to end. Asking again would do no harm: no queue outlives its boot."""
    if _state(REBOOT_UNIT + ".service") in ("active", "activating"):
        return True
    return host_command.run(["systemctl", "is-system-running"], 10).stdout.strip() == "stopping"


def _queue_reboot():
    # What a failed attempt left would be in the way of the name.
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
    if result.rc != 0:
        raise NpuError("The reboot could not be queued: systemd-run: %s" % (result.text or "no answer within 20 s"))
