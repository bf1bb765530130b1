# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which images a fleet needs."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.image_list import ImageList

from support.fleet.preflight import DIGEST, REPOSITORY, facts, host

TAG = "%s-%s-6.6.0-145.0.4.135-oe2403sp3"


def drivers(*hosts, versions=()):
    found = ImageList()
    found.add_drivers(hosts, versions)
    return {entry["image"]: entry["needed_by"] for entry in found.result()}


def test_each_profile_once():
    found = drivers(
        host("a", driver_version="25.5.0"),
        host("b", driver_version="25.5.0"),
        host("c", facts("d500"), driver_version="25.5.1"),
        host("d", facts(chip_count=0)),
        host("e", driver_source="preinstalled"),
    )
    assert found == {
        f"{REPOSITORY}:{TAG % ('25.5.0', '910b')}": ["driver of a", "driver of b"],
        f"{REPOSITORY}:{TAG % ('25.5.1', '310p')}": ["driver of c"],
    }


def test_several_versions():
    found = drivers(host("a", driver_version="25.5.0", driver_digest=DIGEST), versions=["25.5.0", "25.5.1"])
    # The tag that is pinned is copied with what it stood for when it was pinned.
    assert list(found) == [f"{REPOSITORY}:{TAG % ('25.5.0', '910b')}@{DIGEST}", f"{REPOSITORY}:{TAG % ('25.5.1', '910b')}"]


def test_kernels_that_do_not_run_yet():
    """What install and upgrade stage for them comes from the same registry."""
    named, following = "6.6.0-150.0.0.139.oe2403sp3.aarch64", "6.6.0-155.0.0.1.oe2403sp3.aarch64"
    fact = facts(next_kernel={"kernel": following, "release": None, "symvers": None})
    one = host("a", fact, driver_version="25.5.0", driver_kernels=["next", named, fact["kernel"]])
    assert drivers(one, versions=["25.5.0", "25.5.1"]) == {
        f"{REPOSITORY}:{version}-910b-{kernel}-oe2403sp3": ["driver of a" + added]
        for version in ("25.5.0", "25.5.1")
        for kernel, added in {
            "6.6.0-145.0.4.135": "",
            "6.6.0-150.0.0.139": " for kernel " + named,
            "6.6.0-155.0.0.1": " for kernel " + following,
        }.items()
    }
    with pytest.raises(NpuError, match="a: npu_driver_kernels has 'a b'"):
        drivers(host("a", driver_version="25.5.0", driver_kernels=["a b"]))
    # One image is for one kernel: install tells of it in a note, where the setting names no kernel.
    assert list(drivers(host("a", fact, driver_image="r.example/x:1"))) == ["r.example/x:1"]
    with pytest.raises(NpuError, match="a: npu_driver_image is set, which is for one kernel"):
        drivers(host("a", driver_image="r.example/x:1", driver_kernels=[named]))


def test_the_image_of_accept():
    """It is for chips, wherever their driver comes from."""
    image = "registry.example.com/mlops/toolbox:26.1.0"
    found = ImageList()
    found.add_toolboxes(
        [
            host("a", accept_toolbox_image=image),
            host("b", driver_source="preinstalled", accept_toolbox_image=image),
            host("c", facts(chip_count=0), accept_toolbox_image=image),
            host("d"),
        ]
    )
    assert {entry["image"]: entry["needed_by"] for entry in found.result()} == {image: ["accept of a", "accept of b"]}


def test_packages():
    """One of a web server is listed with its checksum, one of a registry is copied like an image, and a file stays where it is."""
    url, sha256 = "https://files.example/Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run", "ab" * 32
    common = {"driver_source": "package", "driver_version": "25.5.0", "driver_package_sha256": sha256}
    hosts = [
        host("a", driver_package=url + "?signature=s3cret", **common),
        host("b", driver_package=url, **common),
        host("c", driver_package="oci://r.example/packages:1", registry_mirror="site.example/x", **common),
        host("d", driver_package="/srv/x.run", **common),
        host("e", facts(chip_count=0), driver_package="https://files.example/other.run", **common),
    ]
    found = ImageList()
    found.add_drivers(hosts, ["25.5.0", "25.5.1"])
    assert found.packages == [{"package": url, "sha256": sha256}]
    assert found.result() == [{"image": "r.example/packages:1", "needed_by": ["driver package of c"]}]
    told = "\n".join(found.table())
    assert f"{url}  driver package of a, driver package of b" in told and "s3cret" not in told
    with pytest.raises(NpuError, match="a: npu_driver_package_sha256 is not set"):
        drivers(host("a", driver_source="package", driver_package=url))


def test_packages_of_the_runtime():
    """Also of hosts whose driver is not ours."""
    url, sha256 = "https://files.example/Ascend-docker-runtime_26.1.0_linux-aarch64.run", "ab" * 32
    runtime = {"runtime_mode": "ascend", "runtime_package": url, "runtime_package_sha256": sha256}
    common = {"driver_source": "preinstalled"}
    artifact = dict(runtime, runtime_package="oci://r.example/packages:rt", registry_mirror="site.example/x")
    found = ImageList()
    found.add_drivers([host("a", **common, **runtime), host("b", **common), host("c", **common, **artifact)])
    of_runtime = "package of the Ascend Docker Runtime of"
    assert found.result() == [{"image": "r.example/packages:rt", "needed_by": [f"{of_runtime} c"]}]
    assert f"{url}  {of_runtime} a" in "\n".join(found.table())
    with pytest.raises(NpuError, match="a: npu_runtime_package_sha256 is not set"):
        drivers(host("a", **common, **dict(runtime, runtime_package_sha256=None)))
    assert drivers(host("a", **common, **dict(runtime, runtime_mode="cdi"))) == {}


def test_firmware_packages():
    """As driver packages, for hosts that have one of these."""
    url, sha256 = "https://files.example/Ascend-hdk-910b-npu-firmware_7.8.0.7.220.run", "ab" * 32
    of_firmware = {"firmware_package": url + "?signature=s3cret", "firmware_package_sha256": sha256}
    common = {"driver_source": "package", "driver_package": "/srv/x.run", "driver_package_sha256": "cd" * 32}
    artifact = dict(of_firmware, firmware_package="oci://r.example/packages:fw", registry_mirror="site.example/x")
    found = ImageList()
    found.add_drivers([host("a", **common, **of_firmware), host("b", **common), host("c", **common, **artifact)])
    assert found.packages == [{"package": url, "sha256": sha256}]
    assert found.result() == [{"image": "r.example/packages:fw", "needed_by": ["firmware package of c"]}]
    assert f"{url}  firmware package of a" in "\n".join(found.table())
    with pytest.raises(NpuError, match="a: npu_firmware_package_sha256 is not set"):
        drivers(host("a", **common, firmware_package=url))


def test_an_image_of_its_own():
    assert list(drivers(host("a", driver_image="r.example/x:1"), versions=["1", "2"])) == ["r.example/x:1"]


@pytest.mark.parametrize(
    "one, reason",
    [
        ({**host("a"), "error": "no route to it"}, "a: no route to it"),
        ({**host("a"), "facts": None, "pending": "has no Python: it is brought"}, "a: has no Python"),
        ({**host("a"), "unreachable": True}, "a: it cannot be reached"),
        ({**host("a"), "facts": None}, "a: its facts were not read"),
        (host("a", driver_repository=None), "a: npu_driver_repository is not set"),
        (host("a", driver_image="R.example/X"), "a: 'R.example/X' is not a valid image reference"),
    ],
)
def test_a_host_whose_image_is_not_known(one, reason):
    with pytest.raises(NpuError, match="not known. Correct that, or leave the hosts out with --limit: " + reason):
        drivers(host("z"), one)


def test_components():
    def images(version_line="7.3", **settings):
        found = ImageList()
        found.add_components(version_line, wanted_components.of(settings).values())
        return found.images

    agent = {"image": "r.example/agent:1"}
    with pytest.raises(NpuError, match="npu_node_agent_image is not set"):
        images()
    assert images(node_agent=agent, exporter={"image": "r.example/e:7"}) == [
        "r.example/agent:1",
        "swr.cn-south-1.myhuaweicloud.com/ascendhub/ascend-k8sdeviceplugin:v7.3.2",
        "r.example/e:7",
    ]
    more = images(node_agent=agent, **{part: {"enabled": "true"} for part in mindcluster_stack.PARTS})
    for name in ("clusterd", "noded", "ascend-operator"):
        assert "swr.cn-south-1.myhuaweicloud.com/ascendhub/%s:v7.3.2" % name in more
    for name in ("vc-scheduler", "vc-controller-manager"):
        assert "swr.cn-south-1.myhuaweicloud.com/ascendhub/%s:v1.9.0-v7.3.2" % name in more
    with pytest.raises(NpuError, match="npu_volcano_scheduler_image is r.example/s:v1.12.0-v26.1.0, of MindCluster 26.1"):
        images(node_agent=agent, volcano={"enabled": True, "scheduler_image": "r.example/s:v1.12.0-v26.1.0"})
    assert images(**{part: {"enabled": "no"} for part in wanted_components.PARTS}) == []
    with pytest.raises(NpuError, match="npu_exporter_version is v26.1.0, of MindCluster 26.1"):
        images(node_agent=agent, exporter={"version": "v26.1.0"})


@pytest.mark.parametrize("mirror", ["site.example/x", {"r.example": "site.example/x", "s.example": "site.example/y"}])
def test_names_in_the_mirror_are_not_listed(mirror):
    """The side with Internet access does not reach it, and there is nothing to copy from it to itself."""
    package = {
        "driver_source": "package",
        "driver_package": "oci://site.example/x/packages:1",
        "driver_package_sha256": "ab" * 32,
        "driver_version": "25.5.0",
    }
    image = {"driver_repository": "site.example/x/driver", "driver_version": "25.5.0", "driver_kernels": ["6.6.0-150.oe2403sp3"]}
    hosts = [
        host("a", registry_mirror=mirror, accept_toolbox_image="site.example/x/toolbox:1", **package),
        host("b", registry_mirror=mirror, **image),
        host("c", registry_mirror=mirror, driver_image="r.example/x:1"),
        # Another host has another mirror, or none.
        host("d", driver_image="site.example/x/d:1"),
    ]
    found = ImageList()
    found.add_drivers(hosts)
    found.add_toolboxes(hosts)
    settings = {"node_agent": {"image": "site.example/x/agent:1"}, "exporter": {"image": "r.example/e:7"}}
    found.add_components("7.3", wanted_components.of({**settings, "device_plugin": {"enabled": False}}).values(), mirror)
    assert found.images == ["r.example/x:1", "site.example/x/d:1", "r.example/e:7"]
    assert "not listed, its name is below npu_registry_mirror: site.example/x/packages:1" in found.table()
