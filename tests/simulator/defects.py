# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects that the product once had, or could easily have: each is put back into a copy of it, and must be found.

That is how the simulator proves that it looks at anything. A defect is a piece of text that is replaced by another one; it stands
here with the schedule in found/ that finds it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
FOUND = Path(__file__).resolve().parent / "found"
_LIBRARY = "plugins/plugin_utils"


@dataclasses.dataclass(frozen=True)
class Defect:
    """``file``: below plugins/plugin_utils; ``before``: stands in it once; ``why``: what it does."""

    name: str
    why: str
    file: str
    before: str
    after: str


DEFECTS = (
    Defect(
        "takes-anothers-end-for-its-own",
        "A run that has cleared away what another one had begun ends with that, and says that its own is done.",
        "_maintenance/steps.py",
        "return None if more else outcome",
        "return outcome",
    ),
    Defect(
        "no-record-no-trial",
        "Only the record tells that a boot is a trial, and not the host.",
        "_maintenance/host_side.py",
        'return bool(trial and trial["release"] == driver != view["good"] and trial["boot_id"] == view["boot_id"])',
        "return False",
    ),
    Defect(
        "chips-that-were-ill-before",
        "A new driver is blamed for chips that were as they are with the old one.",
        "_maintenance/validation.py",
        "chip_health.worse(before, chips)",
        'chip_health.worse(dict.fromkeys(chip_health.by_key(chips), "OK"), chips)',
    ),
    Defect(
        "settled-by-label",
        "A node without the label of a step counts as up to date, whatever its host runs.",
        "_maintenance/adopt.py",
        "        request, node = self._request, self._log.node\n        if request.release is None:",
        "        raise NotDue(UP_TO_DATE)\n        if request.release is None:",
    ),
    Defect(
        "any-cordon-is-ours",
        "At its end a maintenance uncordons the node, whoever cordoned it since.",
        "_maintenance/end.py",
        "return False if maintenance_record.cordoned_by(node) in (None, maintenance_record.CORDON_MANAGER) else None",
        "return False",
    ),
    Defect(
        "keep-cordoned-ignored",
        "The label keep-cordoned is not looked at.",
        "_maintenance/end.py",
        'if record["unschedulable"] or maintenance_record.is_true(kube_client.labels(node), maintenance_record.LABEL_KEEP_CORDONED):',
        'if record["unschedulable"]:',
    ),
    Defect(
        "two-wall-clocks",
        "Silence is judged by what two machines take for the time.",
        "_maintenance/begin.py",
        "left = limit - (clock.monotonic() - started)",
        'left = limit - (clock.wall() - (maintenance_record.seconds_of(found.get("heartbeat")) or 0))',
    ),
    Defect(
        "restores-what-others-park",
        "A run restores what another one has parked, though that one lives.",
        "_record/run_liveness.py",
        "    before = _all_signs(cluster, runs, life)\n",
        "    return set()\n    before = _all_signs(cluster, runs, life)\n",
    ),
    Defect(
        "halt-forgotten-after-cordon",
        "A halt stops nodes that are not cordoned yet, and no other.",
        "_maintenance/reboot.py",
        "(with_a_slot, into_a_kernel_with_the_driver, without_holders)",
        "(into_a_kernel_with_the_driver, without_holders)",
    ),
    Defect(
        "slot-lost-and-kept",
        "A run that stalls, and whose slot went to another node, goes on with its own.",
        "_record/slots.py",
        'return mine.get("run") == run',
        "return True",
    ),
    Defect(
        "no-limit",
        "As many nodes as there are go into maintenance at once.",
        "_record/slots.py",
        "if number and len(holders) >= number:",
        "if False:",
    ),
    Defect(
        "no-first-of-its-kind",
        "All nodes of a kind try a new driver at once.",
        "_record/slots.py",
        "if not pool or pool in _proved(slots):\n        return None",
        "return None",
    ),
    Defect(
        "approval-not-asked",
        "The approval is not looked at before the intent.",
        "_maintenance/reboot.py",
        'if given is None and record["approval"] is None and not work.policy.auto:',
        "if False:",
    ),
    Defect(
        "skip-ignored",
        "A node that somebody wants left out after all is rebooted.",
        "_maintenance/context.py",
        "        check_skip(node)\n        if not maintenance_record.unschedulable(node):",
        "        if not maintenance_record.unschedulable(node):",
    ),
    Defect(
        "uncordoned-meanwhile",
        "A node that somebody has put back into service during its drain is rebooted.",
        "_maintenance/context.py",
        "        if not maintenance_record.unschedulable(node):\n            raise Uncordoned()",
        "        pass",
    ),
    Defect(
        "no-second-look-at-pods",
        "Pods that came back since the drain are rebooted with the host.",
        "_maintenance/steps.py",
        '    count = work.pods.evict_returned(MOST_RETURNS)\n    if count:\n        work.say("pods that had come back gone',
        '    count = 0\n    if count:\n        work.say("pods that had come back gone',
    ),
    Defect(
        "old-generation",
        "Who takes a node over keeps the generation: what the dead run had on its way still counts.",
        "_maintenance/begin.py",
        'generation = max(generation, view["generation"] if view else 0) + 1',
        "pass",
    ),
    Defect(
        "labels-of-another-boot",
        "install writes what it found out before somebody else rebooted the host.",
        "_kube/client.py",
        '        _check_boot(node, entry.get("boot_id"))\n',
        "",
    ),
    Defect(
        "lost-answer-lost-node",
        "A write whose answer was lost is taken for somebody else's.",
        "_record/node_log.py",
        "return self.record != before and there == maintenance_record.encode(self.record)",
        "return False",
    ),
    Defect(
        "components-stay-paused",
        "What was paused for a maintenance stays so when it is given back.",
        "_maintenance/end.py",
        'labels[kube_client.LABEL_COMPONENTS] = "enabled"',
        "pass",
    ),
    Defect(
        "nothing-confirmed",
        "The driver is called good without having been confirmed on the host.",
        "_maintenance/steps.py",
        "confirmed = release is None or Check(work).confirm(release, boot_id)",
        "confirmed = True",
    ),
    Defect(
        "components-let-run",
        "A node on its way back waits for components to leave that nobody has told to.",
        "_maintenance/rollback_step.py",
        "    if labels:\n        # The components were allowed to run since",
        "    if False:\n        # The components were allowed to run since",
    ),
    Defect(
        "left-cordoned-by-nobody",
        "A cordon of ours whose record is gone counts as somebody else's.",
        "_maintenance/steps.py",
        "ours = maintenance_record.cordoned_by(node) == maintenance_record.CORDON_MANAGER",
        "ours = False",
    ),
    Defect(
        "uninstall-leaves-cordons",
        "uninstall takes away what tells whose a cordon is, and leaves the cordon.",
        "_withdrawal/withdrawal.py",
        "if maintenance_record.cordon_is_ours(self.node):",
        "if False:",
    ),
    Defect(
        "uninstall-does-not-look-again",
        "uninstall takes the record from a node with which an upgrade has begun meanwhile.",
        "_withdrawal/withdrawal.py",
        "if one.in_maintenance and not force:",
        "if False:",
    ),
    Defect(
        "begun-and-left",
        "The plan does not look at the record of a maintenance that a dead run left.",
        "_plan/node_verdict.py",
        "    Rule(IN_FLIGHT, _is_in_maintenance),\n",
        "",
    ),
    Defect(
        "silent-beside-a-frozen-host",
        "A run that has parked workloads shows no sign of life while it waits for a host that does not answer.",
        "_maintenance/context.py",
        "        self.life.beat()\n        if self._said and",
        "        if self._said and",
    ),
    Defect(
        "refused-for-a-dead-run",
        "The slot of a run that died before its record keeps out every run that wants another number of slots.",
        "_record/slots.py",
        "if not any(self._watch.has_begun(name, holder) for name, holder in others.items()):",
        "if False:",
    ),
    Defect(
        "conflict-wins",
        "Records are written over whatever somebody else has written meanwhile.",
        "_record/node_log.py",
        '                "resourceVersion": node["metadata"]["resourceVersion"],\n                "labels"',
        '                "labels"',
    ),
    Defect(
        "kind-forgotten-on-takeover",
        "A run that planned while the host did not answer takes its slot for a node of no kind: others no longer wait for it.",
        "_record/slots.py",
        'return known if pool and known and known.split(" ")[-1] == pool.split(" ")[-1] else pool',
        "return pool",
    ),
    Defect(
        "firmware-as-the-record-says",
        "A run writes the firmware that a record asks for, though its own settings keep that of the chips.",
        "_maintenance/firmware_write.py",
        "if not same_driver(release, work.request.release) or wanted != work.request.firmware:",
        "if False:",
    ),
    Defect(
        "waiting-firmware-not-told",
        "A node is given back after its flash was written, and nobody is told that its next boot brings other firmware.",
        "_maintenance/end.py",
        "        why += self._what_stays()\n",
        "",
    ),
    Defect(
        "local-time",
        "Records have the time of the controller's time zone.",
        "_record/record.py",
        "time.gmtime(seconds)",
        "time.localtime(seconds)",
    ),
    Defect(
        "own-clock",
        "Records have the time of the controller's own clock.",
        "_kube/clock.py",
        "return self.wall() + self._ahead",
        "return self.wall()",
    ),
    Defect(
        "max-failures-zero",
        "A run that may have any number of failures halts at the first one.",
        "_maintenance/end.py",
        "0 < most <= self._failures() + 1",
        "most <= self._failures() + 1",
    ),
    Defect(
        "approval-kept",
        "An approval stays on the Node with the intent, and counts for the next reboot as well.",
        "_maintenance/reboot.py",
        "gone = dict(approval.NOT_APPROVED)",
        "gone = {}",
    ),
    Defect(
        "approval-of-any-version",
        "A reboot into one version counts as approved by what was given for another.",
        "_record/approval.py",
        "return text if _is_purpose(text) else None",
        "return None",
    ),
    Defect(
        "approval-of-another-day",
        "What a person has approved before the chips wedged counts for the recovery, because the same client annotated the node since.",
        "_record/approval.py",
        "others = _set_with_it(node)",
        "others = []",
    ),
    Defect(
        "approval-taken-over",
        "A run for another version goes on with a record whose approval was used for the version before, and keeps that.",
        "_maintenance/begin.py",
        "if retarget and approval.given_for(found) not in (None, self._request.version):",
        "if False:",
    ),
    Defect(
        "approval-from-a-backup",
        "An approval counts again when the cluster comes back from a backup, though the host has seen the reboot that it was for.",
        "_record/approval.py",
        "if ANNOTATION_APPROVE not in kube_client.annotations(node) or not behind(node, generation):",
        "if True:",
    ),
    Defect(
        "approval-of-a-record-from-a-backup",
        "So does that of a record that comes back without its intent.",
        "_maintenance/begin.py",
        'found.get("unseen", generation if intended else generation - 1)',
        'found.get("unseen", generation)',
    ),
    Defect(
        "asked-for-nothing",
        "A node that is not due any more is still asked to approve the version that it has.",
        "_maintenance/end.py",
        "if labels[maintenance_record.LABEL_STATE] not in maintenance_record.DUE:",
        "if False:",
    ),
    Defect(
        "denials-halt",
        "A maintenance takes the first 401 or 403 of a rolling API server for the last word, and halts the rollout.",
        "_maintenance/context.py",
        "denial_retry_seconds=DENIAL_RETRY_SECONDS",
        "denial_retry_seconds=0",
    ),
    Defect(
        "window-not-asked-before-the-cordon",
        "The window is looked at when the record is written, and not when the node is cordoned, which may be much later.",
        "_maintenance/steps.py",
        "        if closed:\n            raise OutsideWindow(closed)",
        "        if False:\n            raise OutsideWindow(closed or '')",
    ),
    Defect(
        "window-by-the-machine",
        "Whether the window is open is judged by what the controller's machine takes for the time.",
        "_maintenance/context.py",
        "self.policy.window.refusal(self.clock.now())",
        "self.policy.window.refusal(self.clock.wall())",
    ),
    Defect(
        "rebooted-in-the-drain",
        "A host that a person reboots during the drain is taken for another one, because it responds before its kubelet reports.",
        "_maintenance/steps.py",
        "    except AnotherBoot:",
        "    except AssertionError:",
    ),
    Defect(
        "alert-not-looked-at-before-the-cordon",
        "Whether an alert fires is looked at before a slot is taken, and not when the node is cordoned, which may be much later.",
        "_maintenance/steps.py",
        "        alert = work.alert()\n",
        "        alert = None\n",
    ),
    Defect(
        "no-domain",
        "A node begins although as many of its domain are in maintenance as are allowed.",
        "_record/slots.py",
        "or self._full(slots, domain) or self._soaks(slots, node, soak)",
        "or self._soaks(slots, node, soak)",
    ),
    Defect(
        "domains-mix",
        "A node begins while one of another domain is in maintenance, although the nodes of a domain go together.",
        "_record/slots.py",
        "if value not in (None, domain.value)}",
        "if value is False}",
    ),
    Defect(
        "no-least",
        "A node begins although too few chips would remain allocatable.",
        "_record/slots.py",
        "            why = why or _short(least, nodes, node, holders)\n            if why:",
        "            if why:",
    ),
    Defect(
        "no-soak",
        "A node begins although the one before has not served as long as it is to.",
        "_record/slots.py",
        " or self._soaks(slots, node, soak)",
        "",
    ),
    Defect(
        "pause-binds-nobody",
        "A pause of all rollouts stops no node before its reboot.",
        "_record/halt.py",
        "    if is_pause(halted):\n        return True",
        "    if is_pause(halted):\n        return False",
    ),
    Defect(
        "release-of-a-run-that-begins",
        "A release takes a run that began while it watched others for one that died.",
        "_maintenance/release.py",
        'if record["run"] not in dead:',
        'if dead and record["run"] not in dead:',
    ),
    Defect(
        "release-counts-as-seen",
        "A release of a record that came back from a backup says that its host has seen no later one.",
        "_maintenance/release.py",
        'closed["generation"] = closed.pop("unseen", record["generation"] - 1)',
        'closed["generation"] = closed.pop("unseen", record["generation"])',
    ),
    Defect(
        "planned-without-a-label",
        "Where no record was under way, the label goes before the condition: a run that is killed in between leaves the condition.",
        "_record/node_log.py",
        "return change.record is None and (self.record is not None or state not in maintenance_record.DUE)",
        "return change.record is None and self.record is not None",
    ),
    Defect(
        "lost-ports-served",
        "A user who is strict about network ports gets a node back whose ports are down with the new driver.",
        "_maintenance/validation.py",
        'if work.request.network == "strict":',
        'if work.request.network == "never":',
    ),
    Defect(
        "slow-ports-blamed",
        "A link that takes its time after a boot is taken for one that stays down.",
        "_maintenance/validation.py",
        "            if work.clock.monotonic() >= deadline:\n                text",
        "            if work.clock.monotonic() >= deadline - 120:\n                text",
    ),
)


def planted(defect: Defect, into: Path) -> Path:
    """A copy of what the simulator needs of the checkout, with the defect in it. Raises ValueError where its text is not there."""
    for name in ("plugins", "roles", "tests/simulator", "tests/support"):
        shutil.copytree(CHECKOUT / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("galaxy.yml", "meta"):
        source = CHECKOUT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, into / name)
    file = into / _LIBRARY / defect.file
    text = file.read_text(encoding="utf-8")
    if text.count(defect.before) != 1:
        raise ValueError("%s: %s has its text %d times, not once" % (defect.name, defect.file, text.count(defect.before)))
    file.write_text(text.replace(defect.before, defect.after), encoding="utf-8")
    return into


def search(tree: Path, seeds: range) -> dict[str, Any] | None:
    """{seed, violation, schedule, length} of the first of ``seeds`` that finds the defect in ``tree``, made short; or None."""
    return _python(tree, "first", str(seeds.start), str(seeds.stop))


def finds(tree: Path, schedule: Path) -> str | None:
    """What the schedule in a file violates in ``tree``, or None."""
    return _python(tree, "violation", str(schedule))


def _python(tree: Path, *arguments: str) -> Any:
    """What simulator.apart answers in a process of its own, with the library of ``tree``."""
    done = subprocess.run(
        [sys.executable, "-m", "simulator.apart", *arguments],
        cwd=tree / "tests",
        env=dict(os.environ, PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1"),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)
