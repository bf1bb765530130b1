# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of one host and its node, and the reason: the last column of the status table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import BAD
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import wanted_vnpus

# What the cluster says about a node, and what all say about a host.
View = dict[str, Any]
Row = dict[str, Any]

READY, NO_CHIP, INVALID, DEGRADED = "ready", "no chip", "invalid", "degraded"
NOT_READY, NO_AGENT, NO_PLUGIN = "not ready", "no agent", "no plugin"
UNREACHABLE, ERROR, NO_NODE, BLOCKED, WEDGED = "unreachable", "failed", "no node", "blocked", "wedged"
MAINTENANCE, NOT_INSTALLED = "maintenance", "not installed"
UNKNOWN_HOST = "unknown"  # of an NPU node that no host of the run stands for


class Seen(NamedTuple):
    host: AskedHost
    facts: Facts
    row: Row  # without state and reason
    view: View  # {} if the cluster has no such node

    @property
    def during(self) -> str:
        """What to add of a maintenance to another state."""
        return "; in maintenance: %s" % self.view["maintenance"] if self.view and self.view["maintenance"] else ""


class Rule(NamedTuple):
    state: str
    holds: Callable[[Seen], Any]
    reason: Callable[[Seen], str | None]


def of(seen: Seen) -> tuple[str, str | None]:
    """(state, reason or None)."""
    rule = next(rule for rule in _RULES if rule.holds(seen))
    return rule.state, rule.reason(seen)


def failed_checks(row: Row) -> list[dict[str, Any]]:
    """First what the boot unit says, for most of the others follow from that."""
    return sorted((check for check in row["checks"] if not check["ok"]), key=lambda check: check["name"] != "driver_ready")


def finding(check: dict[str, Any]) -> str:
    return "%(name)s: %(seen)s (expected: %(expected)s)" % check


def users(row: Row) -> list[str]:
    """[the pods on chips that are not OK, as a phrase], or []."""
    return ["pods on unhealthy chips: %s" % ", ".join(row["unhealthy_pods"])] if row["unhealthy_pods"] else []


def _unreachable(seen: Seen) -> str:
    error, view = one_line(seen.host.get("error")), seen.view
    node = "; the node is %s" % ("Ready" if view["ready"] else "not Ready: " + view["why"]) if view else ""
    return error + (one_line(node) + seen.during if seen.during else node)


def _not_ready(seen: Seen) -> str | None:
    return one_line(seen.view["why"]) + seen.during if seen.during else seen.view["why"]


def _paused(seen: Seen) -> str:
    left = seen.view["cordon_remains"]
    return "its components are paused%s" % (", and a maintenance left it cordoned: see npuops.ascend.release" if left else "")


def _vnpu_change(seen: Seen) -> str:
    since = one_line(seen.view["vnpu_change"])
    return "its virtual NPUs change since %s; if no install is running, run npuops.ascend.install" % since


def _first_problem(seen: Seen) -> str | None:
    return next(iter(seen.facts.get("problems") or ()), None)


def _findings(seen: Seen) -> str:
    """What the host is without, what its checks find, and whom that concerns."""
    missing, wrong = seen.row["missing_chips"], failed_checks(seen.row)
    if missing:
        # If all of them are, this check says the same.
        wrong = [check for check in wrong if check["name"] != "chips"]
    return _joined([missing] if missing else [], map(finding, wrong), users(seen.row))


def _offers_other(seen: Seen) -> bool:
    return bool(_differences(seen)) or not all(map(chip_health.serves, seen.row["chip_health"]))


def _other_offers(seen: Seen) -> str:
    return _joined(_differences(seen), _ill(seen.row), seen.row["isolated_chips"], users(seen.row))


def _differences(seen: Seen) -> list[str]:
    """What a node offers less or more than its chips and virtual NPUs, as phrases."""
    row, offers = seen.row, node_offers.of(seen.facts)
    each, chips = row["devices_per_chip"], offers.get(row["resource"], 0)
    phrases = []
    if row["allocatable"] != chips * each and each == 1:
        whole = "whole chips" if chips < row["chips"] else "chips"
        phrases.append("%d of %d %s are allocatable" % (row["allocatable"], chips, whole))
    elif row["allocatable"] != chips * each:
        phrases.append(
            "%d of %d devices are allocatable; each of the %d chips should be offered %d times"
            % (row["allocatable"], chips * each, chips, each)
        )
    for resource, count in row["vnpus"].items():
        if count["allocatable"] != count["wanted"]:
            phrases.append("%d of %d virtual NPUs %s are allocatable" % (count["allocatable"], count["wanted"], resource))
    return phrases


def _ill(row: Row) -> list[str]:
    told = chip_health.told(row["chip_health"])
    return [told] if told else []


def _remarks(seen: Seen) -> str | None:
    """What a person may want to know about a node that is fine."""
    different = wanted_vnpus.difference((seen.host.get("config") or {}).get("vnpu"), seen.facts)
    return _joined(_remarks_of(seen.row, seen.view), [different] if different else []) or None


def _remarks_of(row: Row, view: View) -> Iterator[str]:
    if view["cordon_remains"]:
        yield "cordoned by a maintenance that has ended, see npuops.ascend.release"
    elif view["unschedulable"]:
        yield "cordoned"
    yield from _acceptance(view)
    yield from _ill(row)
    if row["devices_per_chip"] > 1:
        yield "up to %d pods share a chip" % row["devices_per_chip"]
    if view["recovery"]:
        yield view["recovery"]
    following = row["next_kernel"]
    if following and not following.get("release"):
        yield "its next boot is into kernel %s, for which no driver is staged: see npuops.ascend.plan" % following["kernel"]
    if row["driver_wanted"] not in ("preinstalled", None, row["driver_loaded"]):
        yield "driver %s is configured, see npuops.ascend.upgrade" % row["driver_wanted"]


def _acceptance(view: View) -> Iterator[str]:
    last = view["acceptance"]
    if last and last["verdict"] in BAD:
        yield "%(verdict)s at level %(level)d of npuops.ascend.accept (%(ended)s)" % last
    if view["gate"]:
        yield "pods wait until npuops.ascend.accept has accepted it at level %d" % view["gate"]


def _joined(*phrases: Iterable[str]) -> str:
    return "; ".join(phrase for some in phrases for phrase in some)


# In this order; the first that holds counts.
_RULES = (
    Rule(UNREACHABLE, lambda seen: seen.host.get("unreachable"), _unreachable),
    Rule(ERROR, lambda seen: seen.host.get("error"), lambda seen: one_line(seen.host["error"])),
    Rule(NO_CHIP, lambda seen: not seen.facts.get("chip_count") and not seen.row["missing_chips"], lambda seen: None),
    Rule(NO_NODE, lambda seen: not seen.view, lambda seen: "the cluster has no node %s" % seen.row["node"]),
    Rule(NOT_READY, lambda seen: not seen.view["ready"], _not_ready),
    Rule(MAINTENANCE, lambda seen: seen.view["maintenance"], lambda seen: seen.view["maintenance"]),
    Rule(MAINTENANCE, lambda seen: seen.view["vnpu_change"] is not None, _vnpu_change),
    Rule(MAINTENANCE, lambda seen: seen.view["components"] == "paused", _paused),
    Rule(
        WEDGED,
        lambda seen: seen.view["wedged"],
        lambda seen: "%s; %s" % (seen.view["wedged"], seen.view["recovery"] or "only a reboot helps, unless it recovers by itself"),
    ),
    Rule(BLOCKED, lambda seen: seen.facts.get("problems"), _first_problem),
    Rule(
        NOT_INSTALLED,
        lambda seen: not seen.view["components"] and not (seen.facts.get("driver") or {}).get("version"),
        lambda seen: "npuops.ascend.install",
    ),
    Rule(DEGRADED, lambda seen: seen.row["missing_chips"], _findings),
    Rule(INVALID, lambda seen: failed_checks(seen.row), _findings),
    Rule(NOT_INSTALLED, lambda seen: not seen.view["components"], lambda seen: "npuops.ascend.install"),
    Rule(NO_AGENT, lambda seen: seen.view["agent"] == "failing", lambda seen: seen.view["agent_why"]),
    Rule(
        NO_PLUGIN,
        lambda seen: seen.view["plugin"] != "running",
        lambda seen: seen.view["plugin_why"] or "the device plugin has no pod there",
    ),
    Rule(DEGRADED, _offers_other, _other_offers),
    Rule(READY, lambda seen: True, _remarks),
)
# All that there are, each once.
STATES = tuple(dict.fromkeys([*(rule.state for rule in _RULES), UNKNOWN_HOST]))
