# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is accepted with a ToolBox image: a real registry, a ctr that unpacks real layers, and whatever ends a run too early."""

from __future__ import annotations

import base64
import contextlib
import csv
import io
import os
import pathlib
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import (
    acceptance,
    ascend_dmi,
    diagnosis,
    history,
    image_traces,
    toolbox_image,
)
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import ctr as image_ctr
from ansible_collections.npuops.ascend.plugins.module_utils._kubelet import kubelet_runtime

from support.host import accepted_host, driver_images, registry_server
from support.host.accepted_host import bad, calls, hold
from support.host.fake_ctr import CTR
from support.host.healthy_host import BOOT
from support.patience import PATIENCE

REPOSITORY, TAG = "mlops/toolbox", "26.1.0"
INSIDE = "usr/local/Ascend/toolbox"
OTHER_BOOT = BOOT.replace("7", "8", 1)


REAL_ACCESS = kubelet_runtime.containerd_access


class Site:
    """The host, its containerd, and the registry with the image."""

    def __init__(self, host, registry, tmp_path, monkeypatch):
        self.host, self.registry, self.tmp_path = host, registry, tmp_path
        self.containerd = tmp_path / "containerd"
        for kind in ("images", "leases", "containers"):
            (self.containerd / kind).mkdir(parents=True)
        (self.containerd / "calls").touch()
        self.socket, self.ctr = tmp_path / "containerd.sock", tmp_path / "bin/ctr"
        self.socket.touch()
        self.ctr.write_text(CTR.format(python=sys.executable, state=str(self.containerd), namespace="npuops-acceptance"))
        self.ctr.chmod(0o755)
        self.access = lambda fs, _no_crio: (str(self.socket), [str(self.ctr)])
        monkeypatch.setattr(kubelet_runtime, "containerd_access", self._access)
        monkeypatch.setattr(acceptance, "_LOOK", 0.02)
        self.digest = self.publish()

    def _access(self, *arguments):
        # A test may replace it later.
        return self.access(*arguments)

    def publish(self, **toolbox):
        """Push an image with a ToolBox and CANN; its digest."""
        top = self.tmp_path / ("image-%d" % len(self.registry.manifests))
        accepted_host.write_toolbox(top / INSIDE, **toolbox)
        (top / INSIDE / "set_env.sh").write_text("export VALUE=toolbox LD_LIBRARY_PATH=/of/toolbox\n")
        (top / "usr/local/Ascend/cann").mkdir()
        (top / "usr/local/Ascend/cann/set_env.sh").write_text("export OTHER=cann\n")
        return driver_images.push(self.registry, REPOSITORY, TAG, top)

    @property
    def image(self):
        return "%s/%s:%s" % (self.registry.address, REPOSITORY, TAG)

    @property
    def toolbox(self):
        """Where its ToolBox is: the paths of this test are this machine's."""
        return str(self.containerd / "rootfs" / INSIDE)

    def look(self, level=2, image=None, mirror=None, wait=PATIENCE, toolbox=None, registry=(), **options):
        access = {"username": self.registry.username, "password": self.registry.password, "plain_http": True, **dict(registry)}
        made = toolbox_image.ToolboxImage(image or self.image, mirror, fs=str(self.host.root), **access)
        return accepted_host.look(self.host, level, wait, image=made, toolbox=toolbox or self.toolbox, **options)

    def ended(self, level=2, **options):
        answer = self.look(level, **options)
        assert answer["state"] == "done", answer
        return answer["result"]

    def asked(self, *words):
        """The calls of ctr that begin with these words."""
        lines = (self.containerd / "calls").read_text().splitlines()
        return [line.split() for line in lines if line.split()[: len(words)] == list(words)]

    def hang(self, name="pull-hangs"):
        (self.containerd / name).touch()

    def go_on(self, name="pull-hangs"):
        (self.containerd / name).unlink()

    def kill_unit(self):
        """Its processes, when ctr is one of them, and not the container, which is none of them."""
        wait_for(lambda: self.asked("images", "pull", "--hosts-dir") or self.asked("run"))
        os.killpg(int((self.host.fake / "pid").read_text()), signal.SIGKILL)

    @property
    def container(self):
        """The ID of its first process, None if it does not run."""
        for path in (self.containerd / "containers").iterdir():
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                number = int(path.read_text())
                if lives(number):
                    return number
        return None

    def left(self):
        """Everything that is on the host because of an image."""
        found = [str(path) for kind in ("images", "leases", "containers") for path in (self.containerd / kind).iterdir()]
        found += [path for path in (image_traces.MARK, image_traces.RUN) if os.path.lexists(str(self.host.root) + path)]
        return found + ([diagnosis.STATE] if diagnosis.waiting(str(self.host.root)) else [])


def lives(number):
    try:
        return pathlib.Path("/proc/%d/stat" % number).read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def why(result):
    """What the only finding that did not pass says."""
    (found,) = [found for found in result["findings"] if found["verdict"] != "PASS"]
    assert (found["name"], found["verdict"]) == ("ascend-dmi", "UNKNOWN")
    return found["seen"], found["advice"]


@pytest.fixture
def registry():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def site(host, registry, tmp_path, monkeypatch):
    made = Site(host, registry, tmp_path, monkeypatch)
    yield made
    for number in [int(path.read_text()) for path in (made.containerd / "containers").iterdir()]:
        if lives(number):
            os.killpg(number, signal.SIGKILL)


# --- it is accepted ---


@pytest.mark.parametrize("auth", [None, "basic", "token"])
def test_level_2_from_an_image(site, auth):
    site.registry.auth = auth
    result = site.ended()
    assert bad(result) == {} and calls(site.host) == ["ascend-dmi --dg --se healthCheck -q"]
    told = {found["name"]: found["seen"] for found in result["findings"] if found["level"] == 2}
    name = "%s/%s@%s" % (site.registry.address, REPOSITORY, site.digest)
    assert told == {"ascend-dmi driver": "HEALTH", "ascend-dmi hbm": "PASS", "toolbox image": name}
    assert [call[-1] for call in site.asked("images", "pull", "--hosts-dir")] == [name]
    assert len([path for _method, path, _header in site.registry.requests if path.endswith("/" + TAG)]) <= 3  # with a challenge
    assert site.left() == []


def test_level_3_and_the_environment_of_the_image(site, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/of/the/image")
    assert bad(site.ended(3)) == {} and calls(site.host) == ["ascend-dmi --dg --se healthCheck,performanceCheck,stressTest -q"]
    environment = (site.host.fake / "environment").read_text().splitlines()
    libraries = ":".join("/usr/local/Ascend/driver/lib64" + name for name in ("/driver", "/common", ""))
    assert {"VALUE=toolbox", "OTHER=cann", "LD_LIBRARY_PATH=/of/toolbox:" + libraries} <= set(environment)


def test_level_1_uses_no_image(site):
    assert bad(site.ended(1)) == {} and site.asked() == [] and site.registry.requests == []


def test_what_the_container_gets(site):
    for path in ("etc/hccn.conf", "usr/local/Ascend/firmware/version.info"):
        site.host.write(path, "")
    site.host.spec()
    assert bad(site.ended()) == {}
    (call,) = site.asked("run")
    options = call[: call.index("%s/%s@%s" % (site.registry.address, REPOSITORY, site.digest))]
    assert {"--rm", "--privileged", "--net-host"} <= set(options)
    assert (options[options.index("--user") + 1], options[options.index("--cwd") + 1]) == ("0:0", "/")
    mounts = [word.split(",") for flag, word in zip(options, options[1:]) if flag == "--mount"]
    assert {(source, target) for _type, source, target, _options in mounts} == {
        ("source=/etc/hccn.conf", "destination=/etc/hccn.conf"),
        ("source=/var/lib/Ascend/driver", "destination=/usr/local/Ascend/driver"),
        ("source=/var/lib/Ascend/driver/tools/npu-smi", "destination=/usr/local/bin/npu-smi"),
        ("source=/usr/local/Ascend/firmware", "destination=/usr/local/Ascend/firmware"),
    }
    assert {(kind, options) for kind, _source, _target, options in mounts} == {
        ("type=bind", "options=ro:nosuid:nodev:rbind:rprivate")
    }


def test_an_image_with_a_digest_needs_no_tag(site):
    image = "%s/%s@%s" % (site.registry.address, REPOSITORY, site.digest)
    assert bad(site.ended(image=image)) == {}
    assert not [path for _method, path, _header in site.registry.requests if path.endswith("/" + TAG)]


def test_the_mirror(site):
    result = site.ended(image="upstream.example.com/%s:%s" % (REPOSITORY, TAG), mirror=site.registry.address)
    (told,) = [found["seen"] for found in result["findings"] if found["name"] == "toolbox image"]
    assert bad(result) == {} and told == "%s/%s@%s" % (site.registry.address, REPOSITORY, site.digest)


# --- while it goes on ---


def test_a_call_returns_while_the_image_is_pulled(site):
    site.hang()
    first = site.look(wait=0)
    assert (first["state"], first["result"]) == ("pulling", None) and site.look(wait=0)["began"] == first["began"]
    site.publish(script="#!/bin/sh\n")  # the tag is moved
    (site.host.fake / "hold").touch()
    site.go_on()
    wait_for(lambda: site.look(wait=0)["state"] == "running")
    (site.host.fake / "hold").unlink()
    result = site.ended()
    assert bad(result) == {} and result["began"] == first["began"]
    assert [call[-1].rpartition("@")[2] for call in site.asked("images", "pull", "--hosts-dir")] == [site.digest]
    assert len(calls(site.host)) == 1 and site.left() == []


def test_two_calls_at_once(site):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(site.ended())) for _number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bad(answer) for answer in answers] == [{}, {}] and site.left() == []
    # The second one has waited, and is another acceptance.
    assert len(calls(site.host)) == 2


def test_chips_that_are_taken_while_the_image_is_pulled(site):
    site.hang()
    site.look(wait=0)
    hold(site.host, "davinci0")
    site.go_on()
    assert "chips are in use: python train.py" in why(site.ended())[0]
    assert calls(site.host) == [] and site.asked("run") == [] and site.left() == []


def test_a_node_that_gets_pods_while_the_image_is_pulled(site):
    site.hang()
    site.look(wait=0)
    site.go_on()
    assert why(site.ended(blocked="not run, because pods on the node use NPUs: a/b"))[0].startswith("not run, because pods")
    assert calls(site.host) == [] and site.left() == []


def test_a_call_without_the_setting_goes_on(site):
    """It may have been removed meanwhile; what was begun has its image."""
    site.hang()
    first = site.look(wait=0)
    site.go_on()
    result = accepted_host.ended(site.host, toolbox=site.toolbox)
    assert bad(result) == {} and result["began"] == first["began"] and site.left() == []


def test_another_level_waits_for_a_pull(site):
    site.hang()
    site.look(wait=0)
    with pytest.raises(NpuError, match="level 2 has been running on this host"):
        site.look(1)
    site.go_on()
    wait_for(lambda: (site.host.fake / "unit").read_text() == "0\n")
    assert bad(site.ended(1)) == {} and site.left() == []
    kept = [(entry["level"], [found["seen"] for found in entry["findings"]]) for entry in history.read(str(site.host.root))]
    assert kept == [(1, []), (2, ["not run, because nothing went on when its image was pulled"])]


def test_a_token_that_expires_during_the_pull(site):
    site.registry.auth = "token"
    site.hang()
    site.look(wait=0)
    site.registry.token = "the-next-one"
    site.go_on()
    assert bad(site.ended()) == {} and len(site.asked("images", "pull", "--hosts-dir")) == 2 and site.left() == []


def test_a_registry_that_never_lets_it_pull(site):
    (site.containerd / "pull-says").write_text("ctr: failed to copy: unexpected status 401 Unauthorized")
    seen, advice = why(site.ended())
    assert "did not let containerd pull %s/%s@sha256:" % (site.registry.address, REPOSITORY) in seen
    assert advice == toolbox_image.ADVICE
    assert len(site.asked("images", "pull", "--hosts-dir")) == 2 and calls(site.host) == [] and site.left() == []


def test_the_second_pull_is_judged_by_its_own_words(site):
    site.hang()
    site.look(wait=0)
    (site.containerd / "pull-says").write_text("ctr: failed to copy: unexpected status 401 Unauthorized\n" * 9)
    site.go_on()
    wait_for(lambda: (site.host.fake / "unit").read_text() == "1\n")
    (site.containerd / "pull-says").write_text("ctr: write x: no space left on device\n")
    assert "is full: write x: no space left on device" in why(site.ended())[0]
    assert len(site.asked("images", "pull", "--hosts-dir")) == 2 and site.left() == []


def test_a_pull_has_a_time_limit(site, monkeypatch):
    monkeypatch.setattr(toolbox_image, "LIMIT", 1)
    site.hang()
    assert "did not finish %s/%s" % (site.registry.address, REPOSITORY) in why(site.ended())[0] and site.left() == []


def test_a_pull_that_is_stopped(site):
    site.hang()
    site.look(wait=0)
    subprocess.run(["systemctl", "stop", image_traces.UNIT], check=True)
    assert not (site.host.root / image_traces.RUN[1:] / "hosts").exists()
    assert "ended in an unknown way (npuops-acceptance.service is inactive)" in why(site.ended())[0] and site.left() == []


def test_a_pull_that_nothing_remembers_is_ended(site):
    site.hang()
    site.look(wait=0)
    wait_for(lambda: site.asked("images", "pull", "--hosts-dir"))
    number = int((site.host.fake / "pid").read_text())
    (site.host.root / diagnosis.STATE[1:]).write_text("damaged")
    assert bad(site.ended(1)) == {} and not lives(number) and not (site.host.root / image_traces.MARK[1:]).exists()


# --- secrets ---


@pytest.mark.parametrize("auth", ["basic", "token"])
def test_credentials_are_in_a_private_file_for_the_time_of_the_pull_only(site, auth):
    site.registry.auth = auth
    pair = "%s:%s" % (site.registry.username, site.registry.password)
    secrets = [site.registry.password, base64.b64encode(pair.encode()).decode(), site.registry.token]

    def files_with_secrets():
        paths = [path for top in (site.host.root, site.containerd, site.host.fake) for path in top.rglob("*") if path.is_file()]
        return [path for path in paths if any(secret.encode() in path.read_bytes() for secret in secrets)]

    site.hang()
    answer = site.look(wait=0)
    (path,) = files_with_secrets()
    assert path.name == "hosts.toml" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((site.host.root / image_traces.RUN[1:]).stat().st_mode) == 0o700
    wait_for(lambda: site.asked("images", "pull", "--hosts-dir"))
    group = int((site.host.fake / "pid").read_text())
    lines = [
        (entry / "cmdline").read_bytes()
        for entry in pathlib.Path("/proc").iterdir()
        if entry.name.isdigit() and of_group(entry, group)
    ]
    assert lines and not any(secret.encode() in line for line in lines for secret in secrets)
    (site.host.fake / "hold").touch()
    site.go_on()
    wait_for(lambda: site.look(wait=0)["state"] == "running")
    assert files_with_secrets() == []
    (site.host.fake / "hold").unlink()
    result = site.ended()
    assert not any(secret in str([answer, result]) for secret in secrets) and files_with_secrets() == []


def of_group(entry, group):
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[2]) == group
    except OSError:
        return False


def test_an_error_that_repeats_them_does_not_show_them(site):
    header = "Basic " + base64.b64encode(("alice:" + site.registry.password).encode()).decode()
    (site.containerd / "pull-says").write_text("ctr: bad header %s of %s\n" % (header, site.registry.password))
    seen = why(site.ended())[0]
    assert "bad header *** of ***" in seen
    text = (site.host.root / history.HISTORY[1:]).read_text()
    assert "bad header" in text and header not in text and site.registry.password not in text


# --- what a killed run leaves ---


class PowerCut(BaseException):
    pass


@pytest.mark.parametrize(
    ("where", "name", "after"),
    [
        (toolbox_image.ToolboxImage, "find", True),
        (diagnosis, "remember", True),
        (image_traces, "prepare", False),
        (image_traces, "prepare", True),
        (image_ctr.Containerd, "write_credentials", True),
        (transient_unit, "start", True),
        (acceptance.Acceptance, "_run", False),
        (diagnosis, "start", True),
        (diagnosis, "result", True),
        (history, "add", True),
        (diagnosis, "end", True),
        (image_ctr.Containerd, "remove_containers", True),
        (image_ctr.Containerd, "purge", True),
    ],
)
def test_killed_at_each_step_and_repeated(site, monkeypatch, where, name, after):
    original = getattr(where, name)

    def cut(*arguments, **options):
        if after:
            original(*arguments, **options)
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(where, name, cut)
        with pytest.raises(PowerCut):
            site.ended()
    # What is lost with the call is said, and the next acceptance is a whole one.
    found = bad(site.ended())
    assert set(found) <= {"ascend-dmi"} and site.left() == []
    assert bad(site.ended()) == {} and site.left() == []


@pytest.mark.parametrize("name", ["remove_containers", "purge"])
def test_a_result_is_not_lost_while_the_image_is_removed(site, monkeypatch, name):
    """It may be that of hours, and to remove gigabytes takes a while."""
    (site.host.fake / "hbm").write_text("        FAIL\n")

    def cut(*_arguments):
        raise PowerCut

    site.look(wait=0)
    with monkeypatch.context() as patch:
        patch.setattr(image_ctr.Containerd, name, cut)
        with pytest.raises(PowerCut):
            site.ended()
    (site.host.fake / "hbm").unlink()
    first = site.ended()
    assert bad(first) == {"ascend-dmi hbm": ("FAIL", "FAIL")} and len(calls(site.host)) == 1 and site.left() == []
    assert [found["name"] for found in first["findings"]].count("toolbox image") == 1
    assert [entry["verdict"] for entry in history.read(str(site.host.root))] == ["FAIL"]


def test_a_ctr_that_is_killed_leaves_no_chip_loaded(site):
    """No call of accept comes any more."""
    (site.host.fake / "hold").touch()
    wait_for(lambda: site.look(wait=0)["state"] == "running" and site.container)
    number = site.container
    site.kill_unit()
    wait_for(lambda: not lives(number))
    wait_for(lambda: (site.host.fake / "unit").read_text() != "running\n")
    (site.host.fake / "hold").unlink()
    assert "it did not end within 900 s" in why(site.ended())[0] and site.left() == []


def test_systemctl_stop_ends_the_container(site):
    (site.host.fake / "hold").touch()
    wait_for(lambda: site.look(wait=0)["state"] == "running" and site.container)
    number = site.container
    subprocess.run(["systemctl", "stop", image_traces.UNIT], check=True)
    assert not lives(number)
    assert "ended in an unknown way" in why(site.ended())[0] and site.left() == []


def test_a_container_is_ended_when_containerd_is_back(site):
    """ctr 1.7 ends when containerd is restarted, and its container runs on."""
    (site.host.fake / "hold").touch()
    wait_for(lambda: site.look(wait=0)["state"] == "running" and site.container)
    number = site.container
    site.hang("containerd-down")
    site.kill_unit()
    wait_for(lambda: len(site.asked("containers", "ls")) >= 3)  # it tries again
    assert lives(number)
    site.go_on("containerd-down")
    wait_for(lambda: not lives(number))


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("state", [True, False])
def test_what_an_earlier_boot_has_left(site, level, state):
    """With it on disk, or without: a killed call may have come as far as removing it."""
    site.hang()
    site.look(level=2, wait=0)
    site.kill_unit()
    wait_for(lambda: (site.host.fake / "unit").read_text() != "running\n")
    (site.host.fake / "unit").unlink()
    site.go_on()
    (site.containerd / "images/x%y@sha256:0").touch()
    (site.containerd / "leases/old").touch()
    (site.containerd / "containers" / image_traces.CONTAINER).write_text("99999999")  # of a process that there is not
    site.host.write("proc/sys/kernel/random/boot_id", OTHER_BOOT + "\n")
    site.host.marker(boot_id=OTHER_BOOT)
    if not state:
        (site.host.root / diagnosis.STATE[1:]).unlink()
    found = bad(site.ended(level))
    if state and level == 2:
        assert found == {"ascend-dmi": ("UNKNOWN", "the host went down during the diagnosis")}
    assert site.left() == [] and bad(site.ended()) == {}


def test_what_cannot_be_removed_is_said_and_removed_later(site, monkeypatch):
    remember = diagnosis.remember

    def goes_down(begun, fs):
        remember(begun, fs)
        if begun["found"] is not None:
            site.hang("containerd-down")

    with monkeypatch.context() as patch:
        patch.setattr(diagnosis, "remember", goes_down)
        verdict, seen = bad(site.ended())["toolbox image"]
    assert verdict == "WARNING" and seen.startswith("could not be removed: containerd does not respond") and site.left()
    site.go_on("containerd-down")
    assert bad(site.ended(1)) == {} and site.left() == []


def test_nothing_is_loaded_while_an_earlier_container_may_be(site):
    site.host.write(image_traces.MARK[1:], "x\n")
    site.hang("containerd-down")
    found = bad(site.ended())
    assert found["ascend-dmi"] == ("UNKNOWN", "not run, because the image of an earlier acceptance is still used")
    assert found["toolbox image"][0] == "WARNING" and calls(site.host) == []
    # Whatever the ToolBox.
    assert bad(accepted_host.ended(site.host))["ascend-dmi"][0] == "UNKNOWN" and calls(site.host) == []
    site.go_on("containerd-down")
    assert bad(accepted_host.ended(site.host)) == {} and site.left() == []


# --- what goes wrong ---


def unreachable(site):
    return {"image": "127.0.0.1:9/%s:%s" % (REPOSITORY, TAG)}


def denied(site):
    return {"registry": {"password": "wrong"}}


def absent(site):
    return {"image": site.image + "-not"}


def damaged(site):
    for digest in site.registry.blobs:
        site.registry.blobs[digest] = b"x" + site.registry.blobs[digest]
    return {}


def full(site):
    (site.containerd / "pull-says").write_text("ctr: write /var/lib/containerd/x: no space left on device\n")
    return {}


def no_systemd(site):
    (site.host.fake / "fail-systemd-run").touch()
    return {}


def no_containerd(site):
    site.socket.unlink()
    return {}


def nothing_in_it(site):
    return {"toolbox": site.toolbox + "/not"}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (unreachable, "Registry 127.0.0.1:9 cannot be reached"),
        (denied, "does not let user 'alice' read mlops/toolbox. Check npu_registry_username and npu_registry_password"),
        (absent, "26.1.0-not does not exist"),
        (damaged, "is damaged: a layer does not match the manifest"),
        (full, "The disk of containerd (its root, often /var/lib/containerd) is full"),
        (no_systemd, "was not started: systemd-run: Failed to create bus connection"),
        (no_containerd, "ToolBox images are run by containerd, whose socket"),
        (nothing_in_it, "the image has no ascend-dmi. Set npu_accept_toolbox to the directory of MindCluster's ToolBox in it"),
    ],
)
def test_a_fault_is_said_with_what_to_do_and_leaves_nothing(site, fault, text):
    result = site.ended(**fault(site))
    findings = [found for found in result["findings"] if found["verdict"] != "PASS"]
    assert [(found["name"], found["verdict"]) for found in findings] == [("ascend-dmi", "UNKNOWN")], findings
    assert text in findings[0]["seen"] and findings[0]["advice"], findings
    assert calls(site.host) == [] and (site.left() == [] or fault is no_containerd)


def test_no_ctr(site, monkeypatch):
    site.access = lambda fs, _no_crio: (str(site.socket), None)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(image_ctr, "_CTR_PATHS", ())
    with pytest.raises(NpuError, match="This host has no ctr, which is part of containerd"):
        toolbox_image.ToolboxImage(site.image, fs=str(site.host.root)).find()


def test_crio(site):
    site.access = REAL_ACCESS
    site.host.write("var/run/crio/crio.sock", "")
    with pytest.raises(NpuError, match="The kubelet of this host uses CRI-O, but ToolBox images are run by containerd"):
        toolbox_image.ToolboxImage(site.image, fs=str(site.host.root)).find()


def test_too_little_space_is_found_before_the_pull(site, monkeypatch):
    site.host.write("var/lib/containerd/x", "")
    monkeypatch.setattr(toolbox_image.os, "statvfs", lambda path: SimpleNamespace(f_bavail=0, f_frsize=4096))
    seen = why(site.ended())[0]
    assert seen.startswith("Not enough space in /var/lib/containerd: 0 MiB are free, but the ToolBox image needs 1 MiB")
    assert site.asked("images", "pull") == [] and site.left() == []


def test_an_item_that_fails_in_a_container(site):
    (site.host.fake / "hbm").write_text("        FAIL\n        Device 1: 3 pages\n")
    (site.host.fake / "status").write_text("1")
    assert bad(site.ended()) == {"ascend-dmi hbm": ("FAIL", "FAIL; Device 1: 3 pages")} and site.left() == []


def test_check_mode_touches_nothing(site):
    options = {"keep": False, "blocked": "not run in check mode"}
    mark = site.host.write(image_traces.MARK[1:], "left by an earlier one\n")
    assert why(site.ended(**options))[0] == "not run in check mode"
    assert site.asked() == [] and site.registry.requests == [] and history.read(str(site.host.root)) == []
    mark.unlink()
    site.hang()
    site.look(wait=0)
    site.go_on()
    # It waits for what another run has begun, and takes nothing from it.
    assert why(site.ended(**options))[0] == "not run in check mode"
    assert bad(site.ended()) == {} and len(site.asked("images", "pull", "--hosts-dir")) == 1 and site.left() == []


# --- data ---


@pytest.mark.parametrize(
    "image",
    [
        "--help",
        "a b",
        "$(touch canary)",
        "registry.example.com/UPPER:x",
        "x@sha256:short",
        "r.example.com/a:b;c",
        "../../etc",
        "x\ny",
    ],
)
def test_what_is_no_image_is_refused(site, image, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "is not a valid image reference" in why(site.ended(image=image))[0]
    assert not (tmp_path / "canary").exists() and site.asked("images", "pull") == [] and site.left() == []


@pytest.mark.parametrize("name", ["a b", "$(touch canary)", "${HOME}", "a'b\"c", "-n", "a\nb"])
def test_a_directory_with_any_name(site, name, tmp_path, monkeypatch):
    """It is found, and nothing in its name is run or replaced, by systemd, ctr or a shell."""
    monkeypatch.chdir(tmp_path)
    top = tmp_path / "named"
    accepted_host.write_toolbox(top / name / "toolbox")
    (top / name / "toolbox/set_env.sh").write_text("export VALUE=found\n")
    driver_images.push(site.registry, REPOSITORY, TAG, top)
    result = site.ended(toolbox=str(site.containerd / "rootfs" / name / "toolbox"))
    assert bad(result) == {} and "VALUE=found" in (site.host.fake / "environment").read_text().splitlines()
    assert not list(tmp_path.rglob("canary")) and site.left() == []


@pytest.mark.parametrize("name", ["/a,b", '/a"b', "/a b", "/a=b:c", "/a\nb"])
def test_a_mount_of_any_name_is_one_field(name):
    (fields,) = csv.reader(io.StringIO(toolbox_image._mount(name, "/x"), newline=""), strict=True)
    assert fields == ["type=bind", "source=" + name, "destination=/x", "options=ro:nosuid:nodev:rbind:rprivate"]


def test_hostile_output_of_a_pull_is_bounded(site):
    (site.containerd / "pull-says").write_text("ctr: " + "\x1b[2J{{ 7 }} " * 10**5)
    seen = why(site.ended())[0]
    assert len(seen) <= 2000 and "\x1b" not in seen and site.left() == []


def test_a_registry_that_never_answers_does_not_hold_a_call(site, monkeypatch):
    monkeypatch.setattr(toolbox_image, "_BUDGET", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        seen = why(site.ended(image="127.0.0.1:%d/a:b" % silent.getsockname()[1]))[0]
    assert "did not complete its answer within" in seen and time.monotonic() - began < 25 and site.left() == []


def test_a_registry_that_limits_requests_does_not_hold_a_call(site, monkeypatch):
    monkeypatch.setattr(toolbox_image, "_BUDGET", 1)
    site.registry.faults.append(("GET", "manifests", 429))
    site.registry.retry_after = "60"
    assert "limits the rate of requests" in why(site.ended())[0] and site.left() == []


def test_the_script_in_a_container_is_shell(site):
    """That of the real paths, with what the shell makes of it."""
    (shell, option, script) = ascend_dmi.command_in_image("/usr/local/Ascend/toolbox", 2, "/x")
    done = subprocess.run([shell, option, script], stdout=subprocess.PIPE, check=False, text=True)
    assert done.returncode == 127 and "/usr/local/Ascend/toolbox/latest/Ascend-DMI/bin/ascend-dmi" in done.stdout
    assert shlex.split(script)
