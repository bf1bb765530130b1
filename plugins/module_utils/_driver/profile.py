# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile of a host: ``<HDK>-<chip>-<kernel>-<os>``, the tag of its driver image.

| uname -r                                       | os-release            | kernel key              | OS key       |
| ---------------------------------------------- | --------------------- | ----------------------- | ------------ |
| 6.6.0-145.0.4.135.oe2403sp3.x86_64             | openEuler 24.03 SP3   | 6.6.0-145.0.4.135       | oe2403sp3    |
| 5.10.0-60.18.0.50.oe2203.aarch64               | openEuler 22.03       | 5.10.0-60.18.0.50       | oe2203       |
| 4.19.90-2112.8.0.0131.oe1.aarch64              | openEuler 20.03 SP3   | 4.19.90-2112.8.0.0131   | oe2003sp3    |
| 4.19.90-52.22.v2207.ky10.aarch64               | Kylin V10             | 4.19.90-52.22.v2207     | ky10         |
| 6.6.0-32.7.v2505.ky11.x86_64                   | Kylin V11             | 6.6.0-32.7.v2505        | ky11         |
| 5.15.0-25-generic                              | Ubuntu 22.04          | 5.15.0-25-generic       | ubuntu22.04  |
| 6.1.0-18-amd64                                 | Debian 12             | 6.1.0-18-amd64          | debian12     |
| 5.14.0-427.13.1.el9_4.x86_64                   | Rocky Linux 9.4       | 5.14.0-427.13.1         | el9_4        |
| 4.19.90-vhulk2211.3.0.h1543.eulerosv2r10.x86_64 | EulerOS V2.0 SP10    | 4.19.90-vhulk2211.3.0.h1543 | eulerosv2r10 |
| 6.6.0 (no mark of a distribution)              | openEuler 24.03 SP3   | 6.6.0                   | oe2403sp3    |

Drivers are compiled for a specific kernel, so the distribution in the kernel release takes precedence over os-release.
"""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

# The suffix of an RPM distribution in the kernel release, after the machine has been removed.
_MARK = re.compile(r"\.(oe|ky|el|uelc?|ctl|an|al|tl|bclinux|eulerosv|fc|amzn|nfs|hce|kos)([0-9][0-9A-Za-z_]*)?\Z")
_MACHINE = re.compile(r"\.(x86_64|aarch64)\Z")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


def kernel_and_os(uname_release, os_release):
    """The kernel key and the OS key of the profile, from ``uname -r`` and the fields of /etc/os-release (a dict)."""
    kernel = _MACHINE.sub("", uname_release.strip())
    mark = _MARK.search(kernel)
    if not mark:
        return _legal(kernel), _os_key(os_release)
    os_key = mark.group(0)[1:]
    if os_key == "oe1":
        # All service packs of openEuler 20.03 have the same suffix.
        os_key = _os_key(os_release) if os_release.get("ID", "").lower() == "openeuler" else os_key
    return _legal(kernel[: mark.start()]), _legal(os_key)


def of_other_kernel(uname_release, os_key):
    """The kernel key and the OS key for another kernel of a host whose running one has the OS key ``os_key``."""
    kernel_key, own = kernel_and_os(uname_release, {})
    # Without a mark, or with that of all service packs of openEuler 20.03, only os-release tells, which made ``os_key``.
    return kernel_key, os_key if own in ("linux", "oe1") else own


def image_profile(version, family_key, kernel_key, os_key):
    """``<HDK>-<chip>-<kernel>-<os>`` as an image tag; raises NpuError if it is not a valid tag."""
    return profile_tag(version, "%s-%s-%s" % (family_key, kernel_key, os_key))


def profile_tag(version, profile):
    """The tag of ``version`` for ``profile`` (``<chip>-<kernel>-<os>``); raises NpuError if it is not a valid tag."""
    tag = "%s-%s" % (version, profile)
    if not _TAG.match(tag):
        raise NpuError(
            "%r is not a valid image tag (at most 128 letters, digits, '_', '.' and '-', not starting with '.' or '-'). Set "
            "npu_driver_profile to the <chip>-<kernel>-<os> in the tags of your images, or npu_driver_image to a complete reference"
            % tag
        )
    return tag


def parse_os_release(text):
    """The fields of an os-release file as a dict of str."""
    fields = {}
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith("#"):
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            fields[key] = re.sub(r"\\([\"'$`\\])", r"\1", value)
    return fields


def _os_key(os_release):
    """The OS key from os-release alone, in the form of the distribution's kernel suffix if it has one."""
    name = os_release.get("ID", "").lower()
    version = os_release.get("VERSION_ID", "").lower()
    if name == "openeuler":
        # VERSION is "24.03 (LTS-SP3)", "20.03 (LTS)" or "22.03 LTS_SP4"
        service_pack = re.search(r"sp([0-9]+)", os_release.get("VERSION", "").lower())
        return _legal("oe%s%s" % (version.replace(".", ""), "sp" + service_pack.group(1) if service_pack else ""))
    if name == "kylin":
        return _legal("ky%s" % version.lstrip("v"))
    return _legal(name + version) or "linux"


def _legal(text):
    """``text`` with each sequence of characters that are not valid in tags replaced by one underscore."""
    return _ILLEGAL.sub("_", text)


def read_os_release(fs=""):
    """The fields of os-release as a dict; empty if there is no such file."""
    text = read_text(fs + "/etc/os-release")
    if text is None:
        text = read_text(fs + "/usr/lib/os-release", "")
    return parse_os_release(text)
