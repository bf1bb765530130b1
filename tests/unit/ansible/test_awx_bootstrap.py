# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook awx_bootstrap as a user runs it, with the real modules of awx.awx, against a stand-in for AWX's API."""

from __future__ import annotations

import concurrent.futures
import json
import os
import re

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.filter.npu_survey import npu_survey
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.spec_defaults import known_variables, range_of

from support import controller
from support.awx import rules as awx_rules
from support.awx.stub import PASSWORD, TOKEN, USER, AwxStub

CHECKOUT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
ROLE = os.path.join(CHECKOUT, "roles", "npu_awx")
PLAYBOOK = os.path.join(CHECKOUT, "playbooks", "awx_bootstrap.yml")
PLAYBOOKS = ["playbooks/" + name for name in os.listdir(os.path.join(CHECKOUT, "playbooks")) if name.endswith(".yml")]
KUBERNETES = "OpenShift or Kubernetes API Bearer Token"

SECRETS = {
    "npu_awx_registry_password": "registry-s3cret",
    "npu_awx_kubernetes_token": "kubernetes-s3cret",
    "npu_awx_machine_ssh_key": "-----BEGIN OPENSSH PRIVATE KEY-----\nssh-s3cret\n-----END OPENSSH PRIVATE KEY-----\n",
    "npu_awx_machine_become_password": "become-s3cret",
}
# As a team writes it: all secrets given.
FIRST = {
    **SECRETS,
    "npu_awx_organization": "Platform",
    "npu_awx_execution_environment_image": "registry.example.com/mlops/npuops-ascend-ee:0.1.0",
    "npu_awx_registry_username": "reader",
    "npu_awx_kubernetes_host": "https://kube.example.com:6443",
    "npu_awx_kubernetes_ca": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
    "npu_awx_machine_become_method": "sudo",
    "npu_awx_inventory_variables": {
        "npu_driver_repository": "registry.example.com/mlops/ascend-driver",
        "npu_upgrade_drain": {"timeout": 600},
    },
    "npu_awx_survey_defaults": {"npu_driver_version": "25.5.1"},
    "npu_awx_approval_timeout": 3600,
    "npu_awx_roles": [
        {"team": "Watchers", "may": ["see"]},
        {"team": "Approvers", "may": ["approve"]},
        {"team": "Operators", "may": ["look", "roll out", "heal"]},
        {"user": "chen.wei", "may": ["install", "upgrade"]},
        {"team": "Guests++Default", "may": ["see"]},
    ],
}
# The same in an organization that exists, so that check mode sees more.
THERE = {**FIRST, "npu_awx_organization": "Default"}
# Another fleet in another organization, with existing objects, and a registry that everybody may read. One role, the last of all
# that are granted, is for a team that does not exist.
SECOND = {
    "npu_awx_prefix": "Lab ",
    "npu_awx_organization": "Team B",
    "npu_awx_execution_environment": "shared environment",
    "npu_awx_kubernetes_credential": "shared cluster",
    "npu_awx_machine_credential": "shared key",
    "npu_awx_extra_credentials": ["shared vault"],
    "npu_awx_ask_variables": True,
    "npu_awx_ask_auto": True,
    "npu_awx_roles": [{"team": "Nobody", "may": ["see"]}],
}


class Loader(yaml.SafeLoader):
    """With !unsafe."""


Loader.add_constructor("!unsafe", lambda loader, node: node.value)


def load(*path):
    with open(os.path.join(ROLE, *path), encoding="utf-8") as stream:
        return yaml.load(stream, Loader)


VARIABLES = load("vars", "main.yml")
QUESTIONS = VARIABLES["__npu_awx_questions"]
SURVEYS = {entry["name"]: entry.get("survey", []) for entry in VARIABLES["__npu_awx_job_templates"]}
SURVEYS["driver rollout"] = VARIABLES["__npu_awx_workflow_survey"]
WITHOUT_APPROVAL = ("npu_upgrade_auto", "npu_heal_auto")


def asked(name):
    """What a form asks for unless npu_awx_ask_auto says more: who may launch it is not who approves."""
    return [entry for entry in SURVEYS[name] if entry not in WITHOUT_APPROVAL or "step" in name]


class Run:
    """A run of the playbook that has ended."""

    def __init__(self, tmp_path, awx, variables, *arguments, environ=None, **more):
        values = tmp_path / "values.json"
        values.write_text(json.dumps(variables))
        done = controller.run(
            ["ansible-playbook", PLAYBOOK, "-e", "@%s" % values, *arguments],
            tmp_path,
            environ={"ANSIBLE_INJECT_FACT_VARS": "false", **(environ or {})},
            more={"CONTROLLER_HOST": awx.url, "CONTROLLER_OAUTH_TOKEN": TOKEN, **more},
            localhost=True,
        )
        self.status, self.output = done.returncode, done.stdout + done.stderr

    def fine(self):
        """The output of a run that worked."""
        assert self.status == 0, self.output
        return self.output

    def refused(self):
        """The output of one that did not, and that shows none of our secrets."""
        assert self.status == 2, self.output
        assert "s3cret" not in self.output
        return self.output


def changed(output):
    return int(re.search(r"^localhost .*changed=(\d+) ", output, re.M).group(1))


def flat(text):
    """Text without line breaks and quoting, in which a sentence can be found."""
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').split())


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Two fleets are set up; the team changes what is its own; the first is set up again.

    Then a user changes a template, and the first is looked at in check mode with a label that does not exist yet.
    """
    with AwxStub(PLAYBOOKS, organizations=("Default", "Team B")) as awx:
        team = awx.one("organizations", "Team B")["id"]
        for name, kind in (("shared cluster", KUBERNETES), ("shared key", "Machine"), ("shared vault", "Vault")):
            awx.add("credentials", name=name, organization=team, credential_type=awx.one("credential_types", kind)["id"])
        awx.add("execution_environments", name="shared environment", image="other/image")
        platform = awx.add("organizations", name="Platform")["id"]
        for name in ("Watchers", "Approvers", "Operators"):
            awx.add("teams", name=name, organization=platform)
        awx.add("teams", name="Guests", organization=awx.one("organizations", "Default")["id"])
        awx.add("users", username="chen.wei")
        kept = {name: dict(awx.one("credentials", name)) for name in ("shared cluster", "shared key", "shared vault")}

        # The one finds AWX by its role variable and a password, the other by its environment.
        controller = {"controller_host": awx.url, "controller_username": USER, "controller_password": PASSWORD}
        first = {**FIRST, "npu_awx_controller": controller}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            nowhere = {"CONTROLLER_HOST": "", "CONTROLLER_OAUTH_TOKEN": ""}
            runs = {
                "first": pool.submit(Run, tmp_path_factory.mktemp("first"), awx, first, "-vvv", **nowhere),
                "second": pool.submit(Run, tmp_path_factory.mktemp("second"), awx, SECOND),
            }
        outputs = {"first": runs["first"].result().fine(), "second": runs["second"].result().refused()}

        awx.one("schedules", "NPU heal every few minutes").update(
            enabled=True, rrule="DTSTART:20260101T000000Z RRULE:FREQ=HOURLY;INTERVAL=1"
        )
        awx.one("organizations", "Platform")["description"] = "Ours"
        awx.one("credentials", "NPU Kubernetes API")["inputs"]["bearer_token"] = "a newer token"
        before = len(awx.changes)
        # On a command line, a value is a text; this one is true to Jinja.
        texts = ["-e", "npu_awx_ask_auto=false", "-e", "npu_awx_kubernetes_verify_ssl=true"]
        outputs["again"] = Run(tmp_path_factory.mktemp("again"), awx, FIRST, "-vvv", *texts).fine()
        status = awx.one("job_templates", "NPU status")
        changed_by_hand = {**status, "verbosity": 3}
        verbosity, status["verbosity"] = status["verbosity"], 3
        labels = {"npu_awx_labels": ["npuops.ascend", "new"]}
        outputs["check"] = Run(tmp_path_factory.mktemp("check"), awx, {**FIRST, **labels}, "--check", "--diff").fine()
        assert status == changed_by_hand
        status["verbosity"] = verbosity
        yield {"awx": awx, "outputs": outputs, "kept": kept, "changes": awx.changes[before:]}


@pytest.fixture
def awx():
    with AwxStub(PLAYBOOKS) as stub:
        yield stub


# --- what exists after the first run ---


def test_all_of_it_is_there(scene):
    names = scene["awx"].names
    templates = [
        "accept", "adopt", "heal", "install", "join", "pause", "plan", "release", "resume", "rollback", ROLLBACK, UPGRADE, "status", "upgrade",
        "validate",
    ]  # fmt: skip
    assert names("organizations") == ["Default", "Platform", "Team B"]
    assert names("job_templates") == ["Lab " + name for name in templates] + ["NPU " + name for name in templates]
    assert names("workflow_job_templates") == ["Lab driver rollout", "NPU driver rollout"]
    assert names("inventories") == ["Lab fleet", "NPU fleet"]
    assert names("inventory_sources") == ["Lab nodes of the cluster", "NPU nodes of the cluster"]
    assert names("projects") == ["Lab playbooks", "NPU playbooks"]
    assert names("execution_environments") == ["NPU execution environment", "shared environment"]
    assert names("credentials") == [
        "NPU Kubernetes API",
        "NPU hosts",
        "NPU image registry",
        "shared cluster",
        "shared key",
        "shared vault",
    ]
    assert names("schedules") == [
        prefix + name
        for prefix in ("Lab ", "NPU ")
        for name in ("heal every few minutes", "join every few minutes", "status every hour")
    ]


def test_each_fleet_has_its_organization(scene):
    stub = scene["awx"]
    for prefix, organization in (("NPU ", "Platform"), ("Lab ", "Team B")):
        number = stub.one("organizations", organization)["id"]
        assert stub.one("projects", prefix + "playbooks")["organization"] == number
        assert stub.one("inventories", prefix + "fleet")["organization"] == number
        assert stub.one("workflow_job_templates", prefix + "driver rollout")["organization"] == number


@pytest.mark.parametrize("name", list(SURVEYS)[:-1])
def test_job_templates(scene, name):
    stub, template = scene["awx"], scene["awx"].one("job_templates", "NPU " + name)
    assert template["playbook"] == "playbooks/%s.yml" % name.rpartition(" ")[2]
    assert template["playbook"] in PLAYBOOKS
    assert (template["job_slice_count"], template["ask_job_slice_count_on_launch"], template["allow_simultaneous"]) == (
        1,
        False,
        False,
    )
    assert (template["ask_limit_on_launch"], template["ask_variables_on_launch"]) == (True, False)
    # What an upgrade would do is said by plan.
    assert template["ask_job_type_on_launch"] is (name in ("install", "join", "adopt"))
    assert template["survey_enabled"] is bool(SURVEYS[name])
    assert stub.linked("job_templates", "NPU " + name, "credentials") == ["NPU Kubernetes API", "NPU hosts", "NPU image registry"]
    assert stub.linked("job_templates", "NPU " + name, "labels") == ["npuops.ascend"]


def test_the_other_fleet_uses_what_is_there(scene):
    stub, template = scene["awx"], scene["awx"].one("job_templates", "Lab upgrade")
    assert stub.linked("job_templates", "Lab upgrade", "credentials") == ["shared cluster", "shared key", "shared vault"]
    assert template["execution_environment"] == stub.one("execution_environments", "shared environment")["id"]
    assert template["ask_variables_on_launch"] is True
    assert {name: stub.one("credentials", name) for name in scene["kept"]} == scene["kept"]
    assert stub.one("execution_environments", "shared environment")["image"] == "other/image"


def test_credentials(scene):
    stub = scene["awx"]
    kind = stub.one("credential_types", "NPU image registry")
    assert kind["injectors"] == {
        "extra_vars": {"npu_registry_username": "{{ username }}", "npu_registry_password": "{{ password }}"}
    }
    assert stub.one("credentials", "NPU image registry")["inputs"] == {"username": "reader", "password": "registry-s3cret"}
    inputs = stub.one("credentials", "NPU Kubernetes API")["inputs"]
    assert (inputs["verify_ssl"], inputs["ssl_ca_cert"]) == (True, FIRST["npu_awx_kubernetes_ca"])
    assert stub.one("credentials", "NPU hosts")["inputs"] == {
        "username": "root",
        "ssh_key_data": SECRETS["npu_awx_machine_ssh_key"],
        "become_method": "sudo",
        "become_password": "become-s3cret",
    }


def test_inventory(scene):
    stub = scene["awx"]
    assert json.loads(stub.one("inventories", "NPU fleet")["variables"]) == FIRST["npu_awx_inventory_variables"]
    source = stub.one("inventory_sources", "NPU nodes of the cluster")
    assert (source["source"], source["source_path"]) == ("scm", "extensions/awx/npu_nodes.yml")
    assert source["credential"] == stub.one("credentials", "NPU Kubernetes API")["id"]
    assert source["execution_environment"] == stub.one("execution_environments", "NPU execution environment")["id"]
    assert (source["overwrite"], source["update_on_launch"]) == (True, True)
    # A sync must not take away what the team has said of a host or a group.
    assert source["overwrite_vars"] is False
    assert source["update_cache_timeout"] == 300


# --- surveys ---


@pytest.mark.parametrize("name", list(SURVEYS))
def test_awx_has_the_surveys_of_the_data(scene, name):
    kind = "workflow_job_templates" if name == "driver rollout" else "job_templates"
    assert list(scene["awx"].survey("NPU " + name, kind)) == asked(name)
    assert list(scene["awx"].survey("Lab " + name, kind)) == SURVEYS[name]
    if "npu_driver_version" in SURVEYS[name]:
        assert scene["awx"].survey("NPU " + name, kind)["npu_driver_version"]["default"] == "25.5.1"
        assert scene["awx"].survey("Lab " + name, kind)["npu_driver_version"]["default"] == ""


def test_every_question_is_a_variable_of_the_collection():
    asked = {variable for variables in SURVEYS.values() for variable in variables}
    assert asked == set(QUESTIONS)
    assert asked <= known_variables()
    assert not [variable for variable in asked if re.search("password|token|secret|key", variable)]


def test_bounds_are_those_that_are_checked():
    for item in npu_survey(list(QUESTIONS), QUESTIONS)["spec"]:
        name = item["variable"]
        assert item["type"] != "integer" or item["min"] == range_of(name)[0]
        if item["type"] == "integer" and name.startswith("npu_heal_"):
            guard = name[len("npu_heal_") :]
            guards_of({guard: item["min"]})
            with pytest.raises(NpuError):
                guards_of({guard: item["min"] - 1})
            beyond = item.get("max", 10**6) + 1
            if "max" in item:
                guards_of({guard: item["max"]})
                with pytest.raises(NpuError):
                    guards_of({guard: beyond})
            else:
                guards_of({guard: beyond})


# --- the workflow ---

# Drawn by hand, from the guide.
EDGES = {
    ("plan", "success", "approve-first-nodes"),
    ("approve-first-nodes", "success", "first-nodes"),
    ("approve-first-nodes", "failure", "status"),
    ("first-nodes", "success", "approve-fleet"),
    ("first-nodes", "failure", "first-nodes-failed"),
    ("first-nodes-failed", "success", "approve-rollback"),
    ("approve-fleet", "success", "fleet"),
    ("approve-fleet", "failure", "status"),
    ("fleet", "success", "status"),
    ("fleet", "failure", "fleet-failed"),
    ("fleet-failed", "success", "approve-rollback"),
    ("approve-rollback", "success", "rollback"),
    ("rollback", "success", "status-after-rollback"),
}
UPGRADE, ROLLBACK = "rollout step upgrade", "rollout step rollback"
TEMPLATES = {
    "plan": ("plan", {"npu_plan_fail": "true", "npu_upgrade_canary": "false"}),
    "first-nodes": (UPGRADE, {"npu_upgrade_auto": "true", "npu_upgrade_canary": "true"}),
    "first-nodes-failed": ("status", {"npu_status_expect_failure": "true", "npu_status_strict": "false"}),
    "fleet": (UPGRADE, {"npu_upgrade_auto": "true", "npu_upgrade_canary": "false"}),
    "fleet-failed": ("status", {"npu_status_expect_failure": "true", "npu_status_strict": "false"}),
    "status": ("status", {"npu_status_strict": "false"}),
    "rollback": (ROLLBACK, {"npu_upgrade_auto": "true", "npu_upgrade_canary": "false", "npu_upgrade_clear_halt": "true"}),
    "status-after-rollback": ("status", {"npu_status_strict": "false"}),
}
APPROVALS = {"approve-first-nodes": 3600, "approve-fleet": 3600, "approve-rollback": 86400}


def test_the_workflow(scene):
    stub = scene["awx"]
    workflow = stub.one("workflow_job_templates", "NPU driver rollout")["id"]
    nodes = {
        entry["identifier"]: entry
        for entry in stub.objects["workflow_job_template_nodes"].values()
        if entry["workflow_job_template"] == workflow
    }
    by_number = {entry["id"]: name for name, entry in nodes.items()}
    assert {
        (name, edge, by_number[child])
        for name, entry in nodes.items()
        for edge in ("success", "failure", "always")
        for child in stub.associated.get((entry["id"], edge + "_nodes"), [])
    } == EDGES
    templates = {entry["id"]: entry["name"] for entry in stub.objects["job_templates"].values()}
    approvals = stub.objects["workflow_approval_templates"]
    assert {name: (templates[nodes[name]["unified_job_template"]], nodes[name]["extra_data"]) for name in TEMPLATES} == {
        name: ("NPU " + template, variables) for name, (template, variables) in TEMPLATES.items()
    }
    assert {name: approvals[nodes[name]["unified_job_template"]]["timeout"] for name in APPROVALS} == APPROVALS
    assert set(nodes) == set(TEMPLATES) | set(APPROVALS)


def test_only_the_first_step_is_for_first_nodes_whatever_the_inventory_says():
    """With npu_upgrade_canary in the inventory, the others would succeed without work."""
    limited = {
        entry["identifier"]: entry["variables"].get("npu_upgrade_canary")
        for entry in VARIABLES["__npu_awx_workflow_nodes"]
        if "npu_upgrade_canary" in SURVEYS.get(entry.get("template"), ()) or "rollout step" in entry.get("template", "")
    }
    assert limited == {"plan": "false", "first-nodes": "true", "fleet": "false", "rollback": "false"}


FAILED, CANCELLED = "failed", "canceled"


@pytest.mark.parametrize(
    ("results", "asked", "failed"),
    [
        ({}, False, False),
        ({"plan": FAILED}, False, True),
        ({"approve-fleet": FAILED}, False, False),
        ({"first-nodes": FAILED}, True, False),
        ({"fleet": FAILED}, True, False),
        ({"fleet": FAILED, "approve-rollback": FAILED}, True, True),
        ({"fleet": FAILED, "rollback": FAILED}, True, True),
        ({"first-nodes": FAILED, "rollback": CANCELLED}, True, True),
        # The job behind it fails when there is no report of a failure, see test_a_roll_out_that_was_cancelled.
        ({"fleet": CANCELLED, "fleet-failed": FAILED}, False, True),
        ({"first-nodes": CANCELLED, "first-nodes-failed": FAILED}, False, True),
    ],
)
def test_how_the_workflow_ends(results, asked, failed):
    """A rollback that failed is no success, and a job that a user cancelled is no reason to roll back."""
    nodes = {name: {kind: [] for kind in ("success", "failure", "always")} for name in set(TEMPLATES) | set(APPROVALS)}
    for entry in VARIABLES["__npu_awx_workflow_nodes"]:
        nodes[entry["identifier"]].update({kind: entry[kind] for kind in ("success", "failure", "always") if kind in entry})
    ran, ended_failed = awx_rules.walk(nodes, results)
    assert ("approve-rollback" in ran, ended_failed) == (asked, failed)


def test_the_form_of_the_workflow_asks_for_nothing_that_a_node_sets():
    """AWX puts its answers above what the node says: a rollout of one node would become one of all."""
    for _template, variables in TEMPLATES.values():
        assert not set(variables) & set(SURVEYS["driver rollout"])


def test_what_a_node_sets_is_asked_for_by_its_template():
    for template, variables in TEMPLATES.values():
        assert set(variables) <= set(SURVEYS[template])


# --- who may what ---


def held(scene, name, actors="teams"):
    stub = scene["awx"]
    number = next(entry["id"] for entry in stub.objects[actors].values() if name in (entry.get("name"), entry.get("username")))
    return {(role, target[len("NPU ") :]) for role, target in stub.roles_of(actors, number)}


SEE = {("read", name) for name in SURVEYS}


@pytest.mark.parametrize(
    ("name", "actors", "more"),
    [
        ("Watchers", "teams", set()),
        ("Guests", "teams", set()),
        ("Approvers", "teams", {("approval", "driver rollout")}),
        ("Operators", "teams", {("execute", name) for name in ("plan", "validate", "status", "driver rollout", "heal")}),
        ("chen.wei", "users", {("execute", name) for name in ("install", "join", "upgrade", "rollback")}),
    ],
)
def test_roles(scene, name, actors, more):
    """An approver has to read what the plan says. No role may launch a single step of the rollout: its approvals come before it."""
    assert held(scene, name, actors) == SEE | more


def test_forms_that_reboot_without_approval_only_when_they_are_wanted(scene):
    for name in SURVEYS:
        kind = "workflow_job_templates" if name == "driver rollout" else "job_templates"
        shown = set(scene["awx"].survey("NPU " + name, kind)) & set(WITHOUT_APPROVAL)
        assert not shown or name in (UPGRADE, ROLLBACK), name


def test_who_is_not_there_gets_no_role(scene):
    output = flat(scene["outputs"]["second"])
    assert "Nobody" in output.partition("Not all of npu_awx_roles could be granted: ")[2]
    assert 'A team must belong to the organization "Team B", or be given as team++organization' in output


def test_a_role_for_nobody(awx, tmp_path):
    output = refused(awx, tmp_path, {**FIRST, "npu_awx_roles": [{"may": ["see"]}]})
    assert "npu_awx_roles" in output and "team or user" in output
    assert awx.changes == []


# --- again ---


def test_a_second_run_changes_nothing(scene):
    assert changed(scene["outputs"]["again"]) == 0
    assert scene["changes"] == []


def test_check_mode_names_what_differs_and_nothing_else(scene):
    """A label that is not there yet is no reason to look at no template."""
    output = scene["outputs"]["check"]
    assert set(re.findall(r"^changed: \[localhost\] => \(item=(.*)\)$", output, re.M)) == {"new", "NPU status"}
    # The third is the list of what it could not look at.
    assert changed(output) == 3
    assert "the label new on the templates" in flat(output)
    assert re.search(r"^ok: \[localhost\] => \(item=fleet\)", output, re.M)


def test_what_the_team_has_changed_stays(scene):
    stub = scene["awx"]
    assert stub.one("schedules", "NPU heal every few minutes")["enabled"] is True
    assert "HOURLY" in stub.one("schedules", "NPU heal every few minutes")["rrule"]
    assert stub.one("schedules", "NPU join every few minutes")["enabled"] is False
    assert stub.one("organizations", "Platform")["description"] == "Ours"
    assert stub.one("credentials", "NPU Kubernetes API")["inputs"]["bearer_token"] == "a newer token"


def test_no_secret_is_shown(scene):
    for name, output in scene["outputs"].items():
        for secret in ("s3cret", PASSWORD, TOKEN):
            assert secret not in output, "%s shows %s" % (name, secret)


def test_schedules_are_made_switched_off(scene):
    made = [body for method, path, body in scene["awx"].changes if path == "schedules"]
    assert len(made) == 6
    assert [body["enabled"] for body in made] == [False] * 6
    assert all(awx_rules.rrule_problems(body["rrule"]) == [] for body in made)


def test_a_scheduled_status_tells_drift(scene):
    answers = {
        name: scene["awx"].one("schedules", "NPU " + name)["extra_data"]
        for name in ("heal every few minutes", "join every few minutes", "status every hour")
    }
    assert answers == {
        "heal every few minutes": {},
        "join every few minutes": {},
        "status every hour": {"npu_status_strict": "true"},
    }


# --- check mode where there is nothing ---


def test_check_mode_on_an_empty_awx(awx, tmp_path):
    output = Run(tmp_path, awx, THERE, "--check", "--diff").fine()
    assert awx.changes == []
    assert changed(output) > 7
    assert "Once the missing resources above exist, a run would also create or change: inventory source, job templates" in flat(
        output
    )


# --- refusals ---


def refused(awx, tmp_path, variables, *arguments, **options):
    return flat(Run(tmp_path, awx, variables, *arguments, **options).refused())


def test_a_configuration_file_that_lookups_cannot_read(awx, tmp_path):
    output = refused(awx, tmp_path, {**FIRST, "npu_awx_controller": {"controller_config_file": "tower.cfg"}})
    assert "npu_awx_controller has a configuration file, which lookups of awx.awx cannot read" in output


def test_an_api_that_would_not_be_verified(awx, tmp_path):
    output = refused(awx, tmp_path, {**FIRST, "npu_awx_kubernetes_ca": ""})
    assert (
        "npu_awx_kubernetes_ca is not set. Without the CA certificates of the API, jobs in AWX send the token to any server"
        in output
    )
    assert awx.changes == []


def test_half_a_credential(awx, tmp_path):
    output = refused(awx, tmp_path, {**FIRST, "npu_awx_registry_username": ""})
    assert "npu_awx_registry_password is set and npu_awx_registry_username is not" in output
    assert awx.changes == []


def test_wrong_defaults_of_surveys(awx, tmp_path):
    output = refused(awx, tmp_path, {**FIRST, "npu_awx_survey_defaults": {"npu_upgrade_on_blocked": "ignore"}})
    assert "npu_awx_survey_defaults.npu_upgrade_on_blocked is 'ignore'; it must be refuse or defer" in output
    assert awx.changes == []


def test_a_credential_that_is_not_there(awx, tmp_path):
    output = refused(awx, tmp_path, {**THERE, "npu_awx_machine_ssh_key": "", "npu_awx_machine_credential": "ours"}, "--check")
    assert "AWX has no credential" in output and "npu_awx_machine_ssh_key is not set to create it" in output


def test_without_the_collection_awx(awx, tmp_path):
    output = refused(awx, tmp_path, FIRST, environ={"ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false"})
    assert "ansible-galaxy collection install 'awx.awx:==24.6.1'" in output


def test_playbooks_that_awx_cannot_fetch(tmp_path):
    with AwxStub(PLAYBOOKS, project_status="failed") as stub:
        output = refused(stub, tmp_path, {**FIRST, "npu_awx_project_branch": "no-such-tag"})
    assert "AWX could not fetch no-such-tag of https://github.com/npuops/ascend for the project" in output


def test_secrets_that_awx_has_stay_until_new_ones_are_wanted(awx, tmp_path):
    """Up to the credentials; what comes after is not needed for that, and refused."""
    first = {**FIRST, "npu_awx_execution_environment_image": ""}
    Run(tmp_path, awx, first).refused()
    cluster, hosts, registry = (
        awx.one("credentials", "NPU " + name)["inputs"] for name in ("Kubernetes API", "hosts", "image registry")
    )
    rotated = "-----BEGIN OPENSSH PRIVATE KEY-----\nrotated\n"
    cluster["bearer_token"], hosts["ssh_key_data"], registry["password"] = "rotated token", rotated, "rotated password"
    del hosts["become_password"]
    # What is not secret changes, and one secret is new.
    other = {
        **first,
        "npu_awx_kubernetes_host": "https://other.example.com:6443",
        "npu_awx_kubernetes_ca": "-----BEGIN CERTIFICATE-----\nother\n",
        "npu_awx_machine_username": "admin",
        "npu_awx_registry_username": "other",
        "npu_awx_update_secrets": "false",
        "npu_awx_controller": {"controller_host": awx.url, "controller_username": USER, "controller_password": PASSWORD},
    }
    awx.sessions = 0
    output = refused(awx, tmp_path, other, CONTROLLER_HOST="", CONTROLLER_OAUTH_TOKEN="")
    assert "AWX has no execution environment" in output
    cluster, hosts, registry = (
        awx.one("credentials", "NPU " + name)["inputs"] for name in ("Kubernetes API", "hosts", "image registry")
    )
    assert cluster == {
        "host": "https://other.example.com:6443",
        "bearer_token": "rotated token",
        "verify_ssl": True,
        "ssl_ca_cert": FIRST["npu_awx_kubernetes_ca"],
    }
    assert hosts == {
        "username": "admin",
        "ssh_key_data": rotated,
        "become_method": "sudo",
        "become_password": SECRETS["npu_awx_machine_become_password"],
    }
    assert registry == {"username": "other", "password": "rotated password"}
    assert awx.sessions == 1, "the guide says that each run leaves one token behind"

    newer = {
        **other,
        "npu_awx_kubernetes_token": "new-s3cret",
        "npu_awx_machine_become_password": "",
        "npu_awx_update_secrets": True,
        "npu_awx_controller": {},
    }
    refused(awx, tmp_path, newer)
    cluster, hosts = (awx.one("credentials", "NPU " + name)["inputs"] for name in ("Kubernetes API", "hosts"))
    assert (cluster["bearer_token"], cluster["ssl_ca_cert"]) == ("new-s3cret", other["npu_awx_kubernetes_ca"])
    assert hosts["become_password"] == SECRETS["npu_awx_machine_become_password"], "no other was given"


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://github.com/npuops/ascend", False),
        ("https://git.example.com:8443/a@b/ascend.git", False),
        ("git@git.example.com:mirror/ascend.git", False),
        ("ssh://git@git.example.com/mirror/ascend.git", False),
        ("https://me:token@git.example.com/ascend", True),
        ("HTTPS://token@git.example.com/ascend", True),
        ("https://me:p@ss@git.example.com/ascend", True),
        ("ssh://me:token@git.example.com/ascend", True),
    ],
)
def test_urls_with_a_password(url, refused):
    assert bool(re.match(VARIABLES["__npu_awx_url_with_password"], url)) is refused


def test_a_project_url_with_a_password_is_refused_and_not_shown(awx, tmp_path):
    output = refused(awx, tmp_path, {**FIRST, "npu_awx_project_url": "https://me:url-s3cret@git.example.com/ascend"}, "-vvv")
    assert "set npu_awx_project_credential to the name of that credential" in output
    assert awx.changes == []


# --- documentation ---


def test_the_project_is_at_the_version_of_the_collection():
    with open(os.path.join(CHECKOUT, "galaxy.yml"), encoding="utf-8") as stream:
        assert load("defaults", "main.yml")["npu_awx_project_branch"] == yaml.safe_load(stream)["version"]


def test_the_guide_has_every_question():
    with open(os.path.join(CHECKOUT, "docs", "awx.md"), encoding="utf-8") as stream:
        forms = stream.read().partition("\n## Surveys")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z -]+)` \| .* \| ([^|]*) \|$", forms, re.M))
    assert {name: re.findall(r"`([a-z_]+)`", rows[name]) for name in SURVEYS} == SURVEYS


def answers_of_the_guide():
    with open(os.path.join(CHECKOUT, "docs", "awx.md"), encoding="utf-8") as stream:
        (text,) = re.findall(r"^    -d '(.*)'$", stream.read(), re.M)
    return json.loads(text)["extra_vars"]


def test_what_the_guide_launches_over_the_api_is_accepted():
    survey = npu_survey(SURVEYS["driver rollout"], QUESTIONS)
    answers = answers_of_the_guide()
    assert awx_rules.answer_problems(survey, answers) == {}
    assert {type(value) for value in answers.values()} == {str, int}


@pytest.mark.parametrize(
    "wrong",
    [
        {"npu_upgrade_retry": True},
        {"npu_upgrade_retry": ""},
        {"npu_upgrade_max_parallel": 2},
        {"npu_upgrade_max_failures": "2"},
        {"npu_driver_version": ""},
    ],
)
def test_what_the_guide_says_that_awx_refuses(wrong):
    assert awx_rules.answer_problems(npu_survey(SURVEYS["driver rollout"], QUESTIONS), {**answers_of_the_guide(), **wrong})


def test_the_guide_names_every_word_of_the_roles():
    with open(os.path.join(CHECKOUT, "docs", "awx.md"), encoding="utf-8") as stream:
        rows = " ".join(re.findall(r"^\| (`[a-z ,`]+).* \| (?:Read|Execute|Approve) \|", stream.read(), re.M))
    options = load("meta", "argument_specs.yml")["argument_specs"]["main"]["options"]["npu_awx_roles"]["options"]
    assert set(re.findall("`([a-z ]+)`", rows)) == set(VARIABLES["__npu_awx_words"]) == set(options["may"]["choices"])
