# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next kernel, from files as grub-mkconfig, grub-reboot and kernel-install write them."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels

OLD, NEW = "6.6.0-145.0.4.135.oe2403sp3.aarch64", "6.6.0-150.0.0.139.oe2403sp3.aarch64"

# As grub-mkconfig begins it; %s is what GRUB_DEFAULT asks for.
HEAD = """\
set pager=1
if [ -f ${config_directory}/grubenv ]; then
  load_env -f ${config_directory}/grubenv
elif [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="%s"
fi
function load_video {
  insmod all_video
}
"""
ENTRY = """\
menuentry 'openEuler (%(kernel)s) 24.03 (LTS-SP3)' --class openeuler --class os $menuentry_id_option 'gnulinux-%(kernel)s-advanced' {
\tload_video
\tif [ x$feature_platform_search_hint = xy ]; then
\t  search --no-floppy --fs-uuid --set=root 1234
\tfi
\techo\t'Loading Linux %(kernel)s ...'
\tlinux\t/vmlinuz-%(kernel)s root=/dev/mapper/root ro quiet
\tinitrd /initramfs-%(kernel)s.img
}
"""
FIRMWARE = """\
if [ "$grub_platform" = "efi" ]; then
\tmenuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
\t\tfwsetup
\t}
fi
"""

# 08_fallback_counting of Fedora's GRUB, which openEuler's and Kylin's are made of. It comes after HEAD.
FALLBACK = """\
insmod increment
if [ -n "${boot_counter}" -a "${boot_success}" = "0" ]; then
  if [ "${boot_counter}" = "0" -o "${boot_counter}" = "-1" ]; then
    set default=1
    set boot_counter=-1
  else
    decrement boot_counter
  fi
  save_env boot_counter
fi
"""


def entries(*releases):
    return "".join(ENTRY % {"kernel": release} for release in releases)


def ubuntu(*releases):
    """The newest at the top, all of them in a submenu."""
    top = ENTRY.replace("-advanced", "-simple").replace("openEuler (%(kernel)s) 24.03 (LTS-SP3)", "Ubuntu") % {
        "kernel": releases[0]
    }
    inner = "".join("\t" + line + "\n" for line in entries(*releases).splitlines())
    return top + "submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced' {\n" + inner + "}\n"


@pytest.fixture
def boot(host):
    """Lay out a host with both kernels, and GRUB: its configuration, and the variables in grubenv."""

    def lay_out(text, place="/boot/grub2", default="${saved_entry}", installed=(OLD, NEW), **environment):
        for release in installed:
            os.makedirs(host.fs + "/lib/modules/" + release)
        host.write(place + "/grub.cfg", HEAD % default + text)
        lines = ["# GRUB Environment Block"] + ["%s=%s" % item for item in environment.items()]
        content = "\n".join(lines) + "\n"
        host.write(place + "/grubenv", content + "#" * (1024 - len(content)))
        return kernels.next_kernel(host.fs)

    return lay_out


@pytest.mark.parametrize(
    ("saved", "kernel"),
    [
        ("gnulinux-%s-advanced" % OLD, OLD),
        ("openEuler (%s) 24.03 (LTS-SP3)" % OLD, OLD),
        ("1", OLD),
        ("0", NEW),
        ("", NEW),
        ("\u00b2", NEW),
        # Of an entry that was removed: GRUB boots the first.
        ("gnulinux-5.10-advanced", NEW),
    ],
)
def test_the_saved_entry(boot, saved, kernel):
    assert boot(entries(NEW, OLD) + FIRMWARE, saved_entry=saved) == kernel


def test_an_entry_for_one_boot_counts_first(boot):
    assert boot(entries(NEW, OLD), saved_entry="0", next_entry="1") == OLD


def test_an_entry_for_one_boot_that_is_used_up(boot):
    assert boot(entries(NEW, OLD), saved_entry="1", next_entry="") == OLD


@pytest.mark.parametrize("environment", [{}, {"boot_success": "0"}, {"boot_success": "1", "boot_counter": "2"}])
def test_a_default_for_boots_that_fail_does_not_count(boot, environment):
    assert boot(FALLBACK + entries(NEW, OLD), saved_entry="0", **environment) == NEW


def test_while_boots_are_counted_the_next_kernel_is_unknown(boot):
    assert boot(FALLBACK + entries(NEW, OLD), saved_entry="0", boot_success="0", boot_counter="1") is None


def test_a_default_under_another_condition_is_unknown(boot):
    assert boot('if keystatus --shift; then\n  set default="1"\nfi\n' + entries(NEW, OLD), saved_entry="0") is None


@pytest.mark.parametrize(
    ("default", "kernel"),
    [
        ("0", NEW),
        ("1>1", OLD),
        ("gnulinux-advanced>gnulinux-%s-advanced" % OLD, OLD),
        ("Advanced options for Ubuntu>0", NEW),
        # A submenu is no kernel.
        ("1", None),
        ("1>1>0", None),
    ],
)
def test_a_default_in_the_configuration(boot, default, kernel):
    assert boot(ubuntu(NEW, OLD), place="/boot/grub", default=default) == kernel


def test_the_boot_loader_specification(boot, host):
    for release in (OLD, NEW, "0-rescue-abcd"):
        text = "title os\nversion %s\n\nlinux\t/vmlinuz-%s\n" % (release, release)
        host.write("boot/loader/entries/abcd-%s.conf" % release, text)
    assert boot("insmod blscfg\nblscfg\n" + FIRMWARE, saved_entry="abcd-" + OLD) == OLD
    host.write("boot/grub2/grubenv", "# GRUB Environment Block\n")
    assert kernels.next_kernel(host.fs) == NEW, "the highest version is the first"


def test_a_stub_in_the_efi_partition_is_passed_over(boot, host):
    os.makedirs(host.fs + "/sys/firmware/efi")
    host.write(
        "boot/efi/EFI/ubuntu/grub.cfg", "search.fs_uuid 1234 root\nset prefix=($root)'/boot/grub'\nconfigfile $prefix/grub.cfg\n"
    )
    assert boot(ubuntu(NEW, OLD), place="/boot/grub", default="0") == NEW


def test_the_efi_partition_counts_where_the_host_was_booted_by_efi(boot, host):
    assert boot(entries(NEW), place="/boot/efi/EFI/openEuler") is None
    os.makedirs(host.fs + "/sys/firmware/efi")
    assert kernels.next_kernel(host.fs) == NEW


def test_a_kernel_that_is_not_installed_is_not_believed(boot):
    assert boot(entries("../../etc", "$(reboot)"), installed=()) is None


@pytest.mark.parametrize("image", ["/boot/vmlinuz", "/vmlinuz-", "(hd0)/kernel.img"])
def test_an_image_without_a_release(boot, image):
    assert boot(entries(NEW).replace("/vmlinuz-" + NEW, image)) is None


def test_without_grub(host):
    assert kernels.next_kernel(host.fs) is None
    assert kernels.installed(host.fs) == []


def test_a_configuration_that_is_no_file_is_not_read(boot, host):
    os.makedirs(host.fs + "/boot/grub2")
    os.mkfifo(host.fs + "/boot/grub2/grub.cfg")
    assert boot(ubuntu(NEW, OLD), place="/boot/grub", default="0") == NEW


def test_a_huge_configuration_is_not_read(boot, monkeypatch):
    monkeypatch.setattr(kernels, "_MOST_BYTES", 100)
    assert boot(entries(NEW)) is None
