# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound, RegistryDenied
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import report as preflight_report

from support.fleet.preflight import DIGEST, REPOSITORY, facts, host, judge, only


def test_image_missing_names_host_profile_and_reference():
    def resolve(reference, _config, _machine):
        raise ImageNotFound("%s does not exist" % reference)

    verdict = only(host(), resolve=resolve)
    tag = "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"
    assert verdict.reasons == ["no driver image for the profile %s: %s:%s does not exist" % (tag, REPOSITORY, tag)]


def test_each_reference_is_looked_up_once():
    asked = []

    def resolve(reference, _config, _machine):
        asked.append(reference)
        raise RegistryDenied("Registry registry.example does not let user 'x' read it")

    verdicts = judge([host("a"), host("b"), host("c", fact=facts("d500", "boot-c"))], resolve=resolve)
    assert len(asked) == 2
    assert preflight_report.report(verdicts, []).splitlines()[1:] == [
        "  a, b, c: Registry registry.example does not let user 'x' read it"
    ]


def test_profile_and_image_can_be_given():
    assert only(host(driver_profile="910b-mine")).image == REPOSITORY + ":25.5.0-910b-mine"
    assert only(host(driver_image="other.example/x@" + DIGEST)).image == "other.example/x@" + DIGEST


def test_the_hosts_of_a_run_may_want_different_versions():
    verdicts = judge([host("a"), host("b", driver_version="25.5.1")])
    assert [verdict.image.rpartition(":")[2].partition("-")[0] for verdict in verdicts] == ["25.5.0", "25.5.1"]
