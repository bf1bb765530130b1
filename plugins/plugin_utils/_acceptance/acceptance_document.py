# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on a node, as a document for programs and as lines for people. docs/accept.schema.json is its schema."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import PASS, UNKNOWN, finding, worst
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import write_atomic
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AcceptanceFinding, AcceptanceResult
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.waiting_acceptances import AcceptanceDocument, CountedFinding

SCHEMA = 1


def of_result(node: str, wanted: int, result: AcceptanceResult, ignored: list[str]) -> dict[str, Any]:
    """The document of what the host found; ``wanted``: the level that was asked for; ``ignored``: names of checks.

    A check that is ignored is in the document with its verdict, and does not count.
    """
    findings = [dict(found, ignored=found["name"] in ignored) for found in result["findings"]]
    counted = [found for found in findings if not found["ignored"]]
    return {
        "schema": SCHEMA,
        "node": node,
        "level": wanted,
        "verdict": worst(counted),
        "began": result["began"],
        "ended": result["ended"],
        "driver": result["driver"],
        "firmware": result["firmware"],
        "chips": result["chips"],
        "findings": findings,
    }


def completed(document: AcceptanceDocument, found: AcceptanceFinding, ignored: bool, when: str) -> AcceptanceDocument:
    """The document with another finding; ``when``: it was found, UTC, as 2026-11-26T10:00:00Z."""
    findings: list[CountedFinding] = [*document["findings"], {**found, "ignored": ignored}]
    verdict = worst([one for one in findings if not one["ignored"]])
    return {**document, "findings": findings, "verdict": verdict, "ended": when}


def without_result(node: str, wanted: int, when: str, why: str) -> dict[str, Any]:
    """The document of a node whose host told nothing; ``when``: UTC, as 2026-11-26T10:00:00Z; ``why``: a clause."""
    found = dict(finding("host", 1, UNKNOWN, why, "Run accept again when the host responds"), ignored=False)
    return {
        "schema": SCHEMA,
        "node": node,
        "level": wanted,
        "verdict": UNKNOWN,
        "began": when,
        "ended": when,
        "driver": None,
        "firmware": None,
        "chips": 0,
        "findings": [found],
    }


def lines(document: Mapping[str, Any]) -> list[str]:
    """What people read of it: one line for the node, and one for each check that has not passed."""
    known = ["%d chips" % document["chips"]] if document["chips"] else []
    known += ["%s %s" % (name, document[name]) for name in ("driver", "firmware") if document[name]]
    about = " (%s)" % ", ".join(known) if known else ""
    told = ["%s: %s at level %d%s" % (document["node"], document["verdict"], document["level"], about)]
    for found in document["findings"]:
        if found["verdict"] != PASS:
            advice = " %s" % sentence(found["advice"]) if found["advice"] else ""
            word = "%s, ignored" % found["verdict"] if found["ignored"] else found["verdict"]
            told.append("  %s %s: %s%s" % (word, found["name"], sentence(found["seen"]), advice))
    return told


def write(directory: str, document: Mapping[str, Any]) -> str:
    """Write it to ``<node>-<time>.json``; returns the path. Raises NpuError."""
    name = "%s-%s.json" % (document["node"], "".join(letter for letter in document["ended"] if letter.isalnum()))
    path = os.path.join(os.path.abspath(directory), name)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomic(path, json.dumps(document, indent=1) + "\n")
    except OSError as exc:
        raise NpuError(
            "The verdict could not be written to %s on the controller: %s. Set npu_accept_dir to a directory in which this user "
            "may create files" % (path, exc.strerror or exc)
        ) from None
    return path
