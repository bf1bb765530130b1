# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus and Alertmanager of the distribution's packages, on a node of the lab, with the agents and exporters of all NPU nodes."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import shlex
import tempfile
import urllib.parse
from collections.abc import Iterator
from typing import Any

import yaml

from support import debian
from support.lab.lab import Lab
from support.paths import CHECKOUT
from support.patience import PATIENCE

HOST = "cpu-a"  # reaches all pods
PLACE = "/run/lab-monitoring"
TEMPLATES = "/usr/share/prometheus/alertmanager"  # Debian's Alertmanager has this path in it
RULES = CHECKOUT / "roles" / "npu_node_agent" / "files" / "alerts.yml"
# What a test may have scraped besides the lab's own programs. Without it, the target is down.
SERVED = ("kube-state-metrics", "control-machine", "another-agent")
# Serves what is in PLACE, and keeps each body that is sent to it, one in a line.
_WEB = f"""
import http.server

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("{PLACE}/notices", "ab") as file:
            file.write(body + b"\\n")
        self.send_response(200)
        self.end_headers()

http.server.ThreadingHTTPServer(("127.0.0.1", 9990), lambda *a: Handler(*a, directory="{PLACE}")).serve_forever()
"""
_UNITS = {
    "web": f"python3 {PLACE}/web.py",
    "alertmanager": f"{PLACE}/prometheus-alertmanager --config.file={PLACE}/alertmanager.yml --storage.path={PLACE}/alerts"
    " --web.listen-address=127.0.0.1:9093 --cluster.listen-address=",
    "prometheus": f"{PLACE}/prometheus --config.file={PLACE}/prometheus.yml --storage.tsdb.path={PLACE}/data"
    " --web.listen-address=127.0.0.1:9090",
}


class Monitoring:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus answers now."""
        answer = self._lab.ssh(HOST, f"curl -sS 'http://127.0.0.1:9090/api/v1/query?query={urllib.parse.quote(expression)}'").stdout
        told = json.loads(answer)
        assert told["status"] == "success", (expression, told)
        return told["data"]["result"]

    def notices(self) -> list[dict[str, Any]]:
        """The alerts of all notifications so far."""
        text = self._lab.ssh(HOST, f"cat {PLACE}/notices 2>/dev/null", check=False).stdout
        return [alert for line in text.splitlines() if line for alert in json.loads(line)["alerts"]]

    def serve(self, name: str, text: str) -> None:
        """Have these metrics scraped, too. ``name``: one of SERVED."""
        assert name in SERVED
        self._lab.ssh(HOST, f"printf %s {shlex.quote(text)} >{PLACE}/.new && mv {PLACE}/.new {PLACE}/{name}")


@contextlib.contextmanager
def monitoring(lab: Lab, namespace: str) -> Iterator[Monitoring]:
    try:
        _stop(lab)
        lab.ssh(HOST, f"mkdir -p {PLACE}")
        with tempfile.TemporaryDirectory() as directory:
            for name, text in _files(lab, namespace).items():
                file = pathlib.Path(directory, name)
                file.write_text(text, encoding="utf-8")
                lab.copy(file, HOST, f"{PLACE}/{name}")
        for package in ("prometheus", "prometheus-alertmanager"):
            lab.copy(debian.file(package, f"usr/bin/{package}"), HOST, f"{PLACE}/{package}")
        lab.ssh(HOST, f"mkdir -p {TEMPLATES}")
        for name in ("default.tmpl", "email.tmpl"):
            lab.copy(debian.file("prometheus-alertmanager", f"{TEMPLATES[1:]}/{name}"), HOST, TEMPLATES)
        for unit, command in _UNITS.items():
            lab.ssh(HOST, f"systemd-run --collect --unit=lab-{unit} {command}")
        made = Monitoring(lab)
        ready = "curl -sSf http://127.0.0.1:9090/-/ready && curl -sSf http://127.0.0.1:9093/-/ready"
        lab.wait_for(lambda: lab.ssh(HOST, ready, check=False).returncode == 0, PATIENCE, "Prometheus and Alertmanager are ready")
        yield made
    finally:
        _stop(lab)


def _stop(lab: Lab) -> None:
    units = " ".join(f"lab-{unit}" for unit in _UNITS)
    lab.ssh(HOST, f"systemctl stop {units} 2>/dev/null; rm -rf {PLACE} {TEMPLATES.rpartition('/')[0]}")


def _files(lab: Lab, namespace: str) -> dict[str, str]:
    targets = []
    for pod in lab.pods(namespace):
        port = {"npu-node-agent": 9461, "npu-exporter": 8082}.get(_component(pod))
        if port and pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]:
            targets.append({"targets": [f"{pod['status']['podIP']}:{port}"], "labels": {"node": pod["spec"]["nodeName"]}})
    assert len(targets) >= 6, targets
    # Tests do not wait for minutes. The recorded times, in which each sample stands for a minute, are too long because of that.
    rules = re.sub(r"interval: \d+m", "interval: 2s", re.sub(r"for: \d+m", "for: 1s", RULES.read_text(encoding="utf-8")))
    prometheus = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
        "rule_files": [f"{PLACE}/alerts.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]},
        "scrape_configs": [
            {"job_name": "npu", "static_configs": targets},
            *(
                {"job_name": name, "metrics_path": f"/{name}", "static_configs": [{"targets": ["127.0.0.1:9990"]}]}
                for name in SERVED
            ),
        ],
    }
    alertmanager = {
        "route": {"receiver": "web", "group_wait": "1s", "group_interval": "1s", "group_by": ["..."]},
        "receivers": [{"name": "web", "webhook_configs": [{"url": "http://127.0.0.1:9990/", "send_resolved": True}]}],
    }
    return {
        "web.py": _WEB,
        "alerts.yml": rules,
        "prometheus.yml": yaml.safe_dump(prometheus),
        "alertmanager.yml": yaml.safe_dump(alertmanager),
    }


def _component(pod: dict[str, Any]) -> str:
    """The DaemonSet of the pod; the exporter has one for each family."""
    owner = (pod["metadata"].get("ownerReferences") or [{}])[0].get("name", "")
    return next((name for name in ("npu-node-agent", "npu-exporter") if owner.startswith(name)), owner)
