# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accept this host: find out whether its chips are fit to serve.

Level 1 looks, as npu_validate does, and judges more strictly. Levels 2 and 3 also run Huawei's diagnosis, which loads the chips.
"""

from __future__ import annotations

import functools
import re
import time

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import (
    ascend_dmi,
    diagnosis,
    history,
    image_traces,
    toolbox_image,
)
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import (
    DONE,
    FAIL,
    PASS,
    PULLING,
    RUNNING,
    UNKNOWN,
    WARNING,
    finding,
)
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import holders
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import exclusive, make_directory
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import RegistryDenied
from ansible_collections.npuops.ascend.plugins.module_utils._inspect.host_validation import Validation

_LOCK = "/run/npuops/acceptance.lock"
_LOOK = 1.0  # seconds
_CHIP = re.compile(r"v?davinci\d+\Z")
_HEALTH_ADVICE = "Run npu-smi info -t health -i NPU on the host; docs/chip-faults.md says what its codes mean"
_GONE_ADVICE = "Check the host's cards, power and dmesg"
_IMAGE = "toolbox image"
_CLEAR_ADVICE = "Check containerd on the host, then run accept again, which removes it"
_MOST_PULLS = 2  # the second one with a fresh token


class Acceptance:
    """The acceptance of this host at a ``level``; ``toolbox``: directory of MindCluster's ToolBox; ``blocked``: why no diagnosis
    may be started, as a clause, or None; ``ignore``: names of checks that keep none from being started; ``keep``: whether the host
    keeps the result; ``validation``: options of ``Validation``; ``fs``: the host's / (empty: this machine's); ``image``: the
    ToolboxImage that has the directory, None for the host.
    """

    def __init__(self, level, toolbox=ascend_dmi.TOOLBOX, blocked=None, ignore=(), keep=True, validation=None, fs="", image=None):
        self.level, self.toolbox, self.blocked, self.keep, self.fs = level, toolbox, blocked, keep, fs
        self.image = image
        self.ignore = frozenset(ignore)
        self._options = validation or {}

    @functools.cached_property
    def _validation(self):
        return Validation(fs=self.fs, **self._options)

    @functools.cached_property
    def _host(self):
        """The ``Validation`` of this host, which has run."""
        self._validation.run()
        return self._validation

    def look(self, wait, began=None):
        """Begin, or continue what an earlier call has begun, and wait at most ``wait`` seconds. ``began``: what an earlier call has
        returned; if that acceptance has ended meanwhile, its result is returned.

        Returns {"state", "boot_id", "began", "result"}: result is {"level", "began", "ended", "driver", "firmware", "chips",
        "findings"}, or None while the diagnosis runs, or while its image is pulled. Raises NpuError.
        """
        deadline = time.monotonic() + wait
        make_directory(self.fs + "/run/npuops")
        with exclusive(self.fs + _LOCK, wait + 20, "accepting the chips"):
            result = diagnosis.ended(began, self.fs) if began else None
            if result is not None:
                return self._told(DONE, began, result)
            begun = diagnosis.waiting(self.fs)
            if begun is not None and begun["level"] != self.level:
                self._end_other(begun)
                begun = None
            if begun is None:
                begun, found = self._begin()
                if found is not None:
                    return self._end(begun, found)
            while True:
                found = self._continue(begun)
                if found is not None:
                    return self._end(begun, found)
                if time.monotonic() >= deadline:
                    return self._told(PULLING if _pulls(begun) else RUNNING, begun["began"], None)
                time.sleep(_LOOK)

    def _end_other(self, begun):
        """What was begun at another level has ended, and no call has asked for its result since. Raises NpuError if it runs."""
        if begun["found"] is not None:
            found = begun["found"]
        elif _pulls(begun):
            found = diagnosis.went_down(begun, self.fs)
            if found is None and transient_unit.end(diagnosis.UNIT):
                found = [_not_run(begun, "not run, because nothing went on when its image was pulled")]
        else:
            found = diagnosis.result(begun, self.fs)
        if found is None:
            raise NpuError(
                "An acceptance of level %d has been running on this host since %s. Wait until it ends, or stop it with "
                "systemctl stop %s" % (begun["level"], begun["began"], diagnosis.UNIT)
            )
        self._end(begun, found)

    def _begin(self):
        """(what was begun, the findings of the diagnosis), None for those if it has been started."""
        begun = {"level": self.level, "boot_id": host_boot.boot_id(self.fs), "began": _now(), "findings": self._looked()}
        begun.update(image=None, found=None)
        if self.level == 1 or not self._chips():
            return begun, []
        if self.keep and self._clear():
            # It may load the chips still. The end says more.
            return begun, [_not_run(begun, "not run, because the image of an earlier acceptance is still used")]
        return begun, self._attempt(begun, self._start)

    def _attempt(self, begun, start):
        """``start(begun)``, if nothing is in its way: None, or the findings that say why not."""
        obstacle = self._obstacle(begun["findings"])
        if obstacle is None:
            try:
                start(begun)
                return None
            except NpuError as exc:
                obstacle = exc.message, toolbox_image.ADVICE if self.image or begun["image"] else None
        return [_not_run(begun, *obstacle)]

    def _start(self, begun):
        """Start the diagnosis, or the pull of its image."""
        if self.image is None:
            diagnosis.start(begun, ascend_dmi.command(self.toolbox, self.level, self.fs), self.fs)
            return
        begun["image"] = {"name": self.image.find(), "pulls": 0, "pulled": False}
        self._pull(begun)

    def _pull(self, begun):
        begun["image"]["pulls"] += 1
        diagnosis.remember(begun, self.fs)
        self.image.pull(begun["image"]["name"])

    def _run(self, begun):
        """Start the diagnosis of the image that was pulled."""
        image = begun["image"]
        argv = toolbox_image.run_command(image["name"], self.toolbox, begun["level"], self._validation.root, self.fs)
        image["pulled"] = True
        diagnosis.start(begun, argv, self.fs, image_traces.unit_properties(self.fs))

    def _continue(self, begun):
        """The findings of the diagnosis, None while it goes on. Its next step is begun when one has ended."""
        if begun["found"] is not None:
            return begun["found"]
        if _pulls(begun):
            return self._after_pull(begun)
        found = diagnosis.result(begun, self.fs)
        if found is None or begun["image"] is None:
            return found
        return [*found, finding(_IMAGE, begun["level"], PASS, begun["image"]["name"])]

    def _after_pull(self, begun):
        found = diagnosis.went_down(begun, self.fs)
        if found:
            return found
        end = transient_unit.end(diagnosis.UNIT)
        if end is None:
            return None
        image = begun["image"]
        error = toolbox_image.failure(end, image["name"], self.image.secrets if self.image else (), self.fs)
        if error is None:
            # Pods and processes may have come to the chips since the pull began.
            return self._attempt(begun, self._run)
        if self.image and isinstance(error, RegistryDenied) and image["pulls"] < _MOST_PULLS:
            return self._attempt(begun, self._pull)
        return [_not_run(begun, error.message, toolbox_image.ADVICE)]

    def _clear(self):
        """Remove what images have left on this host: findings if that fails."""
        try:
            image_traces.clear(self.fs)
        except NpuError as exc:
            return [finding(_IMAGE, self.level, WARNING, "could not be removed: %s" % exc.message, _CLEAR_ADVICE)]
        return []

    def _chips(self):
        return self._host.host.chips if self._host.host else 0

    def _obstacle(self, looked):
        """Why no diagnosis is started, as (what is so, what to do), or None."""
        if any(found["verdict"] == FAIL and found["name"] not in self.ignore for found in looked):
            return "not run, because the host does not pass level 1", "Repair that first, then run accept again"
        if self.blocked:
            return self.blocked, None
        held = [entry for entry in holders(self.fs) if any(map(_CHIP.match, entry["device"].split(", ")))]
        if held:
            told = ", ".join("%s (process %d, %s)" % (entry["command"], entry["pid"], entry["device"]) for entry in held[:4])
            return "not run, because chips are in use: %s" % told, "End these processes, then run accept again"
        return None

    def _looked(self):
        """The findings of level 1."""
        validation = self._host
        results = [result for result in validation.results if result["name"] != "health"]
        if validation.network != "strict":
            results += validation.network_results
        found = [
            finding(result["name"], 1, PASS if result["ok"] else FAIL, result["seen"], result["message"]) for result in results
        ]
        lost = [finding("chip_count", 1, FAIL, validation.missing, _GONE_ADVICE)] if validation.missing else []
        if not self._chips():
            # Of lost ones, the check of the host says the same.
            return lost or found or [finding("chips", 1, UNKNOWN, "this host has no chips", "Leave it out with --limit")]
        if validation.chip_health:
            found.append(self._health())
        return found + lost

    def _health(self):
        chips = self._host.chip_health
        sick = chip_health.ill(chips)
        if not sick:
            return finding("chip_health", 1, PASS, "OK for %d chips" % len(chips))
        verdict = WARNING if all(map(chip_health.serves, sick)) else FAIL
        return finding("chip_health", 1, verdict, chip_health.told(chips), _HEALTH_ADVICE)

    def _end(self, begun, found):
        result = {
            "level": begun["level"],
            "began": begun["began"],
            "ended": _now(),
            "driver": self._host.driver["version"],
            "firmware": self._host.firmware,
            "chips": self._chips(),
            "findings": begun["findings"] + found,
        }
        if self.keep:
            waits = diagnosis.waiting(self.fs) is not None
            if waits and begun["image"]:
                # To remove it takes a while. A call that is cut off then must not lose hours of a diagnosis.
                diagnosis.remember(dict(begun, found=found), self.fs)
            result["findings"] += self._clear()
            history.add(result, self.fs)
            if waits:
                diagnosis.end(begun, result, self.fs)
        return self._told(DONE, begun["began"], result)

    def _told(self, state, began, result):
        return {"state": state, "boot_id": host_boot.boot_id(self.fs), "began": began, "result": result}


def _pulls(begun):
    """Whether the image of the diagnosis is being pulled, or was when a call last looked."""
    return bool(begun["image"]) and not begun["image"]["pulled"]


def _not_run(begun, why, advice=None):
    return finding(diagnosis.NAME, begun["level"], UNKNOWN, why, advice)


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
