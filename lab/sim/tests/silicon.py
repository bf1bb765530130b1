# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the silicon on a free port: npu-smi without a node."""

from __future__ import annotations

import atexit
import functools
import os
import socketserver
import subprocess
import tempfile
import threading
from pathlib import Path

from simbuild import driver

_WORK = tempfile.TemporaryDirectory()
atexit.register(_WORK.cleanup)


@functools.cache
def tree(version: str) -> Path:
    """Libraries and npu-smi of that version, compiled once."""
    target = Path(_WORK.name, version)
    driver.make_programs(version, target / "lib64", target / "tools")
    return target


class Silicon:
    """Answers every query with `reply`; runs npu-smi of a tree against itself, with device files in `devices`."""

    def __init__(self, tree: Path, devices: Path) -> None:
        self.tree, self.devices, self.reply = tree, devices, "result 0\nend\n"
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.rfile.readline()
                self.wfile.write(outer.reply.encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def has(self, *chips: dict[str, object], driver: str = "25.5.1", lines: str = "") -> None:
        """Say which chips there are (key and value as in the protocol), and make their device files."""
        for path in self.devices.iterdir():
            path.unlink()
        (self.devices / "davinci_manager").touch()
        self.reply = f"result 0\ndriver {driver}\nfirmware 7.8.0.6.201\n{lines}"
        for phy, chip in enumerate(chips):
            values = {"phy": phy, **chip}
            (self.devices / f"davinci{phy}").touch()
            self.reply += "chip " + " ".join(f"{k}={str(v).replace(' ', '~')}" for k, v in values.items()) + "\n"
        self.reply += "end\n"

    def environment(self) -> dict[str, str]:
        """What the driver's libraries read to find this silicon."""
        return {"NPUSIM_ADDRESS": "{}:{}".format(*self._server.server_address), "NPUSIM_DEV": str(self.devices)}

    def npu_smi(self, *arguments: str, found: bool = True) -> subprocess.CompletedProcess:
        """Run npu-smi; `found`: whether the loader is told where its libraries are."""
        return self.run("npu-smi", *arguments, found=found)

    def run(self, tool: str, *arguments: str, found: bool = True) -> subprocess.CompletedProcess:
        """Run a program of the driver; `found` as above."""
        libraries = f"{self.tree}/lib64/driver:{self.tree}/lib64/common" if found else ""
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries, **self.environment()}
        return subprocess.run(
            [self.tree / "tools" / tool, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=20
        )
