# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The silicon of a node in a directory: the real daemon, a driver and packages, but no node around them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from simbuild import driver, firmware, golang, package

_WORK = tempfile.TemporaryDirectory()
atexit.register(_WORK.cleanup)
GO = os.environ.get("NPUSIM_GO") or shutil.which("go")
CHIP = "910b"
PATIENCE = 30
# As in playbooks of Huawei's; the user is one that every machine has.
INSTALL = ("--nox11", "--quiet", "--install-username=root", "--install-usergroup=root")


@functools.cache
def daemon() -> Path:
    """The program npusim, compiled once."""
    target = Path(_WORK.name, "npusim")
    golang.build(GO or "go", "npusim", target)
    return target


@functools.cache
def driver_tree(version: str) -> Path:
    """What is in a driver package of that version, made once."""
    target = Path(_WORK.name, f"driver-{version}")
    product = next(product for product in driver.PRODUCTS if product.chip == CHIP)
    driver.make_tree(product, version, target)
    return target / "driver"


@functools.cache
def firmware_packages() -> dict[str, Path]:
    """The firmware packages by version, made once."""
    package.make_firmware_packages(Path(_WORK.name, "run"))
    name = "Ascend-hdk-{}-npu-firmware_{}.run"
    return {release.version: Path(_WORK.name, "run", name.format(CHIP, release.version)) for release in firmware.RELEASES}


def can_make_devices() -> bool:
    """Whether this process may make device nodes, and open them."""
    path = Path(_WORK.name, "device")
    try:
        os.mknod(path, 0o020600, os.makedev(240, 250))
        path.open("rb").close()
    except PermissionError:
        return False
    except OSError:
        pass  # ENXIO: no driver has this number
    return True


class Node:
    """A node with 910B; `switch_on` and `switch_off` are its power."""

    def __init__(self, root: Path, chips: int) -> None:
        self.root = root
        self._daemon: subprocess.Popen | None = None
        for name in ("etc/npusim/faults", "run/npusim/faults", "dev", "var/log"):
            (root / name).mkdir(parents=True)
        functions = [{"address": f"0000:c{i + 1}:00.0", "device": "0xd802"} for i in range(chips)]
        (root / "etc/npusim/hardware.json").write_text(json.dumps({"functions": functions}), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = "{}:{}".format(*free.getsockname())

    def switch_on(self, version: str = "25.5.0", keep: bool = False) -> None:
        """Boot, with that driver. "": with none. `keep`: it is no boot, the daemon starts again."""
        if not keep:
            shutil.rmtree(self.root / "run")
            (self.root / "run/npusim/faults").mkdir(parents=True)
        (self.root / "run/npusim/control.sock").unlink(missing_ok=True)
        self._daemon = subprocess.Popen(
            [daemon(), "daemon"],
            env={**self._environment(), "NPUSIM_DELAY": "0"},
            stderr=subprocess.DEVNULL,
        )
        self.wait_for(lambda: (self.root / "run/npusim/control.sock").exists())
        if keep:
            return
        shutil.rmtree(self.root / "usr/local/Ascend/driver", ignore_errors=True)
        if version:
            tree = driver_tree(version)
            shutil.copytree(tree, self.root / "usr/local/Ascend/driver")
            libraries = self.root / "usr/local/Ascend/driver/lib64"
            (libraries / "libdcmi.so").rename(libraries / "driver/libdcmi.so")
            for module in _in_order(tree / "host"):
                self._run(daemon(), "insmod", module)

    def switch_off(self) -> None:
        """Cut the power."""
        if self._daemon:
            self._daemon.kill()
            self._daemon.wait()
            self._daemon = None

    def restart(self, version: str = "25.5.0") -> None:
        """Cut the power and boot."""
        self.switch_off()
        self.switch_on(version)

    def fault(self, kind: str, words: str = "") -> None:
        """Break something, as lab/fault does."""
        (self.root / "etc/npusim/faults" / kind).write_text(words, encoding="ascii")

    def repair(self, kind: str) -> None:
        """End a fault."""
        (self.root / "etc/npusim/faults" / kind).unlink()

    def flash(self, *arguments: str) -> list[dict]:
        """What `npusim flash` prints; each chip's flash."""
        text = self._run(daemon(), "flash", *arguments).stdout
        return json.loads(text) if text else []

    def tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess:
        """Run a program of the installed driver."""
        libraries = self.root / "usr/local/Ascend/driver/lib64"
        environment = {"LD_LIBRARY_PATH": f"{libraries}/driver:{libraries}/common"}
        return self._run(self.root / "usr/local/Ascend/driver/tools" / name, *arguments, environment=environment)

    def start(self, path: Path, *arguments: str) -> subprocess.Popen:
        """Begin to run a package, and forget what it prints."""
        return subprocess.Popen(
            ["bash", path, *arguments],
            env=self._environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.root,
            start_new_session=True,
        )

    def install(self, version: str, *flags: str) -> tuple[int, str]:
        """Run the firmware package of that version: its exit status and its output."""
        result = self._run("bash", firmware_packages()[version], *INSTALL, *(flags or ("--full",)))
        return result.returncode, result.stdout + result.stderr

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` is true."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("it does not come")
            time.sleep(0.02)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "NPUSIM_ROOT": str(self.root),
            "NPUSIM_ADDRESS": self._address,
            "NPUSIM_DEV": str(self.root / "dev"),
            "NPUSIM_CONTROL": str(self.root / "run/npusim/control.sock"),
        }

    def _run(self, *command: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            list(map(str, command)),
            env={**self._environment(), **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )


def _in_order(directory: Path) -> list[Path]:
    product = next(product for product in driver.PRODUCTS if product.chip == CHIP)
    return [directory / f"{name}.ko" for name in product.modules]
