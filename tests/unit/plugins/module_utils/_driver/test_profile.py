# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._driver import profile as driver_profile
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

OPENEULER_2403_SP3 = 'NAME="openEuler"\nVERSION="24.03 (LTS-SP3)"\nID="openEuler"\nVERSION_ID="24.03"\n'
OPENEULER_2203_SP4 = 'VERSION="22.03 (LTS-SP4)"\nID="openEuler"\nVERSION_ID="22.03"\n'
OPENEULER_2003 = 'VERSION="20.03 (LTS)"\nID="openEuler"\nVERSION_ID="20.03"\n'
OPENEULER_2003_SP3 = 'VERSION="20.03 (LTS-SP3)"\nID="openEuler"\nVERSION_ID="20.03"\n'
KYLIN_V10 = 'NAME="Kylin Linux Advanced Server"\nVERSION="V10 (Lance)"\nID="kylin"\nVERSION_ID="V10"\n'
KYLIN_V11 = 'VERSION="V11 (Swan25)"\nID="kylin"\nVERSION_ID="V11"\n'
UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="22.04"\nVERSION="22.04.4 LTS (Jammy Jellyfish)"\nID=ubuntu\n'
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n'
ROCKY = 'ID="rocky"\nVERSION_ID="9.4"\n'
CENTOS = 'ID="centos"\nVERSION_ID="7"\n'
EULEROS = 'VERSION="2.0 (SP10)"\nID="euleros"\nVERSION_ID="2.0"\n'
CTYUNOS = 'ID="ctyunos"\nVERSION_ID="23.01"\n'
UOS = 'ID="uos"\nVERSION_ID="20"\n'
BCLINUX = 'ID="bclinux"\nVERSION_ID="21.10"\n'


@pytest.mark.parametrize(
    "uname, os_release, kernel, os_key",
    [
        ("6.6.0-145.0.4.135.oe2403sp3.x86_64", OPENEULER_2403_SP3, "6.6.0-145.0.4.135", "oe2403sp3"),
        ("6.6.0-145.0.4.135.oe2403sp3.aarch64", OPENEULER_2403_SP3, "6.6.0-145.0.4.135", "oe2403sp3"),
        ("6.6.0-28.0.0.34.oe2403.aarch64", OPENEULER_2403_SP3, "6.6.0-28.0.0.34", "oe2403"),
        ("5.10.0-216.0.0.115.oe2203sp4.x86_64", OPENEULER_2203_SP4, "5.10.0-216.0.0.115", "oe2203sp4"),
        ("5.10.0-60.18.0.50.oe2203.aarch64", "", "5.10.0-60.18.0.50", "oe2203"),
        ("4.19.90-2003.4.0.0036.oe1.aarch64", OPENEULER_2003, "4.19.90-2003.4.0.0036", "oe2003"),
        ("4.19.90-2112.8.0.0131.oe1.aarch64", OPENEULER_2003_SP3, "4.19.90-2112.8.0.0131", "oe2003sp3"),
        ("4.19.90-2312.1.0.0255.oe2003sp4.x86_64", OPENEULER_2003, "4.19.90-2312.1.0.0255", "oe2003sp4"),
        ("4.19.90-52.22.v2207.ky10.aarch64", KYLIN_V10, "4.19.90-52.22.v2207", "ky10"),
        ("4.19.90-24.4.v2101.ky10.x86_64", KYLIN_V10, "4.19.90-24.4.v2101", "ky10"),
        ("6.6.0-32.7.v2505.ky11.x86_64", KYLIN_V11, "6.6.0-32.7.v2505", "ky11"),
        ("5.15.0-25-generic", UBUNTU, "5.15.0-25-generic", "ubuntu22.04"),
        ("6.5.0-18-generic", UBUNTU, "6.5.0-18-generic", "ubuntu22.04"),
        ("6.8.0-1010-raspi", UBUNTU, "6.8.0-1010-raspi", "ubuntu22.04"),
        ("6.1.0-18-amd64", DEBIAN, "6.1.0-18-amd64", "debian12"),
        ("6.1.0-18-cloud-arm64", DEBIAN, "6.1.0-18-cloud-arm64", "debian12"),
        ("5.14.0-427.13.1.el9_4.x86_64", ROCKY, "5.14.0-427.13.1", "el9_4"),
        ("3.10.0-1160.el7.x86_64", CENTOS, "3.10.0-1160", "el7"),
        (
            "4.19.90-vhulk2211.3.0.h1543.eulerosv2r10.x86_64",
            EULEROS,
            "4.19.90-vhulk2211.3.0.h1543",
            "eulerosv2r10",
        ),
        ("5.10.0-136.12.0.86.ctl3.aarch64", CTYUNOS, "5.10.0-136.12.0.86", "ctl3"),
        ("4.19.90-2211.5.0.0178.22.uel20.x86_64", UOS, "4.19.90-2211.5.0.0178.22", "uel20"),
        ("4.19.90-2107.6.0.0192.8.oe1.bclinux.aarch64", BCLINUX, "4.19.90-2107.6.0.0192.8.oe1", "bclinux"),
        # No mark of a distribution: os-release counts, in the style of the marks.
        ("6.6.0", OPENEULER_2403_SP3, "6.6.0", "oe2403sp3"),
        ("6.6.0-145.0.4.135", OPENEULER_2003, "6.6.0-145.0.4.135", "oe2003"),
        ("6.6.0-custom", KYLIN_V10, "6.6.0-custom", "ky10"),
        ("6.18.44-fc-v595", DEBIAN, "6.18.44-fc-v595", "debian12"),
        ("5.10.0+", DEBIAN, "5.10.0_", "debian12"),
        ("6.6.0~rc1 build#2", "", "6.6.0_rc1_build_2", "linux"),
        ("6.6.0", "ID=arch\n", "6.6.0", "arch"),
    ],
)
def test_kernel_and_os(uname, os_release, kernel, os_key):
    assert driver_profile.kernel_and_os(uname, driver_profile.parse_os_release(os_release)) == (kernel, os_key)


def test_the_tag_of_the_contract():
    kernel, os_key = driver_profile.kernel_and_os("6.6.0-145.0.4.135.oe2403sp3.x86_64", {})
    assert driver_profile.image_profile("25.5.0", "910b", kernel, os_key) == "25.5.0-910b-6.6.0-145.0.4.135-oe2403sp3"


def test_given_profile():
    assert driver_profile.profile_tag("25.5.0", "a2-mykernel") == "25.5.0-a2-mykernel"


@pytest.mark.parametrize(
    "version, family, kernel",
    [("25.5.0", "910b", "k" * 120), ("25.5/0", "910b", "6.6"), ("-25", "910b", "6.6"), ("", "", "")],
)
def test_what_cannot_be_a_tag_is_refused_with_the_way_out(version, family, kernel):
    with pytest.raises(NpuError, match="npu_driver_profile"):
        driver_profile.image_profile(version, family, kernel, "oe2403")


def test_os_release_syntax():
    text = '# comment\nID=\'debian\'\nNAME="A \\"B\\" \\$C"\nbroken\n\nEMPTY=\n'
    assert driver_profile.parse_os_release(text) == {"ID": "debian", "NAME": 'A "B" $C', "EMPTY": ""}
