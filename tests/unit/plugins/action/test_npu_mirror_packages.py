# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver packages over an air gap: from a web server or a file, in a bundle, to artifacts in the registry of the other side."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import Store

from support.host import registry_server
from support.host.file_server import FileServer
from support.host.mirrored import access, run

NAME = "Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64"
CONTENT = b"#!/bin/sh\n" + b"a driver package" * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
ARTIFACT = f"ascend-driver-packages:{NAME}-{SHA256[:12]}"
LOGIN = "reader:pA55word"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def web():
    with FileServer({f"/{NAME}.run": CONTENT}) as server:
        yield server


@pytest.fixture
def inside():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def bundle(tmp_path):
    return str(tmp_path / "bundle")


def package(place, sha256=SHA256, **more):
    return {"package": place, "sha256": sha256, **more}


def staged(inside, name, store):
    """The package as a host of the other side gets it."""
    options = {"package": name, "package_sha256": SHA256, "registry_plain_http": True}
    options.update(registry_username=inside.username, registry_password=inside.password)
    with open(Store(str(store)).file(PackageSource.of(options)), "rb") as stream:
        return stream.read()


def load(inside, bundle, **options):
    return run(**{"from": bundle, "to": inside.address + "/site", "registries": access(inside), **options})


def test_through_a_bundle(web, inside, bundle, tmp_path):
    wanted = {"packages": [package(web.url(f"/{NAME}.run"))], "to": bundle}
    made = run(**wanted)
    assert made["changed"] and made["packages"] == []
    again = run(**wanted)
    assert not again["changed"] and again["checksum"] == made["checksum"] and len(web.requests) == 1
    # What the user sets at the other side, and it is the package.
    loaded = load(inside, bundle, checksum=made["checksum"])
    assert loaded["packages"] == [f"oci://{inside.address}/site/{ARTIFACT}"]
    assert not load(inside, bundle)["changed"]
    assert staged(inside, loaded["packages"][0], tmp_path / "there") == CONTENT


def test_from_a_file_and_from_a_web_server_it_is_the_same(web, inside, tmp_path):
    file = tmp_path / f"{NAME}.run"
    file.write_bytes(CONTENT)
    to = {"to": inside.address + "/site", "registries": access(inside)}
    planned = run(check_mode=True, packages=[package(str(file))], **to)
    assert planned["changed"] and planned["packages"] and not inside.manifests
    assert run(packages=[package(str(file))], **to)["changed"]
    assert not run(packages=[package(web.url(f"/{NAME}.run")), package(str(file))], **to)["changed"]
    assert {tag for _repository, tag in inside.manifests if not tag.startswith("sha256:")} == {ARTIFACT.partition(":")[2]}


@pytest.mark.parametrize(
    "entry, message",
    [
        ({"sha256": "0" * 64}, "it is another file, or npu_mirror_packages.sha256 is wrong"),
        ({"sha256": "0"}, "npu_mirror_packages.sha256 is '0'; it must be 64 hexadecimal digits"),
        ({"sha256": ""}, "npu_mirror_packages.sha256 is not set"),
        ({"package": ""}, "npu_mirror_packages.package is not set: it must be the URL"),
        ({"package": "a.run"}, "npu_mirror_packages.package is 'a.run'; it must be"),
        ({"package": "/"}, "npu_mirror_packages.package is /, which is not a file"),
        ({"package": "ftp://x.example/x.run"}, "npu_mirror_packages.package begins with ftp://"),
        ({"package": "http://x.example/a b.run"}, "npu_mirror_packages.package has a space"),
        ({"package": "http://x.example:x/"}, "npu_mirror_packages.package is not a valid URL"),
        (
            {"package": "http://u:p@x.example/x.run"},
            "npu_mirror_packages.package has a user name .*Set npu_mirror_packages.username and npu_mirror_packages.password instead",
        ),
        ({"package": "http://127.0.0.1:1/x.run"}, "cannot be downloaded"),
        ({"package": "oci://r.example/x:1"}, "name it in npu_mirror_images, without oci://"),
    ],
)
def test_bad_packages_leave_no_bundle(web, bundle, tmp_path, entry, message):
    with pytest.raises(NpuError, match=message):
        run(packages=[{**package(web.url(f"/{NAME}.run")), **entry}], to=bundle)
    assert not (tmp_path / "bundle").exists()


def test_a_truncated_download_is_an_error_and_may_be_repeated(web, bundle, tmp_path):
    wanted = {"packages": [package(web.url(f"/{NAME}.run"))], "to": bundle}
    web.cut = [1000, 0, 0, 0]
    with pytest.raises(NpuError, match="ended early, also when repeated"):
        run(**wanted)
    assert not (tmp_path / "bundle").exists()
    assert run(**wanted)["changed"]


def test_a_file_that_changes_meanwhile(bundle, tmp_path, monkeypatch):
    file = tmp_path / f"{NAME}.run"
    file.write_bytes(CONTENT)
    looked = Store.file

    def look(self, source):
        found = looked(self, source)
        file.write_bytes(CONTENT[:-1] + b"?")
        return found

    monkeypatch.setattr(Store, "file", look)
    with pytest.raises(NpuError, match="changed while it was copied"):
        run(packages=[package(str(file))], to=bundle)
    assert not (tmp_path / "bundle" / "SHA256SUMS").exists()


def test_accounts_of_web_servers(web, bundle):
    """That of the entry, or that of the host with the same package, with its whole URL; never that of another host."""
    web.login = LOGIN
    url = web.url(f"/{NAME}.run")
    username, password = LOGIN.split(":")
    config = {
        "driver_source": "package", "driver_package": url + "?signature=s3cret", "driver_package_sha256": SHA256,
        "driver_package_username": username, "driver_package_password": password,
    }  # fmt: skip
    other = {"name": "z", "config": {**config, "driver_package_sha256": "f" * 64}}
    for options in ({}, {"hosts": [other]}):
        with pytest.raises(NpuError, match="does not let an anonymous user download"):
            run(packages=[package(url)], to=bundle, **options)
    assert run(packages=[package(url)], to=bundle, hosts=[other, {"name": "a", "config": config}])["changed"]
    assert web.requests[-1][0].endswith("?signature=s3cret")
    assert not run(packages=[package(url, username=username, password=password)], to=bundle)["changed"]


@pytest.mark.parametrize(
    "file, tag",
    [
        ("a b+c.run", "a-b-c"),
        (".run", "package"),
        ("x" * 200 + ".run", "x" * 100),
    ],
)
def test_names_that_no_tag_has(inside, tmp_path, file, tag):
    path = tmp_path / file
    path.write_bytes(CONTENT)
    done = run(packages=[package(str(path))], to=inside.address + "/site", registries=access(inside))
    assert done["packages"] == [f"oci://{inside.address}/site/ascend-driver-packages:{tag}-{SHA256[:12]}"]
