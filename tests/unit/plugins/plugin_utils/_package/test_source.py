# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import FILE, REGISTRY, WEB, PackageSource

SUM = "ab" * 32


def source(package, **more):
    return PackageSource.of({"package": package, "package_sha256": SUM, **more})


@pytest.mark.parametrize(
    ("package", "kind", "place", "name"),
    [
        ("https://x.example/d/a.run", WEB, "https://x.example/d/a.run", "https://x.example/d/a.run"),
        ("http://x.example:8080/a.run", WEB, "http://x.example:8080/a.run", "http://x.example:8080/a.run"),
        ("https://x.example/a.run?token=SECRET#x", WEB, "https://x.example/a.run?token=SECRET#x", "https://x.example/a.run"),
        ("/srv/a.run", FILE, "/srv/a.run", "/srv/a.run"),
        ("oci://r.example/m/p:1", REGISTRY, "r.example/m/p:1", "oci://r.example/m/p:1"),
    ],
)
def test_each_kind(package, kind, place, name):
    found = source(package)
    assert (found.kind, found.place, found.name, found.digest) == (kind, place, name, "sha256:" + SUM)


def test_the_home_of_the_user(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ops")
    assert source("~/a.run").place == "/home/ops/a.run"


def test_an_artifact_in_the_mirror():
    assert source("oci://r.example/m/p:1", registry_mirror="mirror.example/x").name == "oci://mirror.example/x/m/p:1"


def test_each_account_is_for_its_server():
    accounts = {"package_username": "web", "package_password": "W", "registry_username": "reg", "registry_password": "R"}
    assert (source("https://x.example/a", **accounts).username, source("https://x.example/a", **accounts).password) == ("web", "W")
    assert (source("oci://r.example/p:1", **accounts).username, source("oci://r.example/p:1", **accounts).password) == ("reg", "R")
    assert source("/srv/a.run", **accounts).password is None
    assert "'W'" not in repr(source("https://x.example/a", **accounts))


@pytest.mark.parametrize(
    ("package", "more", "text"),
    [
        ("", {}, "npu_driver_package is not set"),
        (None, {}, "npu_driver_package is not set"),
        ("a.run", {}, "its absolute path on the controller"),
        ("file:///srv/a.run", {}, "begins with file://; it must be"),
        ("ftp://x.example/a.run", {}, "begins with ftp://"),
        ("https:///a.run", {}, "begins with https://; it must be"),
        ("https://[x/a.run", {}, "is not a valid URL"),
        ("https://x.example/a b.run", {}, "has a space"),
        ("https://user:SECRET@x.example/a.run", {}, "has a user name or password in the URL"),
        ("https://SECRET@x.example/a.run", {}, "npu_driver_package_username"),
        ("oci://r.example/M:1", {}, "r.example/M"),
        ("/srv/a.run", {"package_sha256": ""}, "npu_driver_package_sha256 is not set"),
        ("/srv/a.run", {"package_sha256": "ab"}, "must be 64 hexadecimal digits"),
        ("/srv/a.run", {"package_sha256": "sha256:" + SUM}, "must be 64 hexadecimal digits"),
    ],
)
def test_what_is_refused(package, more, text):
    with pytest.raises(NpuError, match=text) as caught:
        source(package, **more)
    assert "SECRET" not in caught.value.message
