#!/usr/bin/env python3
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the simulated hardware, driver packages and images of the lab, or test them. See README.md."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

sys.dont_write_bytecode = True  # the lab's cache key is made of all files here

from simbuild import golang, images, package, tools  # noqa: E402


def build_rootfs(go: str, out: Path) -> None:
    """What is copied over a node's root."""
    target = out / "rootfs"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(tools.SOURCE / "rootfs", target, symlinks=True)
    programs = target / "usr" / "lib" / "npusim"
    golang.build(go, "npusim", programs / "npusim")
    tools.run(
        "gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", tools.SOURCE / "kernel.c", "-o", programs / "libkernel.so"
    )


def build(go: str, out: Path, jobs: int) -> None:
    """Build everything in `out`, except what is already up to date."""
    out.mkdir(parents=True, exist_ok=True)
    tasks: list[Callable[[], None]] = [
        lambda: build_rootfs(go, out),
        lambda: package.make_packages(out / "run"),
        lambda: package.make_firmware_packages(out / "run"),
        lambda: images.make_images(go, out / "images"),
    ]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for task in concurrent.futures.as_completed([pool.submit(task) for task in tasks]):
            task.result()


def test(go: str) -> None:
    """Go's tests and the tests in tests/."""
    print(golang.test(go), end="")
    tools.run(
        sys.executable, "-B", "-m", "unittest", "discover", "-s", tools.SOURCE / "tests", "-t", tools.SOURCE, env={"NPUSIM_GO": go}
    )
    print("ok  \ttests/")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="directory to build in")
    parser.add_argument("--driver", metavar="VERSION", help="build driver packages of this version in DIR, nothing else")
    parser.add_argument("--kernel", default=os.uname().release, help="kernel of that driver (default: the running one)")
    parser.add_argument("--fault", default="", help="what is wrong with that driver, as in lab/fault")
    parser.add_argument(
        "--image", metavar="REFERENCE", help="build an image of upstream's Dockerfile in DIR as DIR.tar, nothing else"
    )
    parser.add_argument("--test", action="store_true", help="run the tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parts built at once (default: CPUs)")
    parser.add_argument("--go", default=shutil.which("go") or "go", help="Go compiler (default: from PATH)")
    options = parser.parse_args()
    if not options.out and not options.test:
        parser.error("--out or --test is needed")
    try:
        if options.test:
            test(options.go)
        if options.image and options.out:
            out = options.out.resolve()
            images.make_upstream_image(out, options.image, out.parent / "base", out.with_suffix(".tar"))
        elif options.driver and options.out:
            package.make_packages(options.out.resolve(), (options.driver,), options.fault, options.kernel)
        elif options.out:
            build(options.go, options.out.resolve(), options.jobs)
    except tools.BuildError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
