# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""npu_upgrade_alerts, asked of Prometheus itself: that of the distribution's package, which is not installed."""

from __future__ import annotations

import socket
import subprocess
import time

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.firing_alerts import FiringAlerts

from support import debian
from support.patience import PATIENCE


@pytest.mark.core
def test_a_real_prometheus_keeps_a_maintenance_from_beginning(tmp_path):
    rules = [{"alert": name, "expr": "vector(1)", **more} for name, more in (("CephDown", {}), ("NotYet", {"for": "1h"}))]
    (tmp_path / "rules.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "a", "interval": "1s", "rules": rules}]}), encoding="utf-8"
    )
    (tmp_path / "config.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"]}), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    command = [debian.file("prometheus", "usr/bin/prometheus"), f"--config.file={tmp_path}/config.yml"]
    command += [f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={address}"]
    with open(tmp_path / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:

            def fires(*names):
                try:
                    return FiringAlerts(f"http://{address}", names).ask()
                except NpuError as exc:
                    assert "refused" in exc.message or "503" in exc.message, exc.message
                    return None

            end = time.monotonic() + PATIENCE
            while fires("Ceph.*", "Other") != "the alert CephDown fires (npu_upgrade_alerts)":
                assert time.monotonic() < end and server.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
                time.sleep(0.2)
            # One that is pending, a part of a name, and a quote in a name.
            for name in ("NotYet", "Ceph", 'CephDown"\\d'):
                assert FiringAlerts(f"http://{address}", [name]).refusal() is None, name
            assert "it answers 400: " in str(FiringAlerts(f"http://{address}", ["a("]).refusal())
        finally:
            server.terminate()
