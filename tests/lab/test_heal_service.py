# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that keeps the watch running, on a host with a real systemd. A script stands in for ansible-playbook there."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import yaml

from support.lab.lab import AS_JSON

HOST = "cpu-a"
SERVICE = "npuops-heal"
UNIT = f"/etc/systemd/system/{SERVICE}.service"
# As awkward as a directory may be called.
PLACE = "/var/tmp/npuops heal 100%"
USER = "daemon"
ARGUMENTS = ["--vault-password-file", f"{PLACE}/vault", "-e", "a 100% $HOME ${HOME} \"b\" 'c' \\d\n\te", "", ";", "%h", "ä"]
ENVIRONMENT = {"KUBECONFIG": f"{PLACE}/kube config", "NPU_TEST": '50% $HOME "x" \\'}

# Like ansible-playbook with a recovery at work: it ends at once when it is told to, what it has started takes a moment.
STAND_IN = r"""#!/bin/sh
printf '%s\0' "$@" > arguments
{ pwd; id -un; printf '%s\n' "$KUBECONFIG" "$NPU_TEST"; } > circumstances
[ ! -e broken ] || exit 1
(trap 'sleep 1; : > ended; exit' TERM; while :; do : > ready; sleep 0.1; done) &
exec sleep infinity
"""


def variables(**changes):
    """What a user sets for a service that works; changes are named without npu_heal_service_."""
    values = {
        "hosts": HOST,
        "user": USER,
        "directory": PLACE,
        "inventory": [f"{PLACE}/hosts.yml", "/etc/hosts"],
        "command": f"{PLACE}/ansible-playbook",
        "arguments": ARGUMENTS,
        "environment": ENVIRONMENT,
    }
    return {f"npu_heal_service_{name}": value for name, value in {**values, **changes}.items()}


class Machine:
    """The host, seen from outside."""

    def __init__(self, lab):
        self._lab = lab

    def shell(self, command, check=True):
        return self._lab.ssh(HOST, command, check=check)

    def file(self, name):
        return self.shell(f"cat {shlex.quote(f'{PLACE}/{name}')}", check=False).stdout

    def has(self, name):
        return self.shell(f"test -e {shlex.quote(f'{PLACE}/{name}')}", check=False).returncode == 0

    def remove(self, name):
        self.shell(f"rm -f {shlex.quote(f'{PLACE}/{name}')}")

    def property(self, name):
        return self.shell(f"systemctl show --property={name} --value {SERVICE}.service").stdout.strip()

    def traces(self):
        return self.shell(
            f"find /etc /run /usr/lib/systemd /var/lib -xdev -name '{SERVICE}*' 2>/dev/null", check=False
        ).stdout.split()

    def play(self, *arguments, check=True, **changes):
        return self._lab.playbook("heal_service", *arguments, check=check, **variables(**changes))

    def runs(self):
        self._lab.wait_for(lambda: self.property("ActiveState") == "active" and self.has("ready"), 60, f"{SERVICE} runs")
        return int(self.property("MainPID"))


def changed(result):
    """How many tasks changed something."""
    return int(re.search(rf"^{HOST}\s+: ok=\d+\s+changed=(\d+)", result.stdout, re.M).group(1))


@pytest.fixture(scope="module")
def machine(lab):
    """The host with all that the service needs and without the service; afterwards as it was before."""
    found = Machine(lab)
    place = shlex.quote(PLACE)
    undo = (
        f"systemctl disable --now {SERVICE}.service 2>/dev/null; rm -rf {UNIT} /run/systemd/system/{SERVICE}.service.d {place};"
        f" systemctl daemon-reload; systemctl reset-failed {SERVICE}.service 2>/dev/null; true"
    )
    found.shell(undo)
    found.shell(
        f"mkdir -m 755 {place} && cd {place} && touch hosts.yml && install -m 600 /dev/null secret.yml"
        f" && printf %s {shlex.quote(STAND_IN)} > ansible-playbook && chmod 755 ansible-playbook && chown {USER} ."
    )
    yield found
    found.shell(undo)


@pytest.fixture(scope="module")
def service(machine):
    """The host with the service. A test that changes it puts it back."""
    machine.play()
    return machine


REFUSED = {
    "no-user": ({"user": ""}, "npu_heal_service_user is not set"),
    "unknown-user": ({"user": "npuops-heal"}, 'npu_heal_service_user: this host has no account "npuops-heal"'),
    "missing-inventory": (
        {"inventory": "/etc/$HOME/hosts.yml"},
        "npu_heal_service_inventory: this host has no inventory /etc/$HOME/hosts.yml",
    ),
    "unreadable-inventory": ({"inventory": f"{PLACE}/secret.yml"}, f"the account {USER} may not read {PLACE}/secret.yml"),
    "no-command": ({"command": ""}, "This host has no ansible-playbook in PATH"),
    "command-is-no-program": ({"command": "/etc/hosts"}, f"the account {USER} may not run /etc/hosts"),
    "name": ({"name": "npuops-heal.service"}, 'npu_heal_service_name is "npuops-heal.service"'),
    "other-service": ({"name": "systemd-journald"}, "This host has a service systemd-journald that npuops.ascend did not create"),
}


@pytest.fixture(scope="module")
def refusals(machine, lab, tmp_path_factory):
    """{case: (message, number of changes)} of one run: the host has a name for each case, with the variables of that case."""
    group = yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))["npu_nodes"]
    inventory = tmp_path_factory.mktemp("refused") / "hosts.yml"
    inventory.write_text(
        yaml.safe_dump(
            {
                "refused": {
                    "vars": {name: value for name, value in group["vars"].items() if name.startswith("ansible_")},
                    "hosts": {
                        case: {**group["hosts"][HOST], **variables(**changes)} for case, (changes, _sentence) in REFUSED.items()
                    },
                }
            }
        ),
        encoding="utf-8",
    )
    result = lab.playbook("heal_service", "-i", str(inventory), check=False, env=AS_JSON, npu_heal_service_hosts="refused")
    assert machine.traces() == []
    output = json.loads(result.stdout)
    tasks = [task["hosts"] for play in output["plays"] for task in play["tasks"]]
    return {
        case: ("\n".join(task[case]["msg"] for task in tasks if task.get(case, {}).get("failed")), output["stats"][case]["changed"])
        for case in REFUSED
    }


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused(refusals, case):
    """The rest of it: tests/unit/plugins/module_utils/_host/test_heal_service.py."""
    message, changes = refusals[case]
    assert REFUSED[case][1] in message
    assert changes == 0


def test_check_mode_tells_and_changes_nothing(machine):
    result = machine.play("--check", "--diff")
    assert changed(result) == 1
    assert "+ExecStart=" in result.stdout
    assert machine.traces() == []


def test_it_runs_exactly_what_was_said(service):
    service.runs()
    assert service.file("arguments").split("\0")[:-1] == [
        "npuops.ascend.heal",
        "-i",
        f"{PLACE}/hosts.yml",
        "-i",
        "/etc/hosts",
        *ARGUMENTS,
        "-e",
        '{"npu_heal_watch": true}',
    ]
    assert service.file("circumstances").splitlines() == [PLACE, USER, *ENVIRONMENT.values()]
    assert service.shell(f"systemctl is-enabled {SERVICE}.service").stdout.strip() == "enabled"
    verified = service.shell(f"systemd-analyze verify {UNIT}")
    assert SERVICE not in verified.stdout + verified.stderr


def test_a_second_run_changes_nothing_and_a_change_restarts(service):
    process = service.runs()
    assert changed(service.play()) == 0
    assert changed(service.play("--check")) == 0
    assert service.runs() == process
    assert changed(service.play("--check", arguments=["--forks=2"])) > 0
    assert service.runs() == process
    assert changed(service.play(arguments=["--forks=2"])) > 0
    assert service.runs() != process
    assert "--forks=2" in service.file("arguments").split("\0")
    service.play()


def test_a_run_that_was_killed_is_finished_by_the_next_one(service):
    """Between the new unit and its start, wherever: the service ends up as the unit says, and runs."""
    wanted = service.shell(f"cat {UNIT}").stdout
    service.play(arguments=["--forks=2"])
    assert "--forks=2" in service.file("arguments").split("\0")
    # Written, not yet read by systemd; what runs is the old one.
    service.shell(f"printf %s {shlex.quote(wanted)} > {UNIT}")
    assert changed(service.play()) > 0
    service.runs()
    assert "--forks=2" not in service.file("arguments").split("\0")
    # Read, not yet enabled and started.
    service.shell(f"systemctl disable --now {SERVICE}.service")
    assert changed(service.play()) > 0
    service.runs()
    assert service.shell(f"systemctl is-enabled {SERVICE}.service").stdout.strip() == "enabled"
    assert changed(service.play()) == 0


def test_what_it_has_started_ends_in_order(service, lab):
    service.runs()
    service.remove("ended")
    service.shell(f"systemctl stop {SERVICE}.service")
    assert service.property("ActiveState") == "inactive"
    assert service.has("ended")
    service.shell(f"systemctl start {SERVICE}.service")


@pytest.fixture
def short_pause(service):
    """The pause between two starts is shortened, and nothing else."""
    drop_in = f"/run/systemd/system/{SERVICE}.service.d"
    service.shell(
        f"mkdir -p {drop_in} && printf '[Service]\\nRestartSec=100ms\\n' > {drop_in}/test.conf && systemctl daemon-reload"
    )
    yield
    service.shell(f"rm -r {drop_in} && systemctl daemon-reload")


@pytest.mark.usefixtures("short_pause")
def test_it_comes_back_when_it_is_killed(service, lab):
    process = service.runs()
    service.shell(f"kill -KILL {process}")
    lab.wait_for(lambda: service.property("MainPID") not in ("0", str(process)), 60, f"{SERVICE} has another process")
    assert service.runs() != process


@pytest.mark.usefixtures("short_pause")
def test_a_broken_setup_is_seen_as_failed_and_starts_when_it_is_repaired(service, lab):
    """It takes as many starts as its limit says."""
    service.runs()
    service.shell(f"touch {shlex.quote(f'{PLACE}/broken')} && kill -KILL {service.property('MainPID')}")
    lab.wait_for(lambda: service.property("ActiveState") == "failed", 60, f"{SERVICE} has failed")
    assert SERVICE in service.shell("systemctl --failed --plain").stdout
    service.remove("broken")
    service.remove("ready")
    service.play()
    service.runs()


def test_absent_leaves_nothing(service):
    process = service.runs()
    assert changed(service.play("--check", state="absent")) > 0
    assert service.runs() == process
    # Nothing but the name is needed.
    assert changed(service.play(state="absent", user="", directory="", inventory=[], command="")) > 0
    assert service.traces() == []
    assert service.property("LoadState") == "not-found"
    assert service.shell(f"test -e /proc/{process}", check=False).returncode != 0
    assert changed(service.play(state="absent")) == 0
