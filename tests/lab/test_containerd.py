# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching CDI on in real containerd: what it understands of every fixture, and what becomes of a node."""

from __future__ import annotations

import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime, enable_cdi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit
from hypothesis import given
from hypothesis import strategies as st

from support import toml_documents
from support.host import containerd_probes as probes
from support.patience import PATIENCE
from support.properties import settings

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "unit" / "fixtures" / "containerd"
DISTRIBUTIONS = FIXTURES.parent / "distributions"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
NODES = {"2": "npu-a", "1.7": "npu-b"}
CONFIG = "/etc/containerd/config.toml"
BACKUP = CONFIG + ".npuops-backup"
DROP_IN = "/etc/systemd/system/containerd.service.d/90-test.conf"


@pytest.fixture(scope="session")
def binaries(lab, tmp_path_factory):
    """containerd of both lines, as the lab's nodes run it."""
    directory = tmp_path_factory.mktemp("containerd")
    paths = {}
    for release, node in NODES.items():
        paths[release] = directory / release
        with open(paths[release], "wb") as stream:
            subprocess.run(
                ["ssh", "-F", str(lab.state / "ssh_config"), "-o", "BatchMode=yes", node, "cat /usr/bin/containerd"],
                stdout=stream,
                check=True,
                timeout=PATIENCE,
            )
        paths[release].chmod(0o755)
        said = subprocess.run([paths[release], "--version"], capture_output=True, text=True, check=True).stdout
        assert re.search(rf" v?{release}\.", said)
    return paths


def dump(binary, path):
    """The lines of config dump, without the list of the files' own names."""
    result = subprocess.run([binary, "-c", path, "config", "dump"], capture_output=True, text=True, check=True)
    return [line.strip() for line in result.stdout.splitlines() if not line.startswith("imports = ")]


@pytest.mark.parametrize("release", NODES)
@pytest.mark.parametrize("case", EXPECTED)
def test_containerd_agrees(binaries, tmp_path, case, release):
    """The edit is the expected one, and before and after it containerd prints the same but for CDI."""
    exact = re.search(
        r" v?(\d+\.\d+)\.", subprocess.run([binaries[release], "--version"], capture_output=True, text=True, check=True).stdout
    )
    # A row may name a minor version that differs from the others of its line.
    expected = EXPECTED[case].get(exact[1], EXPECTED[case][release])
    shutil.copytree(FIXTURES, tmp_path / "etc")
    main = tmp_path / "etc" / case
    switch = enable_cdi.Switch(containerd_runtime.Daemon(1, str(binaries[release]), str(main), True, None, None))
    if expected == "refused":
        with pytest.raises(NpuError):
            switch.look()
        return
    switch.look()
    assert switch.before.cri_disabled == (expected == "no CRI")
    if expected in ("on", "no CRI"):
        assert switch.before.on or expected == "no CRI"
        return
    assert not switch.before.on
    before = dump(binaries[release], main)
    edit = switch.choose()
    assert edit.path == str(tmp_path / "etc" / expected["file"])
    pathlib.Path(edit.path).write_bytes(edit.after.encode())
    after = dump(binaries[release], main)
    changed = [line[2:] for line in difflib.ndiff(before, after) if line[0] in "+-"]
    assert changed and all(line.startswith(("enable_cdi = ", "cdi_spec_dirs = ")) for line in changed), changed
    assert "enable_cdi = true" in after


def test_containerd_agrees_about_what_k3s_will_generate(binaries, tmp_path):
    """1.7 adds the second section to the first one; 2 refuses it, for which there is the template of version 3."""
    config = tmp_path / "config.toml"
    shutil.copy(DISTRIBUTIONS / "k3s-1.7.toml", config)
    daemon = containerd_runtime.Daemon(1, str(binaries["1.7"]), str(config), True, None, None, "k3s")
    switch = enable_cdi.Switch(daemon)
    switch.look()
    edit = switch.choose()
    assert edit.path == str(tmp_path / "config.toml.tmpl")
    before = dump(binaries["1.7"], config)
    config.write_text(edit.shown.after)
    changed = [line[2:] for line in difflib.ndiff(before, dump(binaries["1.7"], config)) if line[0] in "+-"]
    assert sorted(changed) == ["enable_cdi = false", "enable_cdi = true"]
    with pytest.raises(subprocess.CalledProcessError):
        dump(binaries["2"], config)
    assert [os.path.basename(path) for path, text in edit.companions] == ["config-v3.toml.tmpl"]


@pytest.mark.parametrize("release", NODES)
def test_containerd_agrees_about_any_document(binaries, tmp_path, release):
    """Random configurations in any style: what real containerd prints after the edit differs in CDI only."""
    main, binary, edited = tmp_path / "config.toml", binaries[release], []

    @settings(max_examples=80)
    @given(toml_documents.documents(), st.sampled_from(("version = 2\n", "version = 2\n", "")))
    def agrees(text, version):
        main.write_bytes((text if re.search(r"^\s*version", text, re.MULTILINE) else version + text).encode())
        if subprocess.run([binary, "-c", main, "config", "dump"], capture_output=True, check=False).returncode:
            return  # containerd's own parser knows less of TOML
        before = dump(binary, main)
        switch = enable_cdi.Switch(containerd_runtime.Daemon(1, str(binary), str(main), True, None, None))
        try:
            switch.look()
            edit = None if switch.before.on or switch.before.cri_disabled else switch.choose()
        except NpuError:
            return
        if edit is not None:
            pathlib.Path(edit.path).write_bytes(edit.after.encode())
            after = dump(binary, main)
            changed = [line[2:] for line in difflib.ndiff(before, after) if line[0] in "+-"]
            assert changed and all(line.startswith(("enable_cdi = ", "cdi_spec_dirs = ")) for line in changed), changed
            assert "enable_cdi = true" in after
            edited.append(edit)

    agrees()
    assert len(edited) >= 5, "hardly any of them was edited"


@pytest.mark.parametrize("name, release", probes.CASES)
def test_probes(binaries, tmp_path, name, release):
    """What is easily misunderstood, by real containerd; and the files that 1.7 says it has read."""
    shutil.copytree(probes.DIRECTORY / name, tmp_path / "etc")
    expected = probes.EXPECTED[name][release]
    seen = probes.outcome(binaries[release], str(tmp_path / "etc"))
    assert probes.agrees(seen, expected), seen
    if release == "1.7" and expected != ["unsupported config version"] and probes.EXPECTED[name]["files"]:
        read = containerd_runtime.Daemon(1, str(binaries[release]), str(tmp_path / "etc" / "config.toml"), True, None, None).dump()
        listed = toml_edit.string_list(read.values[("imports",)])
        assert sorted(listed) == sorted(str(tmp_path / "etc" / file) for file in probes.EXPECTED[name]["files"])


def test_what_containerd_quotes_of_its_file_is_masked(binaries, tmp_path):
    main = tmp_path / "config.toml"
    main.write_text('version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.configs."r".auth]\n  password = ["hunter2 x", 3]\n')
    with pytest.raises(NpuError, match="Can't convert") as caught:
        containerd_runtime.Daemon(1, str(binaries["1.7"]), str(main), True, None, None).dump()
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("release", NODES)
def test_no_file(binaries, tmp_path, release):
    """The defaults; an edit on 1.7 changes nothing else of them."""
    main = tmp_path / "config.toml"
    switch = enable_cdi.Switch(containerd_runtime.Daemon(1, str(binaries[release]), str(main), False, None, None))
    switch.look()
    assert switch.before.on == (release == "2")
    if release == "1.7":
        assert switch.choose().path == str(main)
    assert not main.exists()


class Node:
    """One node's containerd; everything is put back by ``restore``."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.saved = self.sh("tar -C /etc -cz containerd | base64")
        self.original = self.sh(f"cat {CONFIG}")

    def sh(self, command, check=True):
        return self.lab.ssh(self.name, command, check=check).stdout

    def write(self, text, path=CONFIG):
        subprocess.run(
            ["ssh", "-F", str(self.lab.state / "ssh_config"), self.name, f"mkdir -p {pathlib.Path(path).parent}; cat > {path}"],
            input=text,
            text=True,
            check=True,
            timeout=PATIENCE,
        )

    def off(self, text=None):
        """containerd runs with CDI off, its file says so in one line."""
        lines = [line for line in (text or self.original).splitlines() if "enable_cdi" not in line]
        section = "io.containerd.grpc.v1.cri" if self.name == NODES["1.7"] else "io.containerd.cri.v1.runtime"
        place = next(n for n, line in enumerate(lines) if line.strip().strip("[]").replace("'", '"') == f'plugins."{section}"')
        lines.insert(place + 1, "    enable_cdi = false # not yet")
        text = "\n".join(lines) + "\n"
        self.write(text)
        self.sh(f"rm -f {BACKUP}; systemctl restart containerd")
        return text

    def unit(self, text):
        self.write(text, DROP_IN)
        self.sh("systemctl daemon-reload")

    def pid(self):
        return self.sh("systemctl show containerd -p MainPID --value").strip()

    def shims(self):
        return self.sh("pgrep -x containerd-shim | sort").split()

    def switch(self, *arguments, **options):
        """Run the module; its result."""
        return self.lab.module(self.name, "containerd_cdi", *arguments, **options)

    def restore(self):
        self.write(self.saved, "/tmp/containerd.tar.gz.base64")
        self.sh(
            f"rm -f {DROP_IN}; rmdir {pathlib.Path(DROP_IN).parent} 2>/dev/null; rm -rf /etc/containerd /var/lib/npuops/containerd"
            " && base64 -d /tmp/containerd.tar.gz.base64 | tar -C /etc -xz && rm /tmp/containerd.tar.gz.base64"
            " && systemctl daemon-reload && systemctl reset-failed containerd && systemctl restart containerd"
        )
        self.lab.wait_for(lambda: "restart_required" in self.switch("--check"), 30, f"{self.name}: containerd")


@pytest.fixture(params=NODES.values())
def node(lab, request):
    node = Node(lab, request.param)
    yield node
    node.restore()


@pytest.fixture
def node17(lab):
    node = Node(lab, NODES["1.7"])
    yield node
    node.restore()


@pytest.mark.core
@pytest.mark.usefixtures("installed")  # pods that go on
def test_one_line_changes_and_pods_go_on(node):
    text = node.off(
        "# Ours. \u00e4\u00f6\u00fc\n"
        + node.original.replace('default_runtime_name = "runc"', 'default_runtime_name = "runc" # foreign')
    )
    node.sh(f"chown root:daemon {CONFIG}; chmod 0640 {CONFIG}")
    pid, shims = node.pid(), node.shims()
    assert shims

    checked = node.switch("--check", "--diff")
    assert checked["changed"] and "+    enable_cdi = true # not yet" in checked["diff"]["prepared"]
    assert (node.sh(f"cat {CONFIG}"), node.pid(), node.sh(f"ls {BACKUP}", check=False)) == (text, pid, "")

    result = node.switch()
    assert result["changed"] and result["edited"] == CONFIG and not result["restart_required"], result
    assert node.sh(f"cat {CONFIG}") == text.replace("enable_cdi = false", "enable_cdi = true")
    assert node.sh(f"cat {BACKUP}") == text
    assert node.sh(f"stat -c '%U:%G %a' {CONFIG} {BACKUP}").split("\n")[:2] == ["root:daemon 640"] * 2
    assert node.pid() != pid
    assert set(shims) <= set(node.shims())

    again = node.switch()
    assert not again["changed"] and again["reason"] is None


def test_file_that_does_not_parse(node):
    pid = node.pid()
    node.write(node.original + "\n[plugins\n")
    result = node.switch()
    assert result["failed"] and "nothing was changed" in result["msg"] and CONFIG in result["msg"], result
    assert node.sh(f"cat {CONFIG}") == node.original + "\n[plugins\n"
    assert node.pid() == pid


def test_drop_in_with_the_section_on_1_7(node17):
    """There a drop-in replaces the whole section: the edit belongs into it, and the backup not beside it."""
    site = "/etc/containerd/conf.d/site"
    section = node17.off().replace("version = 2\n", "", 1)
    section = "version = 2\n" + section[section.index("[plugins]") :]
    node17.write(section, site)
    node17.write('imports = ["conf.d/*"]\n' + node17.sh(f"cat {CONFIG}"))
    node17.sh("systemctl restart containerd")
    result = node17.switch()
    assert result["changed"] and result["edited"] == site, result
    assert node17.sh(f"cat {site}") == section.replace("enable_cdi = false", "enable_cdi = true")
    assert node17.sh("ls -A /etc/containerd/conf.d") == "site\n"
    assert not node17.switch()["changed"]


def test_run_that_ended_between_edit_and_restart(node):
    node.off()
    pid = node.pid()
    first = node.switch(restart=False)
    assert first["changed"] and first["restart_required"] and node.pid() == pid
    again = node.switch(restart=False)
    assert not again["changed"] and again["restart_required"]
    second = node.switch()
    assert second["changed"] and second["edited"] is None and "has not been restarted since" in second["msg"]
    assert node.pid() != pid
    assert not node.switch()["changed"]


# containerd does not start with CDI on, whatever the reason; with the old file it does.
REFUSES_CDI = f"""[Service]
ExecStartPre=/bin/sh -c 'if grep -q "enable_cdi = true" {CONFIG}; then echo "CDI is unbearable, failed" >&2; exit 1; fi'
Restart=no
"""


@pytest.mark.core
@pytest.mark.parametrize("interrupted", [False, True])
def test_cri_that_does_not_come_back(node, interrupted):
    text = node.off()
    node.unit(REFUSES_CDI)
    if interrupted:
        assert node.switch(restart=False)["changed"]
    shims = node.shims()
    result = node.switch()
    assert result["failed"] and result["restored"] == CONFIG, result
    assert "CDI is unbearable" in result["msg"] and "with the original file" in result["msg"]
    assert node.sh(f"cat {CONFIG}") == text
    assert node.sh("systemctl is-active containerd").strip() == "active"
    assert set(shims) <= set(node.shims())
    assert node.switch("--check")["reason"] == f"CDI is disabled in {CONFIG}"


def test_old_file_does_not_come_back_either(node17):
    """The file was broken after containerd's last start: the message must say so, with the errors of both files."""
    text = node17.off()
    text = text.replace(
        "registry]", 'registry.mirrors."x"]\n      endpoint = ["http://x"]\n    [plugins."io.containerd.grpc.v1.cri".registry]'
    )
    node17.write(text)
    result = node17.switch(timeout=15)
    assert result["failed"] and "It still does not respond" in result["msg"], result
    assert result["msg"].count("cannot be set when `config_path` is provided") >= 2, result["msg"]
    assert node17.sh(f"cat {CONFIG}") == text


def test_restart_that_would_end_pods_is_refused(node17):
    text = node17.off()
    node17.unit("[Service]\nKillMode=control-group\n")
    result = node17.switch()
    assert result["failed"] and "KillMode=control-group" in result["msg"]
    assert node17.sh(f"cat {CONFIG}") == text


def test_no_file_at_all_on_1_7(node17):
    """containerd runs on its defaults then. They do for a look at it, though not for this node's pods."""
    node17.sh(f"rm {CONFIG}; systemctl restart containerd")
    result = node17.switch()
    assert result["changed"], result["msg"]
    assert node17.sh(f"cat {CONFIG}").startswith("version = 2\n")
    assert not node17.switch()["changed"]


PLAYBOOK = """
- hosts: npu-a,npu-b
  gather_facts: false
  roles:
    - npuops.ascend.npu_runtime
"""


def test_one_host_goes_first(lab, tmp_path):
    """When the first host fails, whichever that is, the second one is not touched."""
    nodes = [Node(lab, name) for name in ("npu-a", "npu-b")]
    playbook = tmp_path / "play.yml"
    playbook.write_text(PLAYBOOK)
    command = ["ansible-playbook", "-i", str(lab.inventory), str(playbook)]
    try:
        texts = [node.off() for node in nodes]
        pids = [node.pid() for node in nodes]
        for node in nodes:
            node.unit(REFUSES_CDI)
        result = lab.ansible(command, check=False)
        assert result.returncode != 0 and "CDI is unbearable" in result.stdout + result.stderr
        assert [node.sh(f"cat {CONFIG}") for node in nodes] == texts
        untouched = [node.name for node, pid in zip(nodes, pids, strict=True) if node.pid() == pid]
        assert len(untouched) == 1, result.stdout

        for node in nodes:
            node.sh(f"rm {DROP_IN}; systemctl daemon-reload")
        for changed in (1, 0):
            recap = lab.ansible(command).stdout
            assert recap.count(f"changed={changed} ") == 2, recap
    finally:
        for node in nodes:
            node.restore()
