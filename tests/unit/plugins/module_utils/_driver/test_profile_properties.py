# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tags of driver images and names of releases, for any kernel and any operating system."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.module_utils._driver import profile as driver_profile
from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases as driver_releases
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import is_tag
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info
from hypothesis import example, given
from hypothesis import strategies as st

from support.properties import STRANGE, bounded, damaged, few, hostile_json, megabytes

OS_RELEASE = (
    'NAME="openEuler"\nVERSION="24.03 (LTS-SP3)"\nID="openEuler"\nVERSION_ID="24.03"\nPRETTY_NAME="openEuler 24.03 (LTS-SP3)"\n'
)
machines = st.sampled_from((".x86_64", ".aarch64", ""))
marks = st.sampled_from((".oe2403sp3", ".oe1", ".ky10", ".el9_4", ".eulerosv2r10", ".fc41", "-generic", ".el", ""))
kernels = st.from_regex(r"[3-7]\.[0-9]{1,2}\.[0-9]{1,3}-[0-9a-z._+-]{0,30}", fullmatch=True)
anything = st.one_of(st.text(max_size=40), st.text(STRANGE + "./-_", max_size=12))
releases = st.one_of(anything, st.tuples(kernels, marks, machines).map("".join))
words = st.one_of(anything, st.sampled_from(("openEuler", "kylin", "V10", "ubuntu", "22.04", "24.03 (LTS-SP3)", "")))
os_releases = st.fixed_dictionaries({}, optional={"ID": words, "VERSION_ID": words, "VERSION": words})
versions = st.one_of(anything, st.from_regex(r"[0-9]{2}\.[0-9]\.(rc)?[0-9]{1,2}", fullmatch=True))
digests = st.one_of(st.text("0123456789abcdef", min_size=12, max_size=64), anything).flatmap(
    lambda d: st.sampled_from((d, "sha256:" + d, "md5:" + d))
)
digits = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(versions, st.sampled_from(sorted({family.key for family in FAMILIES.values()})), releases, os_releases)
def test_a_profile_is_a_tag_or_refused(version, family, release, os_release):
    with bounded():
        kernel, system = driver_profile.kernel_and_os(release, os_release)
    assert re.fullmatch(r"[A-Za-z0-9_.-]*", kernel + system) and system
    try:
        tag = driver_profile.image_profile(version, family, kernel, system)
    except NpuError as exc:
        assert "is not a valid image tag" in exc.message
        assert not is_tag("%s-%s-%s-%s" % (version, family, kernel, system))
    else:
        assert is_tag(tag) and tag == "%s-%s-%s-%s" % (version, family, kernel, system)


@given(kernels, marks, machines, os_releases)
def test_the_machine_is_in_no_tag_and_the_kernel_is(kernel, mark, machine, os_release):
    key, system = driver_profile.kernel_and_os(kernel + mark + machine, os_release)
    assert (key, system) == driver_profile.kernel_and_os(kernel + mark, os_release)
    assert driver_profile.kernel_and_os(" %s\n" % (kernel + mark), os_release) == (key, system)
    assert key.startswith(driver_profile._legal(kernel.rpartition(".")[0]))


@given(versions, releases, digests)
def test_a_release_name_is_one_directory_or_refused(version, kernel, digest):
    layout = driver_releases.Layout("/var/lib/Ascend")
    try:
        name = layout.release_name(version, kernel, digest)
    except NpuError:
        return
    assert os.path.dirname(layout.release_path(name)) == "/var/lib/Ascend/releases"
    assert os.path.normpath(layout.release_path(name)) == layout.release_path(name)
    assert not name.startswith(".") and len(name.encode()) <= 255, "no file system takes it"
    # It tells what it was made of.
    assert name.partition("-")[0] == version and name.endswith("-" + digest.rpartition(":")[2][:12])
    assert name[len(version) + 1 : -13] == kernel


@given(kernels, st.integers(200, 300))
def test_a_release_name_that_no_file_system_takes_is_refused(kernel, length):
    kernel = kernel + "x" * (length - len(kernel))
    try:
        name = driver_releases.Layout.release_name("25.5.0", kernel, "a" * 64)
    except NpuError as exc:
        assert "valid directory name" in exc.message
    else:
        assert len(name) <= 255


@given(st.one_of(anything, st.sampled_from(("..", ".", "", "a/b", "/etc", "a\n", ".new-x", "a" * 300))))
@example("25.5.0-6.6.0-0123456789ab")
def test_no_name_leads_out_of_releases(name):
    layout = driver_releases.Layout("/var/lib/Ascend")
    try:
        path = layout.release_path(name)
    except NpuError:
        return
    assert os.path.dirname(os.path.normpath(path)) == layout.releases_dir


@given(
    st.one_of(
        anything,
        st.tuples(
            st.sampled_from(("", "/", "../", "releases/", "/x/releases/")), anything, st.sampled_from(("/driver", "", "/.."))
        ).map("".join),
    )
)
def test_a_link_names_a_release_or_none(value):
    value = value.replace("\0", "") or "x"
    with tempfile.TemporaryDirectory() as root:
        layout = driver_releases.Layout(root)
        try:
            os.symlink(value, os.path.join(root, "driver"))
        except (OSError, UnicodeEncodeError):
            return
        name = layout.target("driver")
        assert name is None or os.path.normpath(os.path.join(root, value)) == layout.tree(name)


MANIFEST = {"version": "25.5.0", "kernel": "k", "digest": "sha256:0", "files": {"a": "0" * 64}, "sizes": {"a": 1}}


@given(hostile_json(MANIFEST))
def test_a_manifest_is_read_or_the_release_is_not_complete(text):
    with tempfile.TemporaryDirectory() as root:
        layout = driver_releases.Layout(root)
        os.makedirs(layout.tree("r"))
        with open(os.path.join(layout.release_path("r"), "manifest.json"), "w", encoding="utf-8", errors="surrogatepass") as stream:
            stream.write(text)
        with bounded():
            manifest = layout.manifest("r")
            assert manifest is None or isinstance(manifest, dict)
            assert layout.is_complete("r") == (manifest is not None)
            assert layout.damage("r", thorough=True) is None or "release r" in layout.damage("r")


@given(st.one_of(damaged(st.just(OS_RELEASE), ("ID=", "'", '"', "\\", "#")), st.text()))
def test_os_release_is_read(text):
    with bounded():
        fields = driver_profile.parse_os_release(text)
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in fields.items())
    driver_profile.kernel_and_os("6.6.0", fields)


@few
@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z_]{0,6}", fullmatch=True), st.text("ab 1.'\"$`\\()", max_size=10), max_size=5))
def test_os_release_is_read_as_a_shell_reads_it(fields):
    """Which is how os-release(5) defines it."""
    fields = {"K" + key: value for key, value in fields.items()}
    text = "".join('%s="%s"\n' % (key, re.sub(r'(["$`\\])', r"\\\1", value)) for key, value in fields.items())
    script = text + "".join('printf "%%s\\n" "$%s"\n' % key for key in fields)
    shell = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    assert driver_profile.parse_os_release(text) == fields == dict(zip(fields, shell))


numbers = st.one_of(
    st.from_regex(r"[0-9]{1,3}(\.(rc|beta|alpha)?[0-9]{1,3}){0,4}", fullmatch=True),
    st.text("0123.rcbeta-_v", max_size=12),
    anything,
    st.just("9" * 5000),
)


@given(numbers, numbers, numbers)
def test_versions_have_an_order(x, y, z):
    with bounded():
        assert version_info.compare(x, x) == 0
        assert version_info.compare(x, y) == -version_info.compare(y, x)
        if version_info.compare(x, y) <= 0 and version_info.compare(y, z) <= 0:
            assert version_info.compare(x, z) <= 0
        assert version_info.in_range(x, x, x)


@given(
    st.one_of(damaged(st.just("Version=25.5.0\ncompatible_version_fw=[7.0.0,7.7.99]\n"), ("[", ",", "]", "=")), st.text()), numbers
)
def test_version_info_is_read(text, version):
    with bounded():
        info = version_info.parse(text)
        bounds = version_info.firmware_range(info)
        assert bounds is None or (len(bounds) == 2 and version_info.in_range(version, *bounds) in (True, False))


@few
@given(megabytes({"a", "9", ".", "=", "[", "\n", "ID=", '"', "\\", " ", "-", "Version=1\n"}))
def test_megabytes_are_read_in_time(text):
    with bounded():
        driver_profile.kernel_and_os(text, driver_profile.parse_os_release(text))
        version_info.firmware_range(version_info.parse(text))
        version_info.compare(text[:10000], "1")
        assert not is_tag(text)
