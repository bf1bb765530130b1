# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages in preflight: looked into once, and not at all for hosts that have their driver."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.contents import PackageContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_package
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config

from support.fleet.preflight import facts, host, judge, only
from support.host import driver_packages

KERNEL = "6.6.0-145.0.4.135.oe2403sp3.aarch64"
NEXT = "6.6.0-150.0.0.139.oe2403sp3.aarch64"
SUM = "ab" * 32
PACKAGE = "https://files.example.com/Ascend-hdk-910b-npu-driver_25.5.0_linux-aarch64.run"
RELEASE = "25.5.0-%s-%s" % (KERNEL, SUM[:12])
CONTENTS = PackageContents(size=10, unpacked=30, version="25.5.0", machine="aarch64", kernels=(KERNEL,))


class Look:
    """Counts what is looked into."""

    def __init__(self, answer=CONTENTS):
        self.answer, self.asked = answer, []

    def __call__(self, source, config):
        self.asked.append(source.place)
        if isinstance(self.answer, NpuError):
            raise self.answer
        return self.answer


def by_package(name="a", fact=None, **config):
    settings = {"driver_source": "package", "driver_package": PACKAGE, "driver_package_sha256": SUM, "driver_repository": None}
    return host(name, fact=fact, **{**settings, **config})


def no_registry(*arguments):
    raise AssertionError("a registry was asked")


def test_a_host_in_order():
    verdict = only(by_package(), resolve=no_registry, look=Look())
    result = verdict.result()
    assert (verdict.status, verdict.reasons) == ("ready", [])
    assert (result["package"], result["image"], result["digest"]) == (PACKAGE, None, "sha256:" + SUM)
    assert result["expected_version"] == "25.5.0" and result["driver_path"] == "/var/lib/Ascend/driver"
    assert verdict.line().startswith("a: 8 x 910B, driver package " + PACKAGE)
    assert verdict.package_space > CONTENTS.size + 2 * CONTENTS.unpacked


def test_one_look_for_all_hosts():
    look = Look()
    verdicts = judge(
        [by_package("a"), by_package("b"), by_package("c", driver_package="/srv/c.run")], resolve=no_registry, look=look
    )
    assert look.asked == [PACKAGE, "/srv/c.run"] and [verdict.status for verdict in verdicts] == ["ready"] * 3


def test_pools_with_images_and_with_packages():
    look = Look()
    verdicts = judge([host("a"), by_package("b")], look=look)
    assert [bool(verdict.image) for verdict in verdicts] == [True, False]
    assert [bool(verdict.package) for verdict in verdicts] == [False, True] and len(look.asked) == 1


def test_a_host_that_has_the_driver_needs_no_package():
    driver = {"loaded": True, "managed": True, "loaded_release": RELEASE, "release": RELEASE, "complete": True}
    verdict = only(by_package(fact=facts(boot_id="boot-a", driver=driver)), look=no_registry)
    assert (verdict.keep_release, verdict.reasons) == (RELEASE, [])


def test_a_damaged_driver_does():
    driver = {"loaded": True, "managed": True, "loaded_release": RELEASE, "release": RELEASE, "complete": False}
    look = Look()
    only(by_package(fact=facts(boot_id="boot-a", driver=driver)), look=look)
    assert look.asked == [PACKAGE]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"driver_version": "25.5.1"}, "has driver 25.5.0 instead of 25.5.1: npu_driver_package or npu_driver_version is wrong"),
        ({"driver_package": None}, "npu_driver_package is not set"),
        ({"driver_package_sha256": None}, "npu_driver_package_sha256 is not set"),
        ({"driver_package": "file:///x.run"}, "begins with file://"),
        ({"driver_package": PACKAGE.replace("910b", "310p")}, "is for 310p chips, not for 910b"),
    ],
)
def test_settings_that_do_not_fit(change, text):
    (reason,) = only(by_package(**change), look=Look()).reasons
    assert text in reason


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (PackageContents(10, 30, "25.5.0", "x86_64", (KERNEL,)), "is for x86_64, and the host is aarch64"),
        (PackageContents(10, 30, "25.5.0", "aarch64", ("a", "b")), "no kernel modules for %s; it has modules for a, b" % KERNEL),
        (PackageContents(10, 30, "25.5.0", "aarch64", ()), "it has none at all. Add them with the package's option --repack"),
        (NpuError("x is truncated"), "x is truncated"),
    ],
)
def test_packages_that_do_not_fit(answer, text):
    look = Look(answer)
    verdicts = judge([by_package("a"), by_package("b")], look=look)
    assert all(text in " ".join(verdict.reasons) and verdict.status == "blocked" for verdict in verdicts)
    assert len(look.asked) == 1


SIBLING = KERNEL.replace("145.0.4.135", "145.0.4.134")


def test_modules_for_another_release_are_compared_on_the_host():
    assert SIBLING != KERNEL
    look = Look(PackageContents(10, 30, "25.5.0", "aarch64", (SIBLING, "5.10.0-1.x86_64")))
    verdict = only(by_package(fact=facts(boot_id="boot-a", symvers="/boot/symvers-x.gz")), look=look)
    (note,) = verdict.notes
    assert verdict.status == "ready" and "no kernel modules for %s. When it is staged" % KERNEL in note
    assert "those for %s are compared" % SIBLING in note
    # A host that cannot compare them says so before anything is sent.
    (reason,) = only(by_package(fact=facts(boot_id="boot-a", symvers=None)), look=look).reasons
    assert "no kernel modules for %s; it has modules for" % KERNEL in reason
    look = Look(PackageContents(10, 30, "25.5.0", "aarch64", ("5.10.0-1.x86_64",)))
    (reason,) = only(by_package(fact=facts(boot_id="boot-a", symvers="/boot/symvers-x.gz")), look=look).reasons
    assert "no kernel modules for %s; it has modules for 5.10.0-1" % KERNEL in reason


def following(release=None, symvers=None):
    return facts(boot_id="boot-a", next_kernel={"kernel": NEXT, "release": release, "symvers": symvers})


def test_the_next_kernel():
    verdict = only(by_package(fact=following()), look=Look(CONTENTS.__class__(10, 30, "25.5.0", "aarch64", (KERNEL, NEXT))))
    (other,) = verdict.other_kernels
    assert (other["kernel"], other["package"], other["image"]) == (NEXT, PACKAGE, "")
    assert other["release"] == "25.5.0-%s-%s" % (NEXT, SUM[:12])
    assert NEXT in verdict.line()


def test_the_next_kernel_that_is_staged():
    verdict = only(by_package(fact=following("25.5.0-%s-%s" % (NEXT, SUM[:12]))), look=Look())
    assert (verdict.other_kernels, verdict.notes) == ([], [])


def test_the_next_kernel_that_the_package_does_not_have():
    verdict = only(by_package(fact=following()), look=Look())
    assert verdict.status == "ready" and "has no kernel modules for %s" % NEXT in verdict.notes[0]
    verdict = only(by_package(driver_kernels=[NEXT]), look=Look())
    assert "has no kernel modules for %s" % NEXT in verdict.reasons[0]


def test_the_next_kernel_for_which_the_package_has_modules_of_a_sibling():
    symvers = "/boot/symvers-%s.gz" % NEXT
    verdict = only(by_package(fact=following(symvers=symvers)), look=Look())
    (other,) = verdict.other_kernels
    assert (other["kernel"], other["package"]) == (NEXT, PACKAGE)
    (note,) = verdict.notes
    assert "no kernel modules for %s. When it is staged" % NEXT in note and "those for %s are compared" % KERNEL in note
    # What the host has of its next kernel tells nothing of another one.
    (reason,) = only(by_package(fact=following(symvers=symvers), driver_kernels=["6.6.0-999"]), look=Look()).reasons
    assert "has no kernel modules for 6.6.0-999" in reason


# --- the look itself ---


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def config(path, **more):
    return host_config.complete({"driver_source": "package", "driver_package": str(path), **more})


def test_a_look(tmp_path):
    path = driver_packages.makeself(tmp_path)
    given = config(path, driver_package_sha256=driver_packages.sha256(path))
    found = driver_package.look(driver_package.source_of(given), given)
    assert (found.version, found.machine) == ("25.5.0", driver_packages.MACHINE)


def test_a_signature_that_no_file_can_have(tmp_path):
    given = config(tmp_path / "x.run", driver_package_sha256=SUM, driver_signature_policy="require")
    with pytest.raises(NpuError, match="only packages in a registry .* can be signed"):
        driver_package.look(driver_package.source_of(given), given)
