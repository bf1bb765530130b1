# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The createContainer hook under this machine's own runc, as root, with images that mean no good."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import uuid

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import cdi_spec

from support.paths import CHECKOUT
from support.patience import PATIENCE

HOOK = CHECKOUT / "roles" / "npu_runtime" / "files" / "npu-cdi-hook"
TARGET = "usr/local/Ascend/driver"
LIBRARY = "libnpuops-test.so"
# What a hostile image could make root write on the host.
HOST_FILES = ("/etc/ld.so.cache", "/var/cache/ldconfig/aux-cache")


class Container:
    """A bundle with a small root of files of this machine, and the driver mounted as CDI does it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.bundle = directory / "bundle"
        self.root = self.bundle / "rootfs"
        self.driver = directory / "driver"
        self.environment: list[str] = []
        self.mounts: list[dict] = []
        for name in ("etc", "proc", "dev", "sys", "usr/bin", "usr/lib", "var/cache"):
            (self.root / name).mkdir(parents=True)
        (self.root / "lib").symlink_to("usr/lib")
        shutil.copy("/bin/true", self.root / "usr/bin/true")
        (self.driver / "lib64" / "driver").mkdir(parents=True)
        make_library(self.driver / "lib64" / "driver" / LIBRARY)

    def hook(self) -> dict:
        """As the spec has it, but for the place of the script."""
        return dict(cdi_spec.hook()["hooks"][0], path=str(HOOK))

    def create(self) -> subprocess.CompletedProcess:
        """runc create: all mounts and hooks, nothing of the image is run."""
        subprocess.run(["runc", "spec"], cwd=self.bundle, check=True)
        config = json.loads((self.bundle / "config.json").read_text(encoding="utf-8"))
        hook = self.hook()
        config["process"].update(terminal=False, args=["/usr/bin/true", '"root":{"path":"/"}'])
        config["process"]["env"] += self.environment
        config["root"] = {"path": "rootfs", "readonly": True}
        config["annotations"] = {"bundle": "/", "note": '"bundle":"/","root":{"path":"/"'}
        config["mounts"] += self.mounts + [
            {"destination": "/" + TARGET, "source": str(self.driver), "type": "bind", "options": cdi_spec.MOUNT_OPTIONS}
        ]
        config["hooks"] = {hook["hookName"]: [{key: hook[key] for key in ("path", "args", "env", "timeout") if hook[key]}]}
        # As containerd writes it: in one line.
        (self.bundle / "config.json").write_text(json.dumps(config, separators=(",", ":")), encoding="utf-8")
        name = f"npuops-{uuid.uuid4().hex[:12]}"
        log = self.bundle / "log"
        try:
            with open(log, "wb") as stream:  # the container would keep a pipe open
                status = subprocess.run(
                    ["runc", "create", "--bundle", self.bundle, name],
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    timeout=PATIENCE,
                    check=False,
                ).returncode
            return subprocess.CompletedProcess([], status, log.read_text(encoding="utf-8"))
        finally:
            subprocess.run(["runc", "delete", "--force", name], capture_output=True, check=False)

    def known(self, cache: str = "etc/ld.so.cache") -> list[str]:
        """The driver's libraries in the loader cache of the image."""
        if not (self.root / cache).exists():
            return []
        listed = subprocess.run(
            ["/sbin/ldconfig", "-p", "-C", self.root / cache], capture_output=True, text=True, check=True
        ).stdout
        return re.findall(rf"=> (/{TARGET}/\S+)", listed)


def make_library(path: pathlib.Path) -> None:
    source = path.with_suffix(".c")
    source.write_text("int npuops_test(void) { return 0; }\n", encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", path, source], check=True)
    source.unlink()


@pytest.fixture
def container(tmp_path) -> Container:
    return Container(tmp_path)


@pytest.fixture
def host():
    """What is on the host must be the same afterwards; hostile paths lead here through procfs."""
    before = {path: identity(path) for path in HOST_FILES}
    directory = pathlib.Path("/var/tmp") / f"npuops-{uuid.uuid4().hex[:12]}"
    directory.mkdir()
    yield directory
    left = sorted(str(path) for path in directory.rglob("*"))
    shutil.rmtree(directory)
    assert left == []
    assert {path: identity(path) for path in HOST_FILES} == before


def identity(path: str) -> object:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def test_libraries_become_known(container, host):
    result = container.create()
    assert result.returncode == 0, result.stdout
    assert container.known() == [f"/{TARGET}/lib64/driver/{LIBRARY}"]
    assert (container.root / "etc/ld.so.cache").stat().st_mode & 0o777 == 0o644


def test_an_absolute_link_stays_in_the_container(container, host):
    (container.root / "etc").rmdir()
    (container.root / "etc").symlink_to(host)
    (container.root / str(host).lstrip("/")).mkdir(parents=True)
    assert container.create().returncode == 0
    assert container.known(str(host).lstrip("/") + "/ld.so.cache")


@pytest.mark.core
@pytest.mark.parametrize("name", ["etc", "var/cache"])
@pytest.mark.parametrize("way", ["/proc/1/root", "/proc/self/root", "/proc/1/cwd"])
def test_a_link_through_procfs_does_not_reach_the_host(container, host, name, way):
    """runc's init still has the host's root when hooks run, and procfs leads there, out of any chroot."""
    (container.root / name).rmdir()
    (container.root / name).symlink_to(f"{way}{host}")
    result = container.create()
    assert result.returncode == 0, result.stdout


@pytest.mark.core
def test_a_second_procfs_does_not_reach_the_host_either(container, host):
    """As of a pod with the host's /proc in a read-only volume."""
    container.mounts = [{"destination": "/host/proc", "source": "/proc", "type": "bind", "options": ["rbind", "ro"]}]
    (container.root / "etc").rmdir()
    (container.root / "etc").symlink_to(f"/host/proc/1/root{host}")
    assert container.create().returncode == 0


def test_no_links_where_the_image_says(container, host):
    """ldconfig makes links to libraries in each directory of the image's ld.so.conf; those may be anything."""
    volume = host.with_name(host.name + "-volume")
    volume.mkdir()
    try:
        make_library(volume / LIBRARY)
        (volume / LIBRARY).rename(volume / "libother.so.1.2.3")
        container.mounts = [{"destination": "/volume", "source": str(volume), "type": "bind", "options": ["rbind", "rw"]}]
        (container.root / "etc/ld.so.conf").write_text("/volume\n", encoding="ascii")
        assert container.create().returncode == 0
        assert [path.name for path in volume.iterdir()] == ["libother.so.1.2.3"]
    finally:
        shutil.rmtree(volume)


def test_the_environment_of_the_image_is_not_ours(container, host):
    """Without an environment of its own the hook would be started with LD_PRELOAD of the image, as root on the host."""
    source = host.parent / f"{host.name}.c"
    library = host.parent / f"{host.name}.so"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void evil(void)\n"
        f'{{ fclose(fopen("{host}/loaded", "w")); unsetenv("LD_PRELOAD"); }}\n',
        encoding="ascii",
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    try:
        container.environment = [f"LD_PRELOAD={library}", f"PATH={host}"]
        assert container.create().returncode == 0
        assert container.known()
    finally:
        source.unlink()
        library.unlink()


def test_an_image_without_etc_starts(container, host):
    (container.root / "etc").rmdir()
    assert container.create().returncode == 0


def test_an_image_whose_cache_cannot_be_written_starts(container, host):
    (container.root / "etc/ld.so.cache~").mkdir()
    (container.root / "etc/ld.so.conf").mkdir()
    assert container.create().returncode == 0


@pytest.mark.parametrize(
    "state, message",
    [
        ("", "names no bundle"),
        ('{"annotations":{"bundle":"/"}}', "names no bundle"),
        ('{"id":"x","bundle":"relative"}', "names no bundle"),
        ('{"id":"\\"bundle\\":\\"/etc"}', "names no bundle"),
        ('{"bundle":"/nosuch"}', "names no root.path"),
    ],
)
def test_what_is_no_state_is_refused(state, message):
    result = subprocess.run([HOOK], input=state, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert message in result.stderr
