# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of bench/rollout.py: what they answer to our modules, and how long they take to reboot."""

from __future__ import annotations

import json
import pathlib
import socketserver
import threading
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.fleet.boot_loader import BootLoader
from support.fleet.hosts import KERNEL, NEW, OLD_RELEASE, release
from support.fleet.hosts import host as installed


class Host(BootLoader):
    """One that was installed with OLD, and is back ``seconds`` after it went down for a reboot. ``told(host)``: of each change."""

    def __init__(self, name: str, seconds: float, told: Callable[[Host], None]) -> None:
        super().__init__(name, OLD_RELEASE)
        self.boot_id, self.kernel, self.next_kernel = "boot-" + name, KERNEL, KERNEL
        self._seconds, self._told = seconds, told
        self._lock, self._booted = threading.Lock(), time.monotonic() - 10_000

    def since_boot(self) -> float:
        return time.monotonic() - self._booted

    def queued(self, boot_id: str, generation: int, release: str | None) -> None:
        threading.Timer(1.0, self._go_down).start()

    def _go_down(self) -> None:
        with self._lock:
            self.up = self.going_down = False
        self._told(self)
        threading.Timer(self._seconds, self._boot).start()

    def _boot(self) -> None:
        with self._lock:
            self.choose()
            self._booted = time.monotonic()
        self._told(self)

    def call(self, module: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """What the module says; None while the host is down."""
        with self._lock:
            if not self.up:
                return None
            try:
                return getattr(self, "_" + module.rpartition(".")[2])(arguments)
            except NpuError as exc:
                return {"failed": True, "msg": exc.message}

    def _ping(self, _arguments: dict[str, Any]) -> dict[str, Any]:
        return {"ping": "pong"}

    def _npu_facts(self, _arguments: dict[str, Any]) -> dict[str, Any]:
        facts = installed(self.name, loaded=self.driver)["facts"]
        facts["driver"]["good"] = self.good
        facts["upgrade"]["previous"] = self.previous
        return {"npu": dict(facts, boot_id=self.boot_id), "validation": {"valid": True, "checks": []}}

    def _npu_driver_stage(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"changed": True, "release": release(NEW, arguments["digest"])}

    def _npu_trial_boot(self, arguments: dict[str, Any]) -> dict[str, Any]:
        state, generation = arguments["state"], arguments.get("generation")
        if state == "rebooted":
            answer = self.reboot(arguments["boot_id"], generation, arguments.get("release"), arguments["refuse_held"])
            return dict(answer, changed=answer["queued"])
        if state == "confirmed":
            self.confirm(generation, arguments["release"], arguments["boot_id"])
        elif state == "withdrawn":
            self.withdraw(generation)
        return {"changed": state != "view", "view": self.answer(self.since_boot())}

    def _npu_validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return dict(self.validation(arguments.get("version")), changed=False)


class Hosts:
    """``with Hosts(path, hosts):`` they answer on the socket ``path``."""

    def __init__(self, path: pathlib.Path, hosts: dict[str, Host]) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                call = json.loads(self.rfile.readline())
                answer = hosts[call["host"]].call(call["module"], call["arguments"])
                self.wfile.write(json.dumps(answer).encode())

        self._server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
        self._server.daemon_threads, self._server.request_queue_size = True, 256

    def __enter__(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
