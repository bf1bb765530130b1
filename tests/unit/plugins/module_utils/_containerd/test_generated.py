# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI where the distribution generates containerd's configuration: each one generates its file at a restart as the real one does."""

from __future__ import annotations

import os
import sys

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import (
    cdi_spec,
    config_files,
    containerd_runtime,
    disable_cdi,
    enable_cdi,
    generated,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import cri

from support.paths import UNIT

FIXTURES = UNIT / "fixtures" / "distributions"
DUMP = (UNIT / "fixtures" / "containerd" / "default-1.7.toml").read_text()
DUMP_2 = (UNIT / "fixtures" / "containerd" / "default-2.toml").read_text()

# containerd 1.7: headers are duplicates only if they are written alike, and the last imported section replaces all others.
CONTAINERD = """#!%s
import re, sys
path = sys.argv[sys.argv.index("-c") + 1]
text = open(path).read()
imports = re.search(r'^imports *= *\\[(.*)\\]', text, re.M)
for name in re.findall(r'"([^"*]+)"', imports.group(1)) if imports else []:
    text += open(name).read()
    headers = re.findall(r"^\\[.*\\]", open(name).read(), re.M)
headers = re.findall(r"^ *(\\[.*\\])", text, re.M)
if len(set(headers)) != len(headers):
    sys.exit("containerd: failed to load TOML: %%s: duplicated tables" %% path)
on = (re.findall(r"^ *enable_cdi *= *(\\w+)", text, re.M) or [%r])[-1]
image = (re.findall(r'^ *sandbox_image *= *"(.*)"', text, re.M) or ["none"])[-1]
print(open(%r).read().replace("@CDI", on).replace("@IMAGE", image))
"""


class Node:
    """A host whose containerd belongs to a distribution. ``restart`` does what the distribution does at a start."""

    kind = ""
    unit = ""

    def __init__(self, tmp_path, host, monkeypatch):
        self.top = tmp_path
        self.restarts = []
        self.broken = None
        self.monkeypatch = monkeypatch
        self.use(DUMP.replace("enable_cdi = false", "enable_cdi = @CDI").replace("registry.k8s.io/pause:3.8", "@IMAGE"), "false")
        monkeypatch.setattr(containerd_runtime, "restart", self.restart)
        monkeypatch.setattr(containerd_runtime, "check_restartable", lambda daemon: None)
        monkeypatch.setattr(cri, "status", lambda address, timeout=5: cri.CriStatus(True, self.loaded, ["/etc/cdi"]))
        monkeypatch.setattr(cdi_spec, "spec_files", lambda *_args: [cdi_spec.PATH])
        monkeypatch.setattr(config_files, "BACKUPS", str(tmp_path / "backups"))
        self.lay_out()
        self.generate()
        self.load()

    def use(self, dump, default):
        """A containerd that prints this, with CDI ``default`` where the configuration does not say."""
        (self.top / "dump").write_text(dump)
        self.program = self.top / "containerd"
        self.program.write_text(CONTAINERD % (sys.executable, default, str(self.top / "dump")))
        self.program.chmod(0o755)

    def write(self, path, text):
        path = self.top / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def daemon(self):
        return containerd_runtime.Daemon(1, str(self.program), str(self.config), True, "/run/x.sock", self.unit, self.kind)

    def load(self):
        self.loaded = self.daemon().dump().enabled

    def restart(self, daemon, address, timeout):
        self.restarts.append((daemon.unit, timeout))
        self.generate()
        if self.broken and self.broken():
            raise NpuError("%s did not start" % daemon.unit)
        self.load()
        return cri.CriStatus(True, self.loaded, ["/etc/cdi"])

    def switch_on(self, restart=True):
        """What the module does; (the reason or None, whether something changed)."""
        switch = enable_cdi.Switch(self.daemon())
        reason, changed = switch.examine(), switch.would_change(restart)
        if changed:
            switch.apply(restart)
        return reason, changed

    def switch_off(self, restart=True):
        revert = disable_cdi.Revert(self.daemon())
        reason, changed = revert.examine(), revert.would_change(restart)
        if changed:
            revert.apply(restart)
        return reason, changed, revert.left

    def files(self):
        """All files of the distribution with their texts, except for what it generates."""
        made = ("dump", "containerd", os.path.basename(self.config), "containerd-cri.toml")
        return {
            str(path.relative_to(self.top)): path.read_text()
            for path in sorted(self.top.rglob("*.*"))
            if path.is_file() and path.name not in made and "backups" not in path.parts[:-1] and "fake" not in path.parts
        }


class K3s(Node):
    """Go templates, as far as they matter here: a template that exists is used, and may include the base template."""

    kind = "k3s"
    unit = "k3s-agent.service"
    base = (FIXTURES / "k3s-1.7.toml").read_text()
    base_3 = (FIXTURES / "k3s-2.toml").read_text()
    containerd_2 = False
    directory = "var/lib/rancher/k3s/agent/etc/containerd"

    def lay_out(self):
        self.config = self.write(self.directory + "/config.toml", "")
        self.source = self.template = self.config.with_name("config.toml.tmpl")
        self.template_3 = self.config.with_name("config-v3.toml.tmpl")

    def generate(self):
        base = self.base_3 if self.containerd_2 else self.base
        text = base
        if self.containerd_2 and self.template_3.exists():
            text = self.template_3.read_text()
        elif self.template.exists():
            text, base = self.template.read_text(), self.base
        self.config.write_text(text.replace('{{ template "base" . }}', base))

    def upgrade(self):
        """To a release with containerd 2."""
        self.containerd_2 = True
        self.use(DUMP_2.replace("enable_cdi = true", "enable_cdi = @CDI"), "true")
        self.restart(self.daemon(), None, 1)


class Rke2(K3s):
    kind = "rke2"
    unit = "rke2-agent.service"
    base = K3s.base.replace("k3s", "rke2")
    directory = "var/lib/rancher/rke2/agent/etc/containerd"


class MicroK8s(Node):
    kind = "microk8s"
    unit = "snap.microk8s.daemon-containerd.service"
    variables = {
        "${SNAPSHOTTER}": "overlayfs",
        "${RUNTIME}": "runc",
        "${RUNTIME_TYPE}": "io.containerd.runc.v2",
        "${SNAP_DATA}": "/x",
    }

    def lay_out(self):
        self.source = self.template = self.write(
            "snap/args/containerd-template.toml", (FIXTURES / "microk8s-template.toml").read_text()
        )
        self.config = self.template.with_name("containerd.toml")

    def generate(self):
        text = self.template.read_text()
        for name, value in self.variables.items():
            text = text.replace(name, value)
        self.config.write_text(text)


class K0s(Node):
    """Merges the CRI sections of all drop-ins into its own."""

    kind = "k0s"
    unit = "k0sworker.service"
    merged = """version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    enable_cdi = false
    sandbox_image = "registry.example.com/pause:3.10"
"""

    def lay_out(self):
        self.config = self.write("etc/k0s/containerd.toml", "")
        self.cri = self.write("run/k0s/containerd-cri.toml", "")
        self.source = self.drop_in = self.config.parent / "containerd.d" / "zz-npuops-cdi.toml"
        self.drop_in.parent.mkdir()

    def generate(self):
        text, imports = self.merged, []
        for path in sorted(self.drop_in.parent.glob("*.toml")):
            drop_in = path.read_text()
            if "io.containerd.grpc.v1.cri" not in drop_in:
                imports.append(str(path))
            elif "enable_cdi = true" in drop_in:
                text = text.replace("enable_cdi = false", "enable_cdi = true")
        self.cri.write_text(text)
        listed = ", ".join('"%s"' % path for path in imports + [str(self.cri)])
        self.config.write_text("# k0s_managed=true\n# This is a placeholder\nversion = 2\nimports = [%s]\n" % listed)


NODES = [K3s, Rke2, K0s, MicroK8s]


@pytest.fixture
def make(tmp_path, host, monkeypatch):
    (tmp_path / "node").mkdir()
    return lambda kind: kind(tmp_path / "node", host, monkeypatch)


@pytest.mark.parametrize("kind", NODES)
def test_on_again_and_off(make, kind):
    node = make(kind)
    before = node.files()
    reason, changed = node.switch_on()
    assert changed and reason == "CDI is disabled in %s" % node.config
    assert node.loaded and [unit for unit, timeout in node.restarts] == [node.unit]

    # It lasts: the distribution generates the file again.
    node.restart(node.daemon(), None, 1)
    assert node.loaded
    count = len(node.restarts)
    assert node.switch_on() == (None, False)

    reason, changed, left = node.switch_off()
    assert changed and left is None and "was enabled in" in reason
    assert not node.loaded and node.files() == before
    assert node.switch_off() == (None, False, None)
    assert len(node.restarts) == count + 1


@pytest.mark.parametrize("kind", NODES)
def test_without_a_restart_the_next_run_finishes_it(make, kind):
    node = make(kind)
    before = node.files()
    assert node.switch_on(restart=False)[1]
    assert not node.loaded and not node.restarts
    reason, changed = node.switch_on(restart=False)
    assert "has not been restarted since" in reason and not changed
    assert node.switch_on()[1] and node.loaded

    assert node.switch_off(restart=False)[1]
    assert node.loaded, "the process has still CDI on"
    assert node.switch_off(restart=False)[1] is False
    assert node.switch_off()[1] and not node.loaded
    assert node.switch_off() == (None, False, None)
    assert node.files() == before


@pytest.mark.parametrize("kind", NODES)
def test_a_start_that_fails_is_undone(make, kind):
    node = make(kind)
    before = node.files()
    node.broken = lambda: "enable_cdi = true" in node.config.read_text() or node.daemon().dump().enabled
    with pytest.raises(NpuError, match="CRI does not respond with CDI enabled.*responds again"):
        node.switch_on()
    assert not node.loaded and len(node.restarts) == 2
    assert {path: text for path, text in node.files().items() if "npuops-backup" not in path} == before


@pytest.mark.parametrize("kind", NODES)
def test_what_somebody_changed_since_is_left(make, kind):
    node = make(kind)
    node.switch_on()
    node.source.write_text(node.source.read_text() + "# mine\n")
    assert not node.switch_off()[1]
    assert node.source.read_text().endswith("# mine\n") and node.loaded


@pytest.mark.parametrize("kind", NODES)
def test_restarts_get_the_time_that_the_distribution_needs(make, kind):
    node = make(kind)
    node.switch_on()
    assert node.restarts[0][1] >= 60


# --- k3s and RKE2 ---


@pytest.mark.parametrize("kind", [K3s, Rke2])
def test_an_upgrade_to_containerd_2_generates_what_it_would_without_us(make, kind):
    node = make(kind)
    node.switch_on()
    node.upgrade()
    assert node.base_3 in node.config.read_text(), "and a comment"
    assert "grpc.v1.cri" not in node.config.read_text()
    assert node.loaded and node.switch_on() == (None, False)
    assert node.switch_off()[1]
    assert not node.template.exists() and not node.template_3.exists() and node.loaded


def test_containerd_2_is_left_alone(make):
    node = make(K3s)
    node.upgrade()
    before = node.files()
    assert node.switch_on() == (None, False) and node.files() == before
    assert node.switch_off() == (None, False, None) and len(node.restarts) == 1


def test_a_template_that_somebody_wrote_without_statements_is_edited(make):
    """A copy of the generated file, as the guides of k3s say."""
    node = make(K3s)
    node.template.write_text(node.base)
    node.restart(node.daemon(), None, 1)
    assert node.switch_on()[1] and node.loaded
    assert node.template.read_text().replace("  enable_cdi = true\n", "") == node.base
    assert not node.template_3.exists()
    assert node.switch_off()[1] and node.template.read_text() == node.base and not node.loaded


@pytest.mark.parametrize("template", ['{{ template "base" . }}\n# mine\n', "version = 2\n{{ if x }}\n"])
def test_a_template_with_statements_is_left_to_its_author(make, template):
    node = make(K3s)
    node.template.write_text(template)
    with pytest.raises(NpuError, match="Edit your template .*config.toml.tmpl"):
        node.switch_on()
    assert node.template.read_text() == template and not node.restarts


@pytest.mark.parametrize(
    "version, changes", [("v1.27.4+k3s1", False), ("v1.27.5+k3s1", True), ("v1.31.4+k3s1", True), ("v1.23.9", False)]
)
def test_releases_whose_templates_have_no_base_are_refused(make, monkeypatch, version, changes):
    node = make(K3s)
    node.write("bin/k3s", "#!/bin/sh\necho 'k3s version %s (a562d090)'\n" % version).chmod(0o755)
    monkeypatch.setattr(generated, "_PROGRAM_PLACES", (str(node.top / "bin") + "/",))
    if changes:
        assert node.switch_on()[1]
        return
    with pytest.raises(NpuError, match="Copy that file to .*config.toml.tmpl"):
        node.switch_on()
    assert not node.template.exists()


def test_a_template_of_version_3_that_somebody_wrote_stays(make):
    node = make(K3s)
    node.template_3.write_text("mine")
    node.switch_on()
    assert node.switch_off()[1]
    assert node.template_3.read_text() == "mine" and not node.template.exists()


# --- k0s ---


def test_a_configuration_that_k0s_does_not_manage_is_edited_itself(make):
    node = make(K0s)
    node.config.write_text('version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "x"\n')
    node.generate = lambda: None
    node.load()
    assert node.switch_on()[1] and node.loaded
    assert "enable_cdi = true" in node.config.read_text() and not node.drop_in.exists()
