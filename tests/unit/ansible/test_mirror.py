# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/mirror.yml as run by a user who carries images to a site without Internet. Only the hosts' facts are made up."""

from __future__ import annotations

import hashlib
import json

import pytest
import yaml

from support.fleet.hosts import host
from support.host import registry_server, stored_images
from support.host.file_server import FileServer
from support.scripted import Scripted

AGENT, DRIVERS = "npuops/node-agent", "mlops/ascend-driver"
COMPONENTS = ("ascendhub/ascend-k8sdeviceplugin", "ascendhub/npu-exporter")
VERSION = "v26.1.0"
PACKAGE, CONTENT = "Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64", b"a driver package"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def outside():
    with registry_server.Registry(auth="basic") as server:
        yield server


@pytest.fixture
def inside():
    with registry_server.Registry(auth="token", username="pusher", password="another one") as server:
        yield server


@pytest.fixture
def web():
    with FileServer({f"/{PACKAGE}.run": CONTENT}) as server:
        yield server


@pytest.fixture
def site(tmp_path, outside, web):
    """Run the playbook for two hosts with the same chips, one with others, one with a package and one without any chips.

    Returns what was printed.
    """
    answers = {
        name: [{"changed": False, "npu": host(name, **facts)["facts"]}]
        for name, facts in {
            "npu-a": {},
            "npu-b": {},
            "npu-c": {"device": "d500", "chip_count": 4},
            "npu-p": {},
            "cpu-a": {"chip_count": 0, "family": None},
        }.items()
    }
    allowed = {"npu_image_white_list": {"*": [{"changed": False, "added": [], "msg": "nothing to add"}]}}
    scripted = Scripted(tmp_path, {"npu_facts": answers, **allowed})
    variables = {
        "npu_driver_repository": f"{outside.address}/{DRIVERS}",
        "npu_driver_version": "25.5.0",
        "npu_node_agent_image": f"{outside.address}/{AGENT}:0.1.0",
        # As an inventory may say it: the version is the role's default.
        "npu_device_plugin_image": f"{outside.address}/{COMPONENTS[0]}:" + "{{ npu_device_plugin_version }}",
        "npu_exporter_image": f"{outside.address}/{COMPONENTS[1]}:{VERSION}",
        "npu_registry_username": outside.username,
        "npu_registry_password": outside.password,
        "npu_registry_plain_http": True,
    }

    package = {
        "npu_driver_source": "package",
        "npu_driver_package": web.url(f"/{PACKAGE}.run"),
        "npu_driver_package_sha256": SHA256,
    }

    def run(*arguments, rc=0, hosts=tuple(answers), **extra):
        inventory = {name: {**variables, "ansible_connection": "local"} for name in hosts}
        inventory.get("npu-p", {}).update(package)
        done = scripted.run("npuops.ascend.mirror", inventory, "-e", json.dumps(extra), *arguments)
        printed = done.stdout + done.stderr
        assert done.returncode == rc, printed
        assert outside.password not in printed and "another one" not in printed
        return printed

    run.allowed = lambda: [arguments["images"] for _host, arguments in scripted.calls("npu_image_white_list")]
    return run


def tag(version, chip="910b"):
    return f"{version}-{chip}-6.6.0-145.0.4.135-oe2403sp3"


@pytest.fixture
def upstream(outside):
    """Where every image of the fleet is: (repository, tag) -> digest."""
    found = {}
    for repository in (AGENT, *COMPONENTS):
        name = "0.1.0" if repository == AGENT else VERSION
        images = {"amd64": [repository.encode()], "arm64": [b"arm64"]}
        found[repository, name] = stored_images.put_index(outside, repository, name, images)
    for name in (tag("25.5.0"), tag("25.5.0", "310p"), tag("25.5.1"), tag("25.5.1", "310p")):
        found[DRIVERS, name] = stored_images.put_image(outside, DRIVERS, name, name.encode())
    return found


def stored(registry, prefix):
    """(repository, tag) -> digest, of what is below the prefix."""
    return {
        (repository[len(prefix) :], name): registry_server.sha256(content)
        for (repository, name), (content, _type) in registry.manifests.items()
        if repository.startswith(prefix) and not name.startswith("sha256:")
    }


def access(registry):
    return [{"registry": registry.address, "username": registry.username, "password": registry.password, "plain_http": True}]


def test_three_commands(site, upstream, outside, inside, web, tmp_path):
    """The list where the hosts are, the bundle where the Internet is, the registry where the hosts are."""
    listing, bundle = tmp_path / "images.yml", str(tmp_path / "bundle")
    versions = ["25.5.0", "25.5.1"]
    mirror = {"npu_registry_mirror": inside.address + "/site/"}
    printed = site("--check", npu_mirror_list_file=str(listing), npu_mirror_driver_versions=versions)
    assert not listing.exists() and "driver of npu-a, driver of npu-b" in printed
    site(npu_mirror_list_file=listing.name, npu_mirror_driver_versions=versions, **mirror)
    assert not outside.requests
    listed = yaml.safe_load(listing.read_text())
    assert listed["npu_mirror_packages"] == [{"package": web.url(f"/{PACKAGE}.run"), "sha256": SHA256}] and not web.requests
    names = listed["npu_mirror_images"]
    assert sorted(names) == sorted(f"{outside.address}/{repository}:{name}" for repository, name in upstream)
    made = site("-e", f"@{listing}", hosts=(), npu_hosts="localhost", npu_mirror_to=bundle, npu_mirror_registries=access(outside))
    checksum = made.rpartition("checksum of the bundle: ")[2][:64]
    outside.requests.clear()
    load = {
        **mirror,
        "npu_mirror_from": bundle,
        "npu_registry_username": inside.username,
        "npu_registry_password": inside.password,
        "npu_mirror_checksum": checksum,
    }
    assert "changed=1" in site("--check", **load) and not stored(inside, "")
    loaded = site(**load)
    artifact = ("ascend-driver-packages", f"{PACKAGE}-{SHA256[:12]}")
    found = stored(inside, "site/")
    assert found.pop(artifact) and found == upstream
    assert "Set the variable of each package, such as npu_driver_package, to its name" in loaded
    assert f"oci://{inside.address}/site/{':'.join(artifact)}" in loaded
    assert "changed=0" in site(**load)
    assert not outside.requests


def test_from_registry_to_registry_for_some_hosts(site, upstream, outside, inside):
    site("--limit", "npu-c,cpu-a", npu_mirror_to=inside.address + "/site", npu_mirror_registries=access(inside),
         npu_exporter_enabled=False, npu_mirror_extra_images=[f"{outside.address}/{COMPONENTS[1]}:{VERSION}"])  # fmt: skip
    wanted = {(DRIVERS, tag("25.5.0", "310p")), (AGENT, "0.1.0"), *((name, VERSION) for name in COMPONENTS)}
    assert stored(inside, "site/") == {name: digest for name, digest in upstream.items() if name in wanted}
    assert site.allowed() == []


def test_images_of_a_registry_are_allowed_and_those_of_a_bundle_not(site, upstream, outside, inside, tmp_path):
    image = f"{outside.address}/{DRIVERS}:{tag('25.5.0')}"
    copied = {"npu_mirror_images": [image], "npu_mirror_white_list": True, "npu_mirror_registries": access(inside)}
    site(npu_mirror_to=str(tmp_path / "bundle"), **copied)
    assert site.allowed() == []
    site(npu_mirror_to=inside.address + "/site", **copied)
    assert site.allowed() == [[f"{inside.address}/site/{DRIVERS}:{tag('25.5.0')}"]]


def test_what_stops_it(site, upstream, outside, inside):
    def message(*arguments, **extra):
        return " ".join(site(*arguments, rc=2, **extra).split())

    assert "npu_mirror_to is not set" in message()
    # A list of what is listed already: such a run would do nothing.
    for other in ({"npu_mirror_images": ["r.example/x:1"]}, {"npu_mirror_from": "/nowhere"}):
        assert "npu_mirror_list_file asks for a list of the fleet's images" in message(npu_mirror_list_file="/dev/null", **other)
    assert "unknown variable npu_mirror_image: did you mean npu_mirror_images?" in message(npu_mirror_image="x")
    assert not inside.manifests
    # What is missing is told when all others have been copied.
    assert f"{DRIVERS}:9.9.9-910b-6.6.0-145.0.4.135-oe2403sp3 does not exist" in message(
        npu_driver_version="9.9.9", npu_mirror_to=inside.address + "/site", npu_mirror_registries=access(inside)
    )
    assert {name for name, _tag in inside.manifests} and "site/" + DRIVERS not in {name for name, _tag in inside.manifests}
