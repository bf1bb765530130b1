# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages from web servers, from registries and from the disk: right, or not there."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import ansible_collections.npuops.ascend as collection
import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import files
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package import download
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import Store

from support.host.file_server import FileServer
from support.host.registry_server import Registry

PATHS = os.path.join(os.path.abspath(next(iter(collection.__path__))), "..", "..", "..")
CONTENT = random.Random(1).randbytes(200_000)
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    with FileServer({"/a.run": CONTENT}) as started:
        yield started


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "store"))


def source(package, sha256=SUM, **more):
    return PackageSource.of({"package": package, "package_sha256": sha256, **more})


def left(tmp_path):
    return sorted(name for name in os.listdir(tmp_path / "store") if not name.endswith(".lock"))


def test_a_download_happens_once(server, store, tmp_path):
    path = store.file(source(server.url("/a.run")))
    with open(path, "rb") as stream:
        assert stream.read() == CONTENT
    assert store.file(source(server.url("/a.run"))) == path and len(server.requests) == 1
    assert left(tmp_path) == [SUM + ".run"] and os.stat(tmp_path / "store").st_mode & 0o777 == 0o700


def test_hosts_at_the_same_time_download_once(server, store):
    server.pause = lambda: time.sleep(0.002)
    threads = [threading.Thread(target=store.file, args=[source(server.url("/a.run"))]) for _number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 1


def test_what_was_damaged_is_downloaded_again(server, store):
    path = store.file(source(server.url("/a.run")))
    with open(path, "r+b") as stream:
        stream.write(b"other")
    assert store.file(source(server.url("/a.run"))) == path and len(server.requests) == 2


@pytest.mark.parametrize("ranges", [True, False])
def test_a_transfer_that_breaks_off_is_continued(server, store, ranges):
    server.ranges, server.cut = ranges, [50_000, 60_000]
    store.file(source(server.url("/a.run")))
    asked = [wanted for _path, wanted, _login in server.requests]
    assert asked[:2] == [None, "bytes=50000-"] and len(asked) == 3


@pytest.mark.parametrize("ranges", [True, False])
def test_what_came_of_a_broken_transfer_is_continued_by_the_next_run(server, store, tmp_path, ranges):
    server.cut = [1000] + [0] * 20
    with pytest.raises(NpuError, match="ended early, also when repeated: .* bytes are missing.* the next run continues"):
        store.file(source(server.url("/a.run")))
    assert left(tmp_path) == [SUM + ".part"] and (tmp_path / "store" / (SUM + ".part")).stat().st_size == 1000
    server.ranges, server.cut = ranges, []
    server.requests.clear()
    store.file(source(server.url("/a.run")))
    assert [wanted for _path, wanted, _login in server.requests] == ["bytes=1000-"] and left(tmp_path) == [SUM + ".run"]


def test_a_file_that_is_too_large_leaves_nothing(server, store, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 100_000)
    with pytest.raises(NpuError, match="which no driver package has"):
        store.file(source(server.url("/a.run")))
    assert left(tmp_path) == []


def test_a_full_disk_does_not_stay_full(server, store, tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / (SUM + ".part")).symlink_to("/dev/full")
    with pytest.raises(NpuError, match="The file system of .* is full"):
        store.file(source(server.url("/a.run")))
    assert left(tmp_path) == []


def test_a_shorter_file_than_the_checksum_is_of(server, store, tmp_path):
    server.files["/a.run"] = CONTENT[:-1]
    with pytest.raises(NpuError, match="has sha256:[0-9a-f]{64} instead of sha256:%s: .*The download was removed" % SUM):
        store.file(source(server.url("/a.run")))
    assert left(tmp_path) == []


def killed(server, tmp_path):
    """Kill a process that has downloaded a part."""
    reached = threading.Event()
    blocks = iter(range(1000))

    def pause():
        if next(blocks) >= 20:
            reached.set()
            time.sleep(0.5)

    server.pause = pause
    code = (
        "import runpy, sys; sys.argv[0] = 'x'\n"
        "from ansible_collections.npuops.ascend.plugins.plugin_utils._package import store, source\n"
        "store.Store(%r).file(source.PackageSource.of({'package': %r, 'package_sha256': %r}))"
    )
    text = code % (str(tmp_path / "store"), server.url("/a.run"), SUM)
    with subprocess.Popen([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": PATHS}) as process:
        assert reached.wait(60)
        part = tmp_path / "store" / (SUM + ".part")
        while not part.exists() or part.stat().st_size == 0:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    server.pause = lambda: None
    server.requests.clear()
    return part


def test_a_killed_run_is_continued(server, store, tmp_path):
    part = killed(server, tmp_path)
    size = part.stat().st_size
    assert 0 < size < len(CONTENT)
    store.file(source(server.url("/a.run")))
    assert [wanted for _path, wanted, _login in server.requests] == ["bytes=%d-" % size]
    assert left(tmp_path) == [SUM + ".run"]


@pytest.mark.parametrize("rest", [b"other", CONTENT + b"more", CONTENT])
def test_what_another_run_left_does_not_matter(server, store, tmp_path, rest):
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / (SUM + ".part")).write_bytes(rest)
    store.file(source(server.url("/a.run")))
    assert left(tmp_path) == [SUM + ".run"]


def test_a_slow_server(server, store, tmp_path):
    server.pause = lambda: time.sleep(0.2)
    began = time.monotonic()
    with pytest.raises(NpuError, match="was not downloaded within 1 seconds"):
        store.file(source(server.url("/a.run")), 1)
    assert time.monotonic() - began < 8 and left(tmp_path) == [SUM + ".part"]
    server.pause = lambda: None
    server.requests.clear()
    store.file(source(server.url("/a.run")))
    assert [wanted is not None for _path, wanted, _login in server.requests] == [True] and left(tmp_path) == [SUM + ".run"]


def test_a_server_that_does_not_say_how_long_the_file_is(server, store, tmp_path):
    """The checksum decides. What the time limit or the server ends is not taken for another file."""
    server.lengths = False
    server.pause = lambda: time.sleep(0.2)
    with pytest.raises(NpuError, match="was not downloaded within 1 seconds; the next run continues"):
        store.file(source(server.url("/a.run")), 1)
    assert left(tmp_path) == [SUM + ".part"]
    server.pause = lambda: None
    (tmp_path / "store" / (SUM + ".part")).unlink()
    server.cut = [1000]
    with pytest.raises(NpuError, match="did not say how long it is, so it may have broken off: run again. Or it is another file"):
        store.file(source(server.url("/a.run")))
    assert left(tmp_path) == []
    store.file(source(server.url("/a.run")))
    assert left(tmp_path) == [SUM + ".run"]


def test_a_silent_server(server, tmp_path):
    server.pause = lambda: time.sleep(2)
    with pytest.raises(NpuError, match="ended early, also when repeated: the server stopped sending"):
        download.download(source(server.url("/a.run")), str(tmp_path / "x"), 60, silence=0.3)


def test_a_file_without_end(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 100_000)
    with pytest.raises(NpuError, match="which no driver package has"):
        download.download(source(server.url("/a.run")), str(tmp_path / "x"), 60)
    assert (tmp_path / "x").stat().st_size <= 100_000


LOGIN = {"package_username": "reader", "package_password": "s3cret"}


def test_an_account(store, tmp_path):
    with FileServer({"/a.run": CONTENT}, login="reader:s3cret") as server:
        with pytest.raises(NpuError, match="does not let user 'reader' download .*status 401") as caught:
            store.file(source(server.url("/a.run"), package_username="reader", package_password="wr0ng"))
        assert "wr0ng" not in caught.value.message
        store.file(source(server.url("/a.run?sig=x"), **LOGIN))
    assert left(tmp_path) == [SUM + ".run"]


def test_a_redirect_to_another_server_does_not_see_the_account(server, store):
    with FileServer({}) as first:
        first.redirects["/b.run"] = server.url("/a.run", "localhost")
        store.file(source(first.url("/b.run"), **LOGIN))
        assert [login is not None for _path, _range, login in first.requests] == [True]
    assert [login for _path, _range, login in server.requests] == [None]


def test_a_server_that_it_redirects_to_and_that_refuses(server, store):
    """The account is not that server's: to check it would lead nowhere."""
    with FileServer({}) as first:
        first.redirects["/b.run"] = server.url("/a.run", "localhost") + "?signature=secret"
        server.statuses["/a.run"] = 403
        with pytest.raises(NpuError, match="redirects to localhost:[0-9]+, which does not let an anonymous .*403") as caught:
            store.file(source(first.url("/b.run"), **LOGIN))
    assert "_username" not in caught.value.message and "secret" not in caught.value.message


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://x.example/a", "http:///a"])
def test_redirects_that_are_not_followed(server, store, tmp_path, target):
    server.redirects["/b.run"] = target
    with pytest.raises(NpuError, match="redirects to .*; refused|HTTP status"):
        store.file(source(server.url("/b.run")))
    assert left(tmp_path) == []


def test_redirects_in_a_circle(server, store):
    server.redirects["/b.run"] = server.url("/b.run")
    with pytest.raises(NpuError, match="HTTP status 302"):
        store.file(source(server.url("/b.run")))


@pytest.mark.parametrize(
    ("status", "text"), [(404, "does not exist on its server"), (403, "does not let an anonymous user"), (500, "HTTP status 500")]
)
def test_what_servers_say(server, store, status, text):
    server.statuses["/a.run"] = status
    with pytest.raises(NpuError, match=text) as caught:
        store.file(source(server.url("/a.run?token=SECRET")))
    assert "SECRET" not in caught.value.message


def test_no_server(store, tmp_path):
    with FileServer({}) as server:
        url = server.url("/a.run")
    with pytest.raises(NpuError, match="cannot be downloaded from 127.0.0.1:[0-9]+: Connection refused"):
        store.file(source(url))
    assert left(tmp_path) == []


# --- files of the controller ---


def test_a_file(store, tmp_path):
    (tmp_path / "a.run").write_bytes(CONTENT)
    assert store.file(source(str(tmp_path / "a.run"))) == str(tmp_path / "a.run")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("name", "sha256", "text"),
    [
        ("a.run", "0" * 64, "it is another file"),
        ("none.run", SUM, "cannot be read on the controller: No such"),
        ("", SUM, "not a file"),
    ],
    ids=["another", "absent", "directory"],
)
def test_files_that_do_not_fit(store, tmp_path, name, sha256, text):
    (tmp_path / "a.run").write_bytes(CONTENT)
    with pytest.raises(NpuError, match=text):
        store.file(source(str(tmp_path / name), sha256))


# --- artifacts ---


def artifact(registry, layers=None, tag="1"):
    """Push what `oras push` pushes."""
    layers = [CONTENT] if layers is None else layers
    described = [{"digest": registry.put_blob(one), "size": len(one), "mediaType": "application/octet-stream"} for one in layers]
    config = {"digest": registry.put_blob(b"{}"), "size": 2, "mediaType": "application/vnd.oci.empty.v1+json"}
    document = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": described,
    }
    return registry.put_manifest("m/p", tag, document)


@pytest.mark.parametrize("auth", [None, "basic", "token"])
def test_an_artifact(store, tmp_path, auth):
    with Registry(auth=auth) as registry:
        digest = artifact(registry)
        account = {"registry_username": registry.username, "registry_password": registry.password, "registry_plain_http": True}
        for name in (":1", "@" + digest):
            path = store.file(source("oci://%s/m/p%s" % (registry.address, name), **account))
            assert os.path.getsize(path) == len(CONTENT)
    assert left(tmp_path) == [SUM + ".run"]


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        ([CONTENT, b"1"], "has 2 files"),
        ([], "has 0 files"),
        ([b"other"], "has the checksum sha256:[0-9a-f]{64} instead of"),
        (None, "does not match the digest"),
    ],
)
def test_artifacts_that_do_not_fit(store, tmp_path, layers, text):
    with Registry() as registry:
        artifact(registry, layers)
        if layers is None:
            registry.faults.append(("GET", "blobs", lambda body: body[:-1] + bytes([body[-1] ^ 1])))
        with pytest.raises(NpuError, match=text):
            store.file(source("oci://%s/m/p:1" % registry.address, registry_plain_http=True))
    assert left(tmp_path) == []


@pytest.mark.parametrize("ranges", [True, False, None])
def test_what_came_of_an_artifact_is_continued_by_the_next_run(store, tmp_path, ranges):
    with Registry() as registry:
        artifact(registry)
        registry.cut = [150_000]
        wanted = source("oci://%s/m/p:1" % registry.address, registry_plain_http=True)
        with pytest.raises(NpuError, match="in the middle of an answer"):
            store.file(wanted)
        assert left(tmp_path) == [SUM + ".part"]
        size = (tmp_path / "store" / (SUM + ".part")).stat().st_size
        registry.ranges = ranges
        store.file(wanted)
        assert registry.wanted[:2] == [None, "bytes=%d-" % size] and size > 0 and left(tmp_path) == [SUM + ".run"]


@pytest.mark.parametrize("rest", [b"other", CONTENT + b"more"])
def test_what_was_left_of_another_artifact_does_not_matter(store, tmp_path, rest):
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / (SUM + ".part")).write_bytes(rest)
    with Registry() as registry:
        artifact(registry)
        store.file(source("oci://%s/m/p:1" % registry.address, registry_plain_http=True))
    assert left(tmp_path) == [SUM + ".run"]


# --- the directory ---


def test_old_packages_are_removed(server, store, tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    files = {name: tmp_path / "store" / name for name in ("ab" * 32 + ".run", "cd" * 32 + ".run", "mine.txt", "ef" * 32 + ".part")}
    for name, path in files.items():
        path.write_bytes(b"")
        age = 0 if name.startswith("cd") else 31 * 24 * 3600
        os.utime(path, (time.time() - age,) * 2)
    store.file(source(server.url("/a.run")))
    assert left(tmp_path) == sorted([SUM + ".run", "cd" * 32 + ".run", "mine.txt"])


def test_the_lock_of_a_run_stays_however_old_it_is(server, store, tmp_path):
    """A lock is as old as the first download; without it, two runs would write one file."""
    (tmp_path / "store").mkdir(mode=0o700)
    other = "ef" * 32
    held = files.take_lock(str(tmp_path / "store" / (other + ".lock")))
    names = [SUM + ".lock", other + ".lock", other + ".part", "cd" * 32 + ".lock"]
    for name in names:
        (tmp_path / "store" / name).touch(0o600)
        os.utime(tmp_path / "store" / name, (time.time() - 31 * 24 * 3600,) * 2)
    seen = []
    server.pause = lambda: seen.append(sorted(os.listdir(tmp_path / "store")))
    store.file(source(server.url("/a.run")))
    os.close(held)
    assert seen[0] == sorted([SUM + ".lock", SUM + ".part", other + ".lock", other + ".part"])
    store.file(source(server.url("/a.run")))
    assert sorted(os.listdir(tmp_path / "store")) == sorted([SUM + ".lock", SUM + ".run"])


def test_a_directory_that_others_may_write(server, store, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o777)
    with pytest.raises(NpuError, match="must belong to the user that runs Ansible"):
        store.file(source(server.url("/a.run")))


def test_a_directory_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NpuError, match="Set XDG_CACHE_HOME"):
        Store(str(tmp_path / "file" / "store")).file(source(server.url("/a.run")))
