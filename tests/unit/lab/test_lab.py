# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the lab can be proved without starting one: its names, its runner of steps, its cache."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.patience import PATIENCE

LAB_SOURCE = str(Path(__file__).resolve().parents[3] / "lab")
sys.path.insert(0, LAB_SOURCE)

from npulab import binaries, daemons, faults, locks, machine, podman, registry, settings, tasks  # noqa: E402
from npulab.files import digest, new_directory, write  # noqa: E402
from npulab.tasks import Graph, Step  # noqa: E402


@pytest.fixture(name="lab")
def _lab(tmp_path, monkeypatch):
    monkeypatch.setenv("NPU_LAB", "98")
    monkeypatch.setenv("NPU_LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NPU_LAB_CACHE", str(tmp_path / "cache"))
    return settings.current_lab()


@pytest.mark.parametrize("number", ["100", "-1", "a", ""])
def test_lab_number_that_is_none(monkeypatch, number):
    monkeypatch.setenv("NPU_LAB", number)
    with pytest.raises(settings.LabError, match="0 to 99"):
        settings.current_lab()


def test_labs_share_nothing(monkeypatch):
    monkeypatch.delenv("NPU_LAB_STATE", raising=False)
    seen = set()
    for number in range(100):
        monkeypatch.setenv("NPU_LAB", str(number))
        lab = settings.current_lab()
        own = {lab.name, lab.state, lab.address, lab.loopback, lab.registry}
        for node in lab.nodes:
            own |= {lab.container(node), lab.node_address(node), lab.pod_range(node)}
        assert not own & seen
        seen |= own


def test_containers_of_lab_10_are_not_those_of_lab_1(lab, monkeypatch):
    listed = [
        {"Names": ["npulab98-npu-a"], "State": "running"},
        {"Names": ["npulab9-npu-a"], "State": "running"},
        {"Names": ["npulab980-npu-a"], "State": "running"},
    ]
    monkeypatch.setattr(podman, "_list", lambda *_: listed)
    assert podman.containers(lab) == {"npulab98-npu-a": "running"}


def test_steps_run_side_by_side_and_after_what_they_need(tmp_path):
    meeting, ended = threading.Barrier(2, timeout=PATIENCE), []
    graph = Graph(tmp_path)
    graph.add("last", lambda step: ended.append("last"), after=["one", "two"])
    for name in ("one", "two"):
        graph.add(name, lambda step: (meeting.wait(), ended.append(step.name)))
    graph.run()
    assert sorted(ended[:2]) == ["one", "two"] and ended[2] == "last"


def test_failed_step_ends_the_others_and_shows_its_log(tmp_path, capsys):
    graph = Graph(tmp_path)
    graph.add("sleeps", lambda step: step.run("sleep", str(3 * PATIENCE)))
    graph.add("fails", lambda step: step.run("sh", "-c", "echo the reason; exit 3"))
    graph.add("never", lambda step: (tmp_path / "never").touch(), after=["fails"])
    begun = time.monotonic()
    with pytest.raises(settings.LabError, match=r"fails: .*status 3"):
        graph.run()
    assert time.monotonic() - begun < 2 * PATIENCE  # it did not wait for the one that sleeps
    assert "the reason" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


def test_long_step_says_what_it_does_and_then_once_in_a_while(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "FIRST_SIGN", 0)
    monkeypatch.setattr(tasks, "PROGRESS_INTERVAL", 2 * PATIENCE)
    seen, end, graph = threading.Event(), threading.Event(), Graph(tmp_path)

    def long(step):
        step.say("working")
        step.wait_for("working", lambda: step.next_sign > PATIENCE, PATIENCE)
        seen.set()
        assert end.wait(PATIENCE)

    graph.add("long", long)
    # After each of these, the other steps are looked at.
    graph.add("one", lambda step: seen.wait(PATIENCE))
    graph.add("two", lambda step: None, after=["one"])
    graph.add("three", lambda step: end.set(), after=["two"])
    graph.run()
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "] long " in line and line.endswith("... waiting for working")]) == 1


def test_what_a_step_tells_is_a_sign_of_life(tmp_path, capsys):
    """And does not mix with what a program such as lab/dra-driver prints for another one."""
    with Step("test", tmp_path / "log") as step:
        step.tell("compiling")
        assert step.next_sign >= tasks.PROGRESS_INTERVAL
    assert capsys.readouterr() == ("", "test: compiling\n")


def test_input_of_a_program_is_not_logged(tmp_path):
    with Step("secret", tmp_path / "log") as step:
        assert step.run("cat", input="password", quiet=True).stdout == "password"
    assert "password" not in (tmp_path / "log").read_text(encoding="utf-8")


def test_cache_directory_is_complete_or_absent(tmp_path):
    final = tmp_path / "thing"
    with pytest.raises(ValueError), new_directory(final) as work:
        (work / "half").touch()
        raise ValueError
    assert not list(tmp_path.iterdir())
    with new_directory(final) as work:
        (work / "whole").touch()
    assert [path.name for path in final.iterdir()] == ["whole"]


def test_leftover_of_a_killed_build_goes(tmp_path):
    code = (
        f"import os, signal, sys; sys.path.insert(0, {LAB_SOURCE!r}); from pathlib import Path\n"
        f"from npulab.files import new_directory\n"
        f"with new_directory(Path({str(tmp_path / 'thing')!r})): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    with new_directory(tmp_path / "thing"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


@pytest.fixture(name="in_background")
def _in_background(tmp_path):
    """Run the function of a step in a thread: (its Step, its Future)."""
    with ThreadPoolExecutor() as pool, Step("test", tmp_path / "log") as step:
        yield lambda work: (step, pool.submit(work, step))


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_two_labs_compile_the_same_thing_once(lab, in_background, monkeypatch):
    """The second one waits, and takes what the first one has made."""
    monkeypatch.setattr(binaries, "find_go", lambda *_: pytest.fail("it compiles a second time"))
    final = binaries.REGISTRY.directory(lab)
    with Step("first", lab.state / "log") as first, locks.alone(final.with_name(f"{final.name}.lock"), first, "compiles the same"):
        step, ended = in_background(lambda step: binaries.build(lab, binaries.REGISTRY, step))
        wait_until(lambda: step.note == "waiting for another process that compiles the same" or ended.done())
        assert not ended.done()
        final.mkdir()
    ended.result(PATIENCE)


def test_two_labs_do_not_use_apt_at_the_same_time(in_background, tmp_path, monkeypatch):
    """And neither do a lab and the scripts in dev/, which have the same lock."""
    wanted = tmp_path / "installed"
    monkeypatch.setattr(machine, "PACKAGES", {"wanted": str(wanted)})
    assert str(machine.APT_LOCK) in Path(LAB_SOURCE, "..", "dev", "common.sh").read_text(encoding="utf-8")
    monkeypatch.setattr(machine, "APT_LOCK", tmp_path / "lock")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(Step, "run", lambda *words, **_: pytest.fail(f"it runs {words[1:]}"))
    shell = subprocess.Popen(
        ["flock", str(tmp_path / "lock"), "sh", "-c", "echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with shell:
        shell.stdout.readline()
        step, ended = in_background(machine.install_packages)
        wait_until(lambda: step.note == "waiting for another process that installs packages" or ended.done())
        assert not ended.done()
        wanted.touch()
        shell.stdin.close()
        ended.result(PATIENCE)


def test_digest_sees_content_mode_and_links(tmp_path):
    write(tmp_path / "a/file", "one")
    before = digest(tmp_path / "a")
    seen = {before}
    (tmp_path / "a/file").chmod(0o755)
    seen.add(digest(tmp_path / "a"))
    write(tmp_path / "a/file", "two")
    seen.add(digest(tmp_path / "a"))
    (tmp_path / "a/link").symlink_to("file")
    seen.add(digest(tmp_path / "a"))
    assert len(seen) == 4
    (tmp_path / "a/__pycache__").mkdir()
    write(tmp_path / "a/__pycache__/x.pyc", "")
    assert digest(tmp_path / "a") in seen


@pytest.fixture(name="step")
def _step(tmp_path):
    with Step("test", tmp_path / "log") as step:
        yield step


def test_daemon_is_found_without_a_pid_file_and_only_ours_is_ended(lab, step):
    daemons.start(lab, step, "sleeper", "sleep", "100")
    pid = daemons.running(lab)["sleeper"]
    with subprocess.Popen(["sleep", "100"]) as stranger:
        try:
            daemons.start(lab, step, "sleeper", "sleep", "100")  # runs already
            assert daemons.running(lab) == {"sleeper": pid}
            daemons.stop_all(lab, step)
            assert daemons.running(lab) == {}
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_daemon_that_ends_at_once_is_said_so(lab, step, monkeypatch):
    monkeypatch.setattr(daemons, "running", lambda _: {})  # it may be seen alive for a moment
    with pytest.raises(settings.LabError, match="ended with status 1"):
        daemons.start(lab, step, "false", "false")


def test_password_hash_is_one_the_registry_takes():
    hashed = registry._bcrypt("secret")
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    assert hashed.startswith("$2")
    assert library.crypt(b"secret", hashed.encode()).decode() == hashed
    assert library.crypt(b"other", hashed.encode()).decode() != hashed


def test_credentials_are_private_and_stay(lab):
    with ThreadPoolExecutor(8) as pool:
        first, *others = set(pool.map(registry.credentials, [lab] * 8))
    assert not others
    assert registry.credentials(lab) == first
    assert os.stat(lab.state / "registry.json").st_mode & 0o777 == 0o600


def test_only_one_up_or_down_at_a_time(lab, monkeypatch):
    from npulab import cli

    entered, waits = threading.Event(), threading.Event()

    def second():
        with cli._alone(lab):
            entered.set()

    monkeypatch.setattr(cli.time, "sleep", lambda _: waits.set() or threading.Event().wait(0.01))
    with cli._alone(lab):
        thread = threading.Thread(target=second, daemon=True)
        thread.start()
        assert waits.wait(PATIENCE) and not entered.is_set()
    assert entered.wait(PATIENCE)
    thread.join()
    with socket.socket(socket.AF_UNIX) as lock:
        lock.bind(f"\0{lab.name}.lock")


def test_faults_and_their_arguments():
    assert set(faults.OF_DRIVERS) <= set(faults.FAULTS)
    assert faults.words("fewer-chips", []) == ["1"]
    assert faults.words("alarm", ["all", "80E01801"]) == ["all", "80E01801", "Alarm"]
    for values in (["many"], ["1", "2"]):
        with pytest.raises(ValueError, match="fewer-chips"):
            faults.words("fewer-chips", values)


@pytest.mark.parametrize(
    "arguments", [["25.5.x!"], ["25.5.2", "no-such-kind"], ["25.5.2", "fewer-chips", "many"], ["25.5.2", "no-return"]]
)
def test_driver_image_that_makes_no_sense(arguments):
    command = [sys.executable, "-B", f"{LAB_SOURCE}/driver-image", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and "usage" in result.stderr
