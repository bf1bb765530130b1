# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package on its way from a web server to a host, with Ansible itself. The host is this machine."""

from __future__ import annotations

import json
import os

import pytest

from support import controller
from support.host import driver_packages
from support.host.file_server import FileServer

KERNEL = os.uname().release
PASSWORD, TOKEN = "pA55word-of-this-test", "t0ken-of-this-test"


@pytest.fixture
def package(tmp_path):
    return driver_packages.makeself(tmp_path, kernel=KERNEL)


@pytest.fixture
def firmware(tmp_path):
    return driver_packages.firmware(tmp_path)


@pytest.fixture
def server(package, firmware):
    with FileServer({"/" + path.name: path.read_bytes() for path in (package, firmware)}, login="reader:" + PASSWORD) as started:
        yield started


@pytest.fixture
def stage(tmp_path, package, server):
    """Run the module, once for each of these changes of its options; returns (the results, all that was printed)."""

    def run(*changes, arguments=()):
        options = {
            "source": "package",
            "package": server.url("/%s?token=%s" % (package.name, TOKEN)),
            "package_sha256": driver_packages.sha256(package),
            "package_username": "reader",
            "package_password": PASSWORD,
            "version": "25.5.0",
            "root": str(tmp_path / "Ascend"),
        }
        calls = [{key: value for key, value in {**options, **change}.items() if value is not None} for change in changes or ({},)]
        tasks = [
            {"npuops.ascend.npu_driver_stage": call, "register": "result%d" % number, "ignore_errors": True}
            for number, call in enumerate(calls)
        ]
        results = "{{ [%s] | to_json }}" % ", ".join(task["register"] for task in tasks)
        tasks.append({"ansible.builtin.copy": {"content": results, "dest": str(tmp_path / "results")}, "check_mode": False})
        (tmp_path / "playbook.json").write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        done = controller.run(
            ["ansible-playbook", "-i", "localhost,", "-c", "local", *arguments, "playbook.json"], tmp_path, localhost=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((tmp_path / "results").read_text()), done.stdout + done.stderr

    return run


def left(tmp_path):
    """Whatever is on the host, but the lock."""
    releases = tmp_path / "Ascend" / "releases"
    packages = list((tmp_path / ".ansible").rglob("*.run"))
    return sorted(set(os.listdir(releases)) - {".lock"} if releases.exists() else []) + packages


def of_firmware(server, firmware, **more):
    return {
        "firmware_package": server.url("/%s?token=%s" % (firmware.name, TOKEN)),
        "firmware_package_sha256": driver_packages.sha256(firmware),
        "firmware_package_username": "reader",
        "firmware_package_password": PASSWORD,
        **more,
    }


def test_firmware_is_added_to_a_release_that_lacks_it(tmp_path, firmware, server, stage):
    wanted = of_firmware(server, firmware)
    of_image = {"source": "image", "image": None, **wanted}
    results, printed = stage({}, wanted, dict(wanted, verify=True), of_image, arguments=["-vvv", "--diff"])
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert [result["needs_firmware_package"] for result in results[:3]] == [False] * 3
    release = results[0]["release"]
    assert left(tmp_path) == [release] and [path for path, *_more in server.requests][1:] == [
        "/%s?token=%s" % (firmware.name, TOKEN)
    ]
    manifest = (tmp_path / "Ascend" / "releases" / release / "manifest.json").read_text()
    assert json.loads(manifest)["firmware"]["sha256"] == wanted["firmware_package_sha256"]
    assert results[1]["diff"]["before"] == release + "\n"
    assert results[1]["diff"]["after"] == "%s, firmware sha256:%s\n" % (release, wanted["firmware_package_sha256"][:12])
    for secret in (PASSWORD, TOKEN):
        assert secret not in printed and secret not in json.dumps(results) and secret not in manifest
    # Of an image, it is ignored.
    assert results[3]["failed"] and "any of the following are missing: image" in results[3]["msg"]


def test_a_package_is_staged_once(tmp_path, package, server, stage):
    (result,), _printed = stage(arguments=["--check", "--diff"])
    assert result["changed"] and result["release"] is None and server.requests == [] and left(tmp_path) == []
    by_name = {"package": None, "package_sha256": None, "release": "25.5.0-%s-%s" % (KERNEL, driver_packages.sha256(package)[:12])}
    results, printed = stage({}, {"verify": True}, by_name, arguments=["-vvv"])
    release = by_name["release"]
    assert [result["changed"] for result in results] == [True, False, False]
    assert [result["release"] for result in results] == [release] * 3 and results[0]["needs_package"] is False
    assert left(tmp_path) == [release] and len(server.requests) == 1
    for secret in (PASSWORD, TOKEN):
        assert secret not in printed and secret not in json.dumps(results)
        assert secret not in (tmp_path / "Ascend" / "releases" / release / "manifest.json").read_text()
    assert not driver_packages.RAN.exists()
    (tmp_path / "Ascend" / "releases" / release / "driver" / "version.info").unlink()
    results, _printed = stage(by_name, {"package": str(package)}, by_name)
    assert [result.get("failed", False) for result in results] == [True, False, False] and results[1]["changed"]
    assert "It is from the package http://127.0.0.1" in results[0]["msg"] and TOKEN not in results[0]["msg"]
    assert "npuops.ascend.upgrade --limit localhost " in results[0]["msg"] and len(server.requests) == 1
    assert " -e npu_driver_source=package -e npu_driver_package=http://127.0.0.1" in results[0]["msg"]


FAILURES = [
    ({"package_sha256": "0" * 64}, "it is another file, or npu_driver_package_sha256 is wrong"),
    ({"package_password": "wr0ng"}, "does not let user 'reader' download"),
    ({"version": "25.5.1"}, "has driver 25.5.0 instead of 25.5.1"),
    ({"kernel": "9.9.9"}, "has no kernel modules for 9.9.9; it has modules for " + KERNEL),
    ({"package": "file:///x.run"}, "begins with file://"),
    ({"package": None}, "npu_driver_package is not set"),
    ({"source": "image", "image": None}, "any of the following are missing: image"),
]


def test_what_fails_leaves_nothing(tmp_path, package, firmware, server, stage):
    failures = [
        (
            of_firmware(server, firmware, firmware_package_password="wr0ng"),
            "npu_firmware_package_username and npu_firmware_package_pass",
        ),
        (of_firmware(server, firmware, firmware_package_sha256="0" * 64), "another file, or npu_firmware_package_sha256 is wrong"),
        (of_firmware(server, firmware, firmware_package_sha256=None), "npu_firmware_package_sha256 is not set"),
        (of_firmware(server, firmware, firmware_package="/nowhere.run"), "/nowhere.run cannot be read on the controller"),
        (
            {"firmware_package": str(package), "firmware_package_sha256": driver_packages.sha256(package)},
            "is a driver package, not a firmware package",
        ),
    ]
    # The wrong passwords come first: what was downloaded once needs none.
    order = sorted([*FAILURES, *failures], key=lambda one: "wr0ng" not in one[0].values())
    results, printed = stage(*[changes for changes, _text in order], arguments=["-vvv"])
    for result, (_changes, text) in zip(results, order, strict=True):
        assert result["failed"] and text in result["msg"], result["msg"]
    assert left(tmp_path) == []
    for secret in (PASSWORD, TOKEN, "wr0ng"):
        assert secret not in printed


def test_a_truncated_download(tmp_path, server, stage):
    server.cut = [1000] + [0] * 20
    (result,), _printed = stage()
    assert result["failed"] and "ended early, also when repeated" in result["msg"] and left(tmp_path) == []
