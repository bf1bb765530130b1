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
    def __init__(self, lab: Lab, namespace: str) -> None:
        self._lab, self._namespace = lab, namespace

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus answers now."""
        return self._ask("query", query=expression)

    def query_range(self, expression: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """What Prometheus answers for each ``step`` seconds between two times, seconds since 1970."""
        return self._ask("query_range", query=expression, start=begin, end=end, step=step)

    def _ask(self, what: str, **parameters: str | float) -> list[dict[str, Any]]:
        address = f"http://127.0.0.1:9090/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        told = json.loads(self._lab.ssh(HOST, f"curl -sS {shlex.quote(address)}").stdout)
        assert told["status"] == "success", (parameters, told)
        return told["data"]["result"]

    def look_for_pods(self) -> None:
        """Scrape the agents and exporters that there are now; a reboot gives them other addresses."""
        self._write("targets.json", json.dumps(_targets(self._lab, self._namespace)))

    def notices(self) -> list[dict[str, Any]]:
        """The alerts of all notifications so far."""
        text = self._lab.ssh(HOST, f"cat {PLACE}/notices 2>/dev/null", check=False).stdout
        return [alert for line in text.splitlines() if line for alert in json.loads(line)["alerts"]]

    def serve(self, name: str, text: str) -> None:
        """Have these metrics scraped, too. ``name``: one of SERVED."""
        assert name in SERVED
        self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        self._lab.ssh(HOST, f"printf %s {shlex.quote(text)} >{PLACE}/.new && mv {PLACE}/.new {PLACE}/{name}")


@contextlib.contextmanager
def monitoring(lab: Lab, namespace: str) -> Iterator[Monitoring]:
    try:
        _stop(lab)
        lab.ssh(HOST, f"mkdir -p {PLACE}")
        with tempfile.TemporaryDirectory() as directory:
            for name, text in _files().items():
                file = pathlib.Path(directory, name)
                file.write_text(text, encoding="utf-8")
                lab.copy(file, HOST, f"{PLACE}/{name}")
        assert len(_targets(lab, namespace)) >= 6
        made = Monitoring(lab, namespace)
        made.look_for_pods()
        for package in ("prometheus", "prometheus-alertmanager"):
            lab.copy(debian.file(package, f"usr/bin/{package}"), HOST, f"{PLACE}/{package}")
        lab.ssh(HOST, f"mkdir -p {TEMPLATES}")
        for name in ("default.tmpl", "email.tmpl"):
            lab.copy(debian.file("prometheus-alertmanager", f"{TEMPLATES[1:]}/{name}"), HOST, TEMPLATES)
        for unit, command in _UNITS.items():
            lab.ssh(HOST, f"systemd-run --collect --unit=lab-{unit} {command}")
        ready = "curl -sSf http://127.0.0.1:9090/-/ready && curl -sSf http://127.0.0.1:9093/-/ready"
        lab.wait_for(lambda: lab.ssh(HOST, ready, check=False).returncode == 0, PATIENCE, "Prometheus and Alertmanager are ready")
        yield made
    finally:
        _stop(lab)


def _stop(lab: Lab) -> None:
    units = " ".join(f"lab-{unit}" for unit in _UNITS)
    lab.ssh(HOST, f"systemctl stop {units} 2>/dev/null; rm -rf {PLACE} {TEMPLATES.rpartition('/')[0]}")


def _targets(lab: Lab, namespace: str) -> list[dict[str, Any]]:
    targets = []
    for pod in lab.pods(namespace):
        port = {"npu-node-agent": 9461, "npu-exporter": 8082}.get(_component(pod))
        if port and pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]:
            targets.append({"targets": [f"{pod['status']['podIP']}:{port}"], "labels": {"node": pod["spec"]["nodeName"]}})
    return targets


def _files() -> dict[str, str]:
    # Tests do not wait for minutes. The recorded times, in which each sample stands for a minute, are too long because of that.
    rules = re.sub(r"interval: \d+m", "interval: 2s", re.sub(r"for: \d+m", "for: 1s", RULES.read_text(encoding="utf-8")))
    prometheus = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
        "rule_files": [f"{PLACE}/alerts.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]},
        "scrape_configs": [
            {"job_name": "npu", "file_sd_configs": [{"files": [f"{PLACE}/targets.json"]}]},
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


def of_nodes(nodes: list[dict[str, Any]]) -> str:
    """These Nodes as kube-state-metrics shows them."""
    lines = []
    for node in nodes:
        name, labels = node["metadata"]["name"], node["metadata"]["labels"]
        shown = "".join(f',label_{_clean(key)}="{value}"' for key, value in labels.items() if key.startswith("npu."))
        lines.append(f'kube_node_labels{{node="{name}"{shown}}} 1')
        lines.append(f'kube_node_spec_unschedulable{{node="{name}"}} {int(bool(node["spec"].get("unschedulable")))}')
        for one in node["status"]["conditions"]:
            for status in ("True", "False", "Unknown"):
                told = f'node="{name}",condition="{one["type"]}",status="{status.lower()}"'
                lines.append(f"kube_node_status_condition{{{told}}} {int(one['status'] == status)}")
    return "\n".join(lines) + "\n"


def _clean(key: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in key)


def _component(pod: dict[str, Any]) -> str:
    """The DaemonSet of the pod; the exporter has one for each family."""
    owner = (pod["metadata"].get("ownerReferences") or [{}])[0].get("name", "")
    return next((name for name in ("npu-node-agent", "npu-exporter") if owner.startswith(name)), owner)
