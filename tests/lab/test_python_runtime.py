# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host without a Python of its own: what was brought to it, and what happens when that cannot be."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess

import pytest

from support.paths import CHECKOUT
from support.patience import PATIENCE

HOST, OTHER = "npu-c", "npu-b"
TOP = "/var/lib/npuops/python"
INTERPRETER = TOP + "/current/python3"


pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(autouse=True)
def image_of_the_fleet(lab):
    """Whatever a test brings: the fleet's own image is there again afterwards, and nothing else."""
    yield
    assert not bring(lab).get("failed")
    assert len(runtimes(lab)) == 1


def runtimes(lab) -> list[str]:
    return sorted(name for name in lab.ssh(HOST, f"ls -A {TOP}").stdout.split() if name != "current")


def current(lab) -> str:
    return lab.ssh(HOST, f"readlink {TOP}/current").stdout.strip()


def bring(lab, host: str = HOST, **options) -> dict:
    return lab.module(
        host,
        "npu_python",
        **{
            "image": lab.variable("npu_node_agent_image"),
            "registry_username": lab.variable("npu_registry_username"),
            "registry_password": lab.variable("npu_registry_password"),
            "registry_plain_http": True,
            **options,
        },
    )


def other_reference(lab) -> str:
    """The fleet's image by its digest: another reference, so another Python."""
    digest = lab.kubectl(
        "get",
        "pods",
        "-n",
        "npu-operator",
        "-l",
        "app.kubernetes.io/name=npu-node-agent",
        "-o",
        "jsonpath={.items[0].status.containerStatuses[0].imageID}",
    ).partition("@")[2]
    return f"{str(lab.variable('npu_node_agent_image')).rpartition(':')[0]}@{digest}"


def traces_of_a_pull(lab) -> str:
    """Credentials, mounts, and what is in our namespace of containerd; nothing of it may stay."""
    return lab.ssh(
        HOST,
        "find /run/npuops/python -mindepth 1 ! -name lock; grep npuops/python /proc/mounts;"
        f" ls -A {TOP} | grep new; for kind in images leases content snapshots; do"
        " ctr -n npuops-python $kind ls 2>/dev/null | tail -n +2; done",
        check=False,
    ).stdout


@pytest.mark.core
def test_the_host_has_no_python_but_ours(lab):
    found = lab.ssh(HOST, "command -v python python3 python3.11; find /usr -name 'libpython*.so*'", check=False).stdout
    assert found == ""
    facts = lab.module(HOST, "npu_facts")["npu"]
    assert facts["python"].startswith("3.11.") and facts["chip_count"] == 4
    assert traces_of_a_pull(lab) == ""


def test_other_hosts_get_none(lab):
    assert lab.ssh(OTHER, f"test -e {TOP}", check=False).returncode != 0


def test_another_image_replaces_it_and_the_old_one_goes(lab):
    before = current(lab)
    result = bring(lab, image=other_reference(lab))
    assert result["changed"] and result["runtime"] != before, result
    assert runtimes(lab) == [current(lab)] == [result["runtime"]]
    assert lab.module(HOST, "npu_facts")["npu"]["python"].startswith("3.11.")
    assert traces_of_a_pull(lab) == ""


def test_check_mode_changes_nothing(lab):
    before = current(lab)
    result = lab.playbook("install", "--check", "--diff", f"--limit={HOST}", npu_node_agent_image=other_reference(lab))
    assert re.search(rf"^-{before}$", result.stdout, re.MULTILINE), result.stdout
    (after,) = re.findall(r"^\+(\S+-[0-9a-f]{12})$", result.stdout, re.MULTILINE)
    assert after != before
    assert (current(lab), runtimes(lab)) == (before, [before])


def test_an_image_that_is_not_there(lab):
    before = current(lab)
    image = f"{lab.variable('npu_node_agent_image')}-missing"
    result = lab.playbook("install", check=False, npu_node_agent_image=image)
    told = " ".join(result.stdout.split())
    assert result.returncode != 0 and f"{HOST}: " in told and f"{image} does not exist" in told, result.stdout
    assert "Nothing was changed: 1 of 4 hosts" in told
    assert current(lab) == before


def test_a_wrong_password_is_never_printed(lab):
    wrong = "wr0ng-s3cret-of-this-test"
    result = lab.playbook(
        "install",
        f"--limit={HOST}",
        "-vvvv",
        check=False,
        npu_registry_password=wrong,
        npu_node_agent_image=f"{lab.variable('npu_node_agent_image')}-other",
    )
    assert result.returncode != 0 and "does not let user" in result.stdout
    # ansible-playbook shows its own command line, which this test has put it on.
    shown = [line for line in (result.stdout + result.stderr).splitlines() if wrong in line and "npu_registry_password" not in line]
    assert shown == []
    assert traces_of_a_pull(lab) == ""


def test_the_password_is_on_no_command_line_of_the_host(lab):
    """On the host with containerd 1.7, where every command line and environment is written down whenever ctr is called."""
    spy = (
        "#!/bin/sh\ncat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' ' >>/run/seen\n"
        'exec /usr/bin/ctr "$@"\n'
    )
    lab.ssh(OTHER, f"printf '%s' {shlex.quote(spy)} >/usr/local/bin/ctr && chmod 0755 /usr/local/bin/ctr")
    try:
        result = bring(lab, OTHER)
        seen = lab.ssh(OTHER, "cat /run/seen").stdout
        started = lab.ssh(OTHER, f"{INTERPRETER} -c 'import sys; print(sys.executable)'").stdout
    finally:
        removed = lab.module(OTHER, "npu_python", state="absent")
        lab.ssh(OTHER, "rm -f /usr/local/bin/ctr /run/seen")
    assert result["changed"] and TOP in started, result
    assert "images pull" in seen, "the pull was not seen"
    assert str(lab.variable("npu_registry_password")) not in seen and "Basic " not in seen
    assert removed["changed"] and lab.ssh(OTHER, f"test -e {TOP}", check=False).returncode != 0
    lab.ssh(OTHER, "test -e /var/lib/npuops/bin/npu-driver")


def test_killed_while_it_unpacks(lab, tmp_path):
    """The shell on the host and the run die half-way: the old one stays, and the next run makes the new one."""
    before = current(lab)
    other = other_reference(lab)
    # On the host itself: from here it would be noticed too late.
    kill = (
        f'tries=0; until [ -e "$(echo {TOP}/.new-*)" ]; do [ $((tries += 1)) -le 30000 ] || exit 1; sleep 0.02; done;'
        f" pkill -KILL -xf '/bin/sh -s'; ls -d {TOP}/.new-*"
    )
    ssh = ["ssh", "-F", str(lab.state / "ssh_config"), "-o", "BatchMode=yes", HOST, kill]
    install = [
        "ansible-playbook",
        "-i",
        str(lab.inventory),
        "npuops.ascend.install",
        f"--limit={HOST}",
        "-e",
        f"npu_node_agent_image={other}",
    ]
    told = tmp_path / "install.log"
    # ssh makes what it is given non-blocking, and Ansible refuses to start with such a standard input.
    own = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with told.open("w") as log, subprocess.Popen(ssh, stdout=subprocess.PIPE, text=True, **own) as killer:
        with subprocess.Popen(
            install,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=CHECKOUT,
            env=lab.environment(),
        ) as run:
            lab.wait_for(
                lambda: killer.poll() is not None or run.poll() is not None, PATIENCE, "the kill, or the end of install", 0.1
            )
            if killer.poll() is None:
                killer.kill()
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
            half = killer.communicate()[0]
    assert ".new-" in half, f"it was not killed half-way:\n{told.read_text()}"
    assert current(lab) == before
    assert lab.module(HOST, "npu_facts")["npu"]["python"].startswith("3.11.")
    result = bring(lab, image=other)
    assert result["changed"] and runtimes(lab) == [result["runtime"]] == [current(lab)], result
    assert traces_of_a_pull(lab) == ""


def test_a_lost_runtime_is_told_and_comes_back(lab):
    lab.ssh(HOST, f"rm -rf {TOP}")
    result = lab.playbook("status", check=False)
    told = " ".join(result.stdout.split())
    assert re.search(rf"{HOST}.*its Python is not installed yet.*Run npuops\.ascend\.install", told), result.stdout
    assert lab.ssh(HOST, f"test -e {INTERPRETER}", check=False).returncode != 0
    check = lab.playbook("install", "--check")
    assert f"{HOST}: has no Python: install the Python of" in " ".join(check.stdout.split()), check.stdout
    assert lab.ssh(HOST, f"test -e {TOP}", check=False).returncode != 0
    lab.playbook("install", f"--limit={HOST}")
    lab.playbook("validate")
