# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings have one source: every variable that playbooks and roles use is documented there, and nothing else is."""

from __future__ import annotations

import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config, spec_defaults

from support.paths import CHECKOUT

ROLES = sorted(path.parent.parent.name for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"))
# Names of modules and filters, which stand in playbooks like variables.
PLUGINS = {
    path.stem for folder in ("modules", "filter", "test", "inventory") for path in (CHECKOUT / "plugins" / folder).glob("*.py")
}
# Groups that the inventory plugin makes, and what is a prefix or a word of a comment.
OTHERS = {"npu_nodes", "npu_inference", "npu_not_ready", *ROLES}


def options():
    return [
        *spec_defaults.options_of_playbooks().items(),
        *(item for role in ROLES for item in spec_defaults.role_options(role).items()),
    ]


def test_all_roles_and_playbooks_count():
    assert len(ROLES) >= 9
    for role in ROLES:
        assert set(spec_defaults.role_options(role)) <= spec_defaults.known_variables()
    assert {"npu_hosts", "npu_upgrade_max_parallel"} <= spec_defaults.known_variables()


@pytest.mark.parametrize(("name", "option"), options())
def test_each_has_a_type_and_says_what_it_is(name, option):
    assert name.startswith("npu_") and option["type"] and option["description"]


def test_what_belongs_to_a_role_is_not_a_playbooks():
    assert not set(spec_defaults.options_of_playbooks()) & {name for role in ROLES for name in spec_defaults.role_options(role)}


def test_playbooks_use_nothing_that_is_not_documented():
    used = set()
    for path in [*(CHECKOUT / "playbooks").rglob("*.yml"), *(CHECKOUT / "roles").glob("*/tasks/*.yml")]:
        used |= set(re.findall(r"(?<![\w.$-])npu_[a-z0-9_]+(?!\w)", path.read_text(encoding="utf-8")))
    used = {name for name in used if not name.endswith("_")} - PLUGINS - OTHERS
    assert used <= spec_defaults.known_variables()


def test_what_preflight_reads_of_a_host_has_the_documented_default():
    complete = host_config.complete({"driver_version": "26.0.0", "driver_image": None})
    assert set(complete) == set(host_config.argument_spec()) == set(host_config.NAMES)
    assert complete["driver_version"] == "26.0.0" and complete["driver_image"] is None
    assert complete["driver_root"] == spec_defaults.option("npu_driver_root")["default"]
    assert complete["registry_plain_http"] is False
