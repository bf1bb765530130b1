# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of drivers and firmware: .run files made with the real makeself, with the command line Huawei's have."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from . import driver, firmware
from .tools import BuildError, run, unless_made

VERSIONS = ("25.5.0", "25.5.1")
MAKESELF_HEADERS = ("/usr/share/makeself/makeself-header.sh", "/usr/lib/makeself/makeself-header.sh")

# Huawei's packages have a header of their own: what it does not know goes to the installer, --extract is --target.
_UNKNOWN = """\techo Unrecognized flag : "\\$1" >&2
	MS_Help
	exit 1
"""
_TO_INSTALLER = """\tinstaller_args="\\$installer_args \\$1"
	shift
"""
_EXTRACT = """    --extract=*)
	keep=y
	targetdir="\\${1#--extract=}"
	shift
	;;
    --target)
"""


def make_packages(directory: Path, versions: tuple[str, ...] = VERSIONS, fault: str = "", kernel: str = os.uname().release) -> None:
    """Make the packages of `versions` for `kernel` in `directory`, except those that are up to date; with `fault`, bad ones."""
    for product in driver.PRODUCTS:
        for version in versions:
            name = f"Ascend-hdk-{product.chip}-npu-driver_{version}_linux-{_machine()}.run"
            unless_made(
                directory / name,
                driver.key() + Path(__file__).read_text(encoding="utf-8") + fault + kernel,
                functools.partial(_make, product, version, fault, kernel),
            )


def make_firmware_packages(directory: Path) -> None:
    """Make the packages of all firmware in `directory`, except those that are up to date."""
    for product in driver.PRODUCTS:
        for release in firmware.RELEASES:
            unless_made(
                directory / f"Ascend-hdk-{product.chip}-npu-firmware_{release.version}.run",
                firmware.key() + Path(__file__).read_text(encoding="utf-8"),
                functools.partial(_make_firmware, product.chip, release),
            )


def _make(product: driver.Product, version: str, fault: str, kernel: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work, "tree")
        driver.make_tree(product, version, tree, fault, kernel)
        _pack(tree, target, "DRIVER", "driver/script")


def _make_firmware(chip: str, release: firmware.Release, target: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work, "tree")
        firmware.make_tree(chip, release, tree)
        _pack(tree, target, "FIRMWARE", "firmware/script")


def _pack(tree: Path, target: Path, title: str, script: str) -> None:
    """Make a .run of the directory `tree`; `script`: where in it help.info and install.sh are."""
    with tempfile.TemporaryDirectory() as work:
        header = Path(work, "header.sh")
        header.write_text(_header(), encoding="utf-8")
        run(
            "makeself",
            "--header",
            header,
            "--gzip",
            "--complevel",
            "4",
            "--nomd5",
            "--sha256",
            "--nooverwrite",
            "--chown",
            "--tar-format",
            "gnu",
            "--tar-quietly",
            "--tar-extra",
            "--numeric-owner --owner=0 --group=0 --sort=name --mtime=@0",
            "--packaging-date",
            "simulated",
            "--help-header",
            tree / script / "help.info",
            tree,
            target,
            f"ASCEND {title} RUN PACKAGE",
            f"./{script}/install.sh",
        )
        target.chmod(0o755)


def _header() -> str:
    """makeself's header with the differences of Huawei's."""
    found = [Path(path) for path in MAKESELF_HEADERS if Path(path).exists()]
    if not found:
        raise BuildError("makeself is not there: install it")
    text = found[0].read_text(encoding="utf-8")
    for old, new in (
        (_UNKNOWN, _TO_INSTALLER),
        ("    --target)\n", _EXTRACT),
        ("    -q | --quiet)\n", '    -q | --quiet)\n\tinstaller_args="\\$installer_args --quiet"\n'),
        ('initargs="\\$@"\n', 'initargs="\\$@"\ninstaller_args=\n'),
        ('\\$scriptargs \\"\\\\\\$@\\""; res=', '\\$scriptargs \\$installer_args"; res='),
    ):
        if old not in text:
            raise BuildError(f"{found[0]} is not as expected; it has no\n{old}")
        text = text.replace(old, new)
    return text


def _machine() -> str:
    return run("uname", "-m").strip().replace("_", "-")
