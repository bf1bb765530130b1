# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers
from ansible_collections.npuops.ascend.plugins.plugin_utils._network.judgement import judge

from support.fleet.ports import as_hosts, changed, fleet

FAILED = {"name": "network_link", "ok": False, "expected": "up", "seen": "chip 3 is down", "message": "Check cable"}
FINE = {"name": "network_health", "ok": True, "expected": "", "seen": "", "message": None}


def test_a_fleet_in_order():
    judgement = judge(as_hosts(fleet("rails").values()), 256)
    assert judgement.findings == [] and judgement.lines == [] and judgement.problems == []
    assert sorted(judgement.pings) == ["npu-%02d" % host for host in range(32)]
    assert judgement.pings["npu-00"]["tree"] == "/var/lib/Ascend/driver"
    assert {"chip": 0, "address": "10.0.0.11"} in judgement.pings["npu-00"]["pings"]


def test_what_is_wrong_fails_where_it_is_strict():
    ports = changed(fleet("rails"), (5, 3), address="10.99.0.1", configured=None)
    for mode, count in (("warn", 0), ("strict", 1)):
        judgement = judge(as_hosts(ports, mode), 0)
        assert len(judgement.findings) == 1 and len(judgement.problems) == count
        assert judgement.pings == {}
        assert judgement.lines[0] == "Network ports of the chips:" and "chip 3 of npu-05" in judgement.lines[1]
        assert judgement.lines[2].startswith("    -> Set the right address")


def test_a_strict_host_among_others():
    """Only its own findings fail."""
    hosts = as_hosts(changed(fleet("rails"), (5, 3), address="10.99.0.1", configured=None))
    hosts[4]["validation"]["network"]["mode"] = "strict"
    assert judge(hosts, 0).problems == []
    hosts[5]["validation"]["network"]["mode"] = "strict"
    assert len(judge(hosts, 0).problems) == 1


def test_what_hosts_say_of_themselves():
    judgement = judge(as_hosts(fleet("rails", 2).values(), checks=[FAILED, FINE]), 0)
    assert [finding.text for finding in judgement.findings] == [
        "npu-00: network_link: chip 3 is down",
        "npu-01: network_link: chip 3 is down",
    ]


def test_hosts_that_do_not_take_part():
    hosts = as_hosts(fleet("rails", 6).values())
    hosts[0]["validation"] = None
    hosts[1]["validation"]["network"] = None
    hosts[2]["validation"]["network"].update(roce=False, chips=[])
    hosts[3]["validation"]["network"]["cabled"] = False
    hosts[4]["unreachable"] = True
    hosts.append({"name": "npu-99", "facts": None, "validation": None, "unreachable": True, "error": "no route"})
    judgement = judge(hosts, 256)
    assert judgement.findings == [] and judgement.pings == {}


def test_pings_are_judged():
    ports = fleet("rails", 4)
    pings = judge(as_hosts(ports.values()), 256).pings
    answers = {
        host: [
            dict(
                ping,
                sent=3,
                received=0 if "10.5.0.12" == ping["address"] or (host, ping["chip"]) == ("npu-02", 5) else 3,
                problem=None,
            )
            for ping in own["pings"]
        ]
        for host, own in pings.items()
    }
    (finding,) = judge(as_hosts(ports.values(), answers=answers), 0).findings
    assert finding.kind == "unreachable" and finding.hosts == ("npu-02",)


def test_a_host_that_claims_all_addresses():
    """Each is named, and the others keep theirs. What is shown is limited."""
    ports = fleet("one network")
    hosts = as_hosts(ports.values())
    claimed = [dict(chip, chip=number) for number, chip in enumerate(
        chip for host in hosts[1:] for chip in host["validation"]["network"]["chips"])]  # fmt: skip
    hosts[0]["validation"]["network"]["chips"] = claimed[:1024]
    assert host_answers.why_not({}, hosts[0]["validation"]) is None
    judgement = judge(hosts, 256)
    assert {finding.kind for finding in judgement.findings} <= {"duplicate", "stale"} and len(judgement.lines) == 61
    assert all("npu-00" in finding.hosts for finding in judgement.findings)
    # Chips that cannot be told apart are not pinged.
    assert judgement.pings == {}


def test_addresses_that_look_like_some_and_are_none():
    hosts = as_hosts(fleet("rails", 4).values())
    for number, address in enumerate(("300.1.1.1", "1.2.3.999", "0.0.0.0", "255.255.255.255")):
        hosts[0]["validation"]["network"]["chips"][number].update(address=address, netmask="255.0.255.0")
        assert host_answers.why_not({}, hosts[0]["validation"]) is None
    judgement = judge(hosts, 256)
    assert {ping["chip"] for own in judgement.pings.values() for ping in own["pings"] if own is judgement.pings["npu-00"]} == {
        4,
        5,
        6,
        7,
    }
