# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Acceptances that wait for a collective: they go from npu_accept_node to npu_accept_collective through variables of Ansible.

Words of hosts are in them. What is not of this form is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import VERDICTS
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema as data_schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AcceptanceFinding, Moment, Word
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import Misfit, listing, number, one_of, text

_Path = Annotated[str, text(4096)]  # on the controller


class CountedFinding(AcceptanceFinding):
    """A finding in a document."""

    ignored: bool  # whether it does not count


class AcceptanceDocument(TypedDict):
    """docs/accept.schema.json."""

    schema: Annotated[int, number(1, 1)]
    node: Annotated[str, text(253, data_schema.NODE_NAME, "the name of a Node")]
    level: Annotated[int, number(1, 3)]
    verdict: Annotated[str, one_of(*VERDICTS)]
    began: Moment
    ended: Moment
    driver: Word | None
    firmware: Word | None
    chips: Annotated[int, number(0, 1024)]
    findings: Annotated[list[CountedFinding], listing(data_schema.of(CountedFinding), 300)]


class CollectiveRequest(TypedDict):
    """What the user wants of the collective of a host, and of the end of its acceptance."""

    pod: _Path  # the manifest
    timeout: Annotated[int, number()]  # seconds, 0 for no limit
    dra_drivers: Annotated[list[Word], listing(data_schema.of(Word), 64)]  # those whose devices are NPUs
    ignored: bool  # whether the collective does not count
    directory: _Path | None  # of documents


class WaitingAcceptance(TypedDict):
    """One host's."""

    host: Annotated[str, text()]  # in the inventory
    boot_id: Word
    document: AcceptanceDocument
    request: CollectiveRequest


_ACCEPTANCES = listing(data_schema.of(WaitingAcceptance), 10000)


def read(value: Any) -> list[WaitingAcceptance]:
    """The acceptances. Raises NpuError."""
    try:
        _ACCEPTANCES(value, "acceptances")
    except Misfit as exc:
        raise NpuError(
            "The results of npu_accept_node are not valid: %s. Use the playbook npuops.ascend.accept of the same version" % exc
        ) from None
    return value
