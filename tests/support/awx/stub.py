# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AWX's API as far as awx.awx uses it: a loopback HTTP server that keeps its objects in memory.

Status codes, field names and refusals are those of AWX 24.6.1 (awx/api/serializers.py, awx/api/views/__init__.py,
awx/main/models). It is stricter in one point: a field that AWX does not know and would leave aside is refused.

Every request that changes something is in ``changes``, tokens aside.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

from support.awx import rules as awx_rules

ENCRYPTED = "$encrypted$"
USER, PASSWORD, TOKEN = "admin", "the-password-of-admin", "the-token-of-admin"

# By list, the type of its objects and their fields: type, default (REQUIRED without one). "=name" refers to the list name.
REQUIRED = object()
_JOB_FIELDS = {
    "name": ("str", REQUIRED),
    "description": ("str", ""),
    "survey_enabled": ("bool", False),
    "allow_simultaneous": ("bool", False),
    "ask_limit_on_launch": ("bool", False),
    "ask_variables_on_launch": ("bool", False),
    "extra_vars": ("str", ""),
}
_ASKS = "diff_mode tags skip_tags job_type verbosity inventory credential execution_environment forks job_slice_count timeout"
KINDS = {
    "organizations": ("organization", {"name": ("str", REQUIRED), "description": ("str", "")}),
    "teams": ("team", {"name": ("str", REQUIRED), "organization": ("=organizations", REQUIRED)}),
    "users": ("user", {"username": ("str", REQUIRED)}),
    "labels": ("label", {"name": ("str", REQUIRED), "organization": ("=organizations", REQUIRED)}),
    "credential_types": (
        "credential_type",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "kind": ("str", REQUIRED),
            "inputs": ("dict", {}),
            "injectors": ("dict", {}),
        },
    ),
    "credentials": (
        "credential",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "organization": ("=organizations", None),
            "credential_type": ("=credential_types", REQUIRED),
            "inputs": ("dict", {}),
        },
    ),
    "execution_environments": (
        "execution_environment",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "organization": ("=organizations", None),
            "image": ("str", REQUIRED),
            "credential": ("=credentials", None),
            "pull": ("str", ""),
        },
    ),
    "projects": (
        "project",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "organization": ("=organizations", None),
            "scm_type": ("str", ""),
            "scm_url": ("str", ""),
            "scm_branch": ("str", ""),
            "credential": ("=credentials", None),
            "allow_override": ("bool", False),
        },
    ),
    "inventories": (
        "inventory",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "organization": ("=organizations", REQUIRED),
            "kind": ("str", ""),
            "host_filter": ("raw", None),
            "variables": ("str", ""),
        },
    ),
    "inventory_sources": (
        "inventory_source",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "inventory": ("=inventories", REQUIRED),
            "source": ("str", REQUIRED),
            "source_project": ("=projects", None),
            "source_path": ("str", ""),
            "credential": ("=credentials", None),
            "execution_environment": ("=execution_environments", None),
            "overwrite": ("bool", False),
            "overwrite_vars": ("bool", False),
            "update_on_launch": ("bool", False),
            "update_cache_timeout": ("int", 0),
        },
    ),
    "job_templates": (
        "job_template",
        {
            **_JOB_FIELDS,
            "job_type": ("str", "run"),
            "inventory": ("=inventories", None),
            "project": ("=projects", None),
            "playbook": ("str", ""),
            "execution_environment": ("=execution_environments", None),
            "forks": ("int", 0),
            "limit": ("str", ""),
            "verbosity": ("int", 0),
            "timeout": ("int", 0),
            "become_enabled": ("bool", False),
            "job_slice_count": ("int", 1),
            **{"ask_%s_on_launch" % name: ("bool", False) for name in _ASKS.split()},
        },
    ),
    "workflow_job_templates": ("workflow_job_template", {**_JOB_FIELDS, "organization": ("=organizations", None)}),
    "workflow_job_template_nodes": (
        "workflow_job_template_node",
        {
            "identifier": ("str", ""),
            "workflow_job_template": ("=workflow_job_templates", REQUIRED),
            "unified_job_template": ("=unified_job_templates", None),
            "extra_data": ("dict", {}),
            "all_parents_must_converge": ("bool", False),
        },
    ),
    "workflow_approval_templates": (
        "workflow_approval_template",
        {"name": ("str", REQUIRED), "description": ("str", ""), "timeout": ("int", 0)},
    ),
    "schedules": (
        "schedule",
        {
            "name": ("str", REQUIRED),
            "description": ("str", ""),
            "unified_job_template": ("=unified_job_templates", REQUIRED),
            "rrule": ("str", REQUIRED),
            "enabled": ("bool", True),
            "extra_data": ("dict", {}),
        },
    ),
}
UNIFIED = ("projects", "inventory_sources", "job_templates", "workflow_job_templates")
UNIQUE = {
    "organizations": ("name",),
    "users": ("username",),
    "execution_environments": ("name",),
    "credential_types": ("name", "kind"),
    "credentials": ("organization", "name", "credential_type"),
    "schedules": ("unified_job_template", "name"),
    "workflow_job_template_nodes": ("workflow_job_template", "identifier"),
    "inventory_sources": ("inventory", "name"),
}
EDGES = ("success_nodes", "failure_nodes", "always_nodes")
# By list, the lists that are associated with one of its objects.
SUBLISTS = {
    "job_templates": {"credentials": "credentials", "labels": "labels"},
    "workflow_job_templates": {"labels": "labels"},
    "workflow_job_template_nodes": dict.fromkeys(EDGES, "workflow_job_template_nodes"),
}
# By list, the roles that each of its objects has.
ROLES = {"job_templates": ("admin", "execute", "read"), "workflow_job_templates": ("admin", "execute", "read", "approval")}
# What an AWX without any objects has. Only the parts of the types that are needed here.
MANAGED_TYPES = (
    ("Machine", "ssh", ("username", "become_method"), ("password", "ssh_key_data", "become_password"), ()),
    ("OpenShift or Kubernetes API Bearer Token", "kubernetes", ("host",), ("bearer_token", "ssl_ca_cert"), ("verify_ssl",)),
    ("Source Control", "scm", ("username",), ("password",), ()),
    ("Container Registry", "registry", ("host", "username"), ("password",), ("verify_ssl",)),
    ("Vault", "vault", ("vault_id",), ("vault_password",), ()),
)


class Refused(Exception):
    """A 4xx answer."""

    def __init__(self, status, body):
        super().__init__(body)
        self.status, self.body = status, body


class AwxStub:
    """An AWX. ``with AwxStub() as awx``: it listens at ``awx.url``."""

    def __init__(self, playbooks=(), organizations=("Default",), project_status="successful"):
        self.objects = {kind: {} for kind in KINDS}
        self.associated = {}
        self.surveys = {}
        self.roles = {}  # number of a role -> (list, number of the object, name)
        self.granted = {}  # (number of a role, teams or users) -> numbers of those who have it
        self.changes = []
        self.playbooks = set(playbooks)
        self.project_status = project_status
        self.sessions = 0  # tokens that were made with the password and not deleted
        self._updating = set()
        self._last_id = 0
        self._lock = threading.Lock()
        for name in organizations:
            self._store("organizations", {"name": name, "description": ""})
        for name, kind, plain, secret, flags in MANAGED_TYPES:
            fields = [{"id": field, "type": "string"} for field in plain]
            fields += [{"id": field, "type": "string", "secret": True} for field in secret]
            fields += [{"id": field, "type": "boolean"} for field in flags]
            inputs = {"fields": fields}
            self._store(
                "credential_types",
                {"name": name, "description": "", "kind": kind, "inputs": inputs, "injectors": {}, "managed": True},
            )

    # --- for tests ---

    def names(self, kind):
        """The names of all objects of a list."""
        return sorted(entry.get("name") or entry.get("username") or entry["identifier"] for entry in self.objects[kind].values())

    def one(self, kind, name):
        """The object of that name, to be read or changed."""
        found = [entry for entry in self.objects[kind].values() if name in (entry.get("name"), entry.get("identifier"))]
        assert len(found) == 1, "%d %s called %r among %s" % (len(found), kind, name, self.names(kind))
        return found[0]

    def survey(self, name, kind="job_templates"):
        """The questions of a template's survey by variable."""
        return {item["variable"]: item for item in self.surveys.get(self.one(kind, name)["id"], {}).get("spec", [])}

    def linked(self, kind, name, sublist):
        """The names of what is associated with an object."""
        entry = self.one(kind, name)
        others = self.objects[SUBLISTS[kind][sublist]]
        return sorted(
            others[key].get("name") or others[key]["identifier"] for key in self.associated.get((entry["id"], sublist), [])
        )

    def roles_of(self, actors, number):
        """{(role, name of the object)} that a team or user has."""
        held = [role for (role, kind), numbers in self.granted.items() if kind == actors and number in numbers]
        return {(self.roles[role][2], self.objects[self.roles[role][0]][self.roles[role][1]]["name"]) for role in held}

    def add(self, kind, **fields):
        """An object that another user has made."""
        return self._create(kind, fields)

    # --- the server ---

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"awx": self}))
        self.url = "http://127.0.0.1:%d" % self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method, path, query, body):
        """(status, JSON) of a request below /api/v2/."""
        with self._lock:
            if method != "GET" and path[0] != "tokens":
                self.changes.append((method, "/".join(path), body))
            return self._answer(method, path, query, body)

    def _answer(self, method, path, query, body):
        if path[0] == "project_updates":
            self._updating.discard(int(path[1]))
            return 200, {"id": int(path[1]), "status": self.project_status, "failed": self.project_status != "successful"}
        if path[0] == "unified_job_templates" and len(path) == 1:
            return 200, self._list([(kind, entry) for kind in UNIFIED for entry in self.objects[kind].values()], query)
        if path[0] == "roles":
            return self._role(method, int(path[1]), path[2], query, body)
        if path[0] not in KINDS:
            raise Refused(404, {"detail": "The requested resource could not be found."})
        if len(path) == 1:
            if method == "POST":
                return 201, self._shown(path[0], self._create(path[0], body))
            return 200, self._list([(path[0], entry) for entry in self.objects[path[0]].values()], query)
        entry = self.objects[path[0]].get(int(path[1])) if path[1].isdigit() else self._named(path[0], unquote(path[1]))
        if entry is None:
            raise Refused(404, {"detail": "Not found."})
        if len(path) == 2:
            if method == "PATCH":
                self._update(path[0], entry, body)
            elif method == "DELETE":
                del self.objects[path[0]][entry["id"]]
                return 204, None
            return 200, self._shown(path[0], entry)
        return self._sub(method, path[0], entry, path[2], query, body)

    def _named(self, kind, url):
        """The object with that named URL, name++organization; or None."""
        name, _plus, organization = url.partition("++")
        owners = [number for number, entry in self.objects["organizations"].items() if entry["name"] == organization]
        found = self.objects[kind].values() if organization else ()
        return next(
            (entry for entry in found if entry["name"] == name and self._field(kind, entry, "organization") in owners), None
        )

    def _role(self, method, role, actors, query, body):
        """Who has a role."""
        if role not in self.roles or actors not in ("teams", "users"):
            raise Refused(404, {"detail": "Not found."})
        held = self.granted.setdefault((role, actors), [])
        if method == "GET":
            return 200, self._list([(actors, self.objects[actors][number]) for number in held], query)
        if body["id"] not in self.objects[actors]:
            raise Refused(400, {"msg": '"id" field must be an integer.'})
        (held.remove if body.get("disassociate") else held.append)(body["id"])
        return 204, None

    def _object_roles(self, kind, entry):
        """The roles of an object, as it shows them; they are made with it."""
        found = {}
        for name in ROLES[kind]:
            number = next((key for key, role in self.roles.items() if role == (kind, entry["id"], name)), None)
            if number is None:
                number = 10_000 + len(self.roles)
                self.roles[number] = (kind, entry["id"], name)
            found[name + "_role"] = {"id": number, "name": name}
        return found

    def _sub(self, method, kind, entry, name, query, body):
        if name == "survey_spec" and kind in ("job_templates", "workflow_job_templates"):
            if method == "GET":
                return 200, self.surveys.get(entry["id"], {})
            problem = awx_rules.survey_problem(body) if method == "POST" else None
            if problem:
                raise Refused(400, {"error": problem})
            self.surveys[entry["id"]] = body if method == "POST" else {}
            return 200, {}
        if name == "create_approval_template" and kind == "workflow_job_template_nodes" and method == "POST":
            template = self._create("workflow_approval_templates", body)
            entry["unified_job_template"] = template["id"]
            return 201, self._shown("workflow_approval_templates", template)
        if name not in SUBLISTS.get(kind, {}):
            raise Refused(404, {"detail": "The requested resource could not be found."})
        other, key = SUBLISTS[kind][name], (entry["id"], name)
        links = self.associated.setdefault(key, [])
        if method == "GET":
            return 200, self._list([(other, self.objects[other][link]) for link in links], query)
        if not isinstance(body.get("id"), int) or body["id"] not in self.objects[other]:
            raise Refused(400, {"msg": '"id" field must be an integer.'})
        if body.get("disassociate"):
            links.remove(body["id"])
        elif body["id"] not in links:
            self._check_link(kind, entry, name, body["id"])
            links.append(body["id"])
        return 204, None

    def _check_link(self, kind, entry, name, other):
        if name == "credentials":
            types = self.objects["credential_types"]
            held = [self.objects["credentials"][link]["credential_type"] for link in self.associated[entry["id"], name]]
            own = types[self.objects["credentials"][other]["credential_type"]]
            if own["id"] in held and own["kind"] != "vault":
                raise Refused(400, {"error": "Cannot assign multiple %s credentials." % own["name"]})
            if own["kind"] not in ("ssh", "vault", "cloud", "net", "kubernetes"):
                raise Refused(400, {"error": "Cannot assign a Credential of kind `%s`." % own["kind"]})
        if name in EDGES:
            links = {edge: self.associated.get((entry["id"], edge), []) for edge in EDGES if edge != name}
            if any(other in taken for taken in links.values()):
                raise Refused(400, {"Error": "Relationship not allowed."})
            if self._reaches(other, entry["id"]):
                raise Refused(400, {"Error": "Cycle detected."})

    def _reaches(self, start, end):
        children = [link for edge in EDGES for link in self.associated.get((start, edge), [])]
        return start == end or any(self._reaches(child, end) for child in children)

    # --- objects ---

    def _store(self, kind, entry):
        self._last_id += 1
        entry["id"] = self._last_id
        self.objects[kind][entry["id"]] = entry
        return entry

    def _create(self, kind, body):
        fields = KINDS[kind][1]
        missing = {
            name: ["This field is required."]
            for name, (_type, default) in fields.items()
            if default is REQUIRED and name not in body
        }
        if missing:
            raise Refused(400, missing)
        entry = {name: default for name, (_type, default) in fields.items() if default is not REQUIRED}
        entry.update(self._checked(kind, body))
        self._check(kind, entry, None)
        self._store(kind, entry)
        if kind == "projects":
            self._updating.add(entry["id"])
        return entry

    def _update(self, kind, entry, body):
        if entry.get("managed"):
            raise Refused(403, {"detail": "Modifications not allowed for managed credential types"})
        changed = self._checked(kind, body)
        if kind == "credentials" and "inputs" in changed:
            kept = [key for key, value in changed["inputs"].items() if value == ENCRYPTED]
            if set(kept) - set(entry["inputs"]):
                raise Refused(500, {"detail": "A server error has occurred."})
            kept = {key: entry["inputs"][key] for key in kept}
            changed["inputs"] = {**changed["inputs"], **kept}
        for fixed in ("workflow_job_template",) if kind == "workflow_job_template_nodes" else ():
            changed.pop(fixed, None)
        new = {**entry, **changed}
        self._check(kind, new, entry)
        if kind == "projects" and any(entry[name] != new[name] for name in ("scm_type", "scm_url", "scm_branch", "credential")):
            self._updating.add(entry["id"])
        entry.update(new)

    def _checked(self, kind, body):
        """The fields of a request with their types."""
        fields, result, errors = KINDS[kind][1], {}, {}
        for name, value in body.items():
            # Both are read-only, or derived. The modules send them nevertheless.
            if name in ("type", "managed") or (kind == "job_templates" and name == "organization"):
                continue
            if name not in fields:
                errors[name] = ["AWX would leave this field aside."]
                continue
            try:
                result[name] = self._value(fields[name][0], value)
            except (TypeError, ValueError) as error:
                errors[name] = [str(error)]
        if errors:
            raise Refused(400, errors)
        return result

    def _value(self, kind, value):
        if kind == "raw":
            return value
        if kind == "str":
            # AWX takes null for an empty text.
            if not isinstance(value, (str, type(None))):
                raise ValueError("Not a valid string.")
            return value or ""
        if kind == "bool":
            if not isinstance(value, bool):
                raise ValueError("Must be a valid boolean.")
            return value
        if kind == "int":
            return int(value)
        if kind == "dict":
            if not isinstance(value, dict):
                raise ValueError("Not a dictionary.")
            return value
        if value is not None and self._referred(kind[1:], value) is None:
            raise ValueError('Invalid pk "%s" - object does not exist.' % value)
        return value

    def _referred(self, kind, key):
        kinds = UNIFIED + ("workflow_approval_templates",) if kind == "unified_job_templates" else (kind,)
        return next((self.objects[each][key] for each in kinds if key in self.objects[each]), None)

    def _check(self, kind, new, old):
        unique = UNIQUE.get(kind, ("organization", "name"))
        # Approvals may share a name.
        for entry in self.objects[kind].values() if kind != "workflow_approval_templates" else ():
            if entry is not old and all(self._field(kind, entry, name) == self._field(kind, new, name) for name in unique):
                raise Refused(400, {"__all__": ["%s with this %s already exists." % (KINDS[kind][0], " and ".join(unique))]})
        check = getattr(self, "_check_" + kind, None)
        if check:
            check(new)

    def _check_credential_types(self, new):
        if new["kind"] not in ("cloud", "net"):
            raise Refused(400, {"kind": ["Must be 'cloud' or 'net', not %s" % new["kind"]]})
        for field in new["inputs"].get("fields", []):
            field.setdefault("type", "string")

    def _check_credentials(self, new):
        kind = self.objects["credential_types"][new["credential_type"]]
        fields = {field["id"]: field for field in kind["inputs"]["fields"]}
        for name, value in new["inputs"].items():
            if name not in fields:
                raise Refused(400, {"inputs": ["Additional properties are not allowed ('%s' was unexpected)" % name]})
            if not isinstance(value, bool if fields[name]["type"] == "boolean" else str):
                raise Refused(400, {"inputs": {name: ["is not of type '%s'" % fields[name]["type"]]}})
        key = new["inputs"].get("ssh_key_data")
        if key and not key.startswith("-----BEGIN"):
            raise Refused(400, {"inputs": {"ssh_key_data": ["Invalid certificate or key"]}})

    def _check_execution_environments(self, new):
        if new["credential"] and self._kind_of(new["credential"]) != "registry":
            raise Refused(
                400, {"credential": ["Only Container Registry credentials can be associated with an Execution Environment"]}
            )

    def _check_inventory_sources(self, new):
        if new["source"] == "scm" and new["source_project"] is None:
            raise Refused(400, {"source_project": ["Project required for scm type sources."]})
        if new["credential"] and self._kind_of(new["credential"]) in ("insights", "vault"):
            raise Refused(400, {"credential": ["Credentials of type insights and vault are disallowed for scm inventory sources."]})

    def _check_job_templates(self, new):
        if new["project"] is None:
            raise Refused(400, {"project": ["This field is required."]})
        if new["playbook"] not in self.playbooks or new["project"] in self._updating or self.project_status != "successful":
            raise Refused(400, {"playbook": ["Playbook not found for project."]})
        if new["inventory"] is None and not new["ask_inventory_on_launch"]:
            raise Refused(400, {"inventory": ["Job Template must provide 'inventory' or allow prompting for it."]})

    def _check_workflow_job_template_nodes(self, new):
        self._check_answers(new)

    def _check_answers(self, new):
        """What workflow nodes and schedules answer to the survey of their template."""
        template = self.objects["job_templates"].get(new["unified_job_template"])
        if template is None:
            return
        survey = self.surveys.get(template["id"], {}) if template["survey_enabled"] else {}
        errors = awx_rules.answer_problems(survey, new["extra_data"], template["ask_variables_on_launch"])
        if errors:
            raise Refused(400, errors)

    def _check_schedules(self, new):
        problems = awx_rules.rrule_problems(new["rrule"])
        if problems:
            raise Refused(400, {"rrule": problems})
        self._check_answers(new)

    def _kind_of(self, credential):
        return self.objects["credential_types"][self.objects["credentials"][credential]["credential_type"]]["kind"]

    # --- what is shown ---

    def _field(self, kind, entry, name):
        # A job template belongs to the organization of its project, a source to that of its inventory.
        parent = {"job_templates": ("projects", "project"), "inventory_sources": ("inventories", "inventory")}.get(kind)
        if name == "organization" and parent:
            return self.objects[parent[0]][entry[parent[1]]]["organization"]
        if name == "type":
            return KINDS[kind][0]
        return entry[name]

    def _list(self, found, query):
        groups = [[(name, value)] for name, value in query if not name.startswith("or__")]
        either = [(name[4:], value) for name, value in query if name.startswith("or__")]
        for group in groups + ([either] if either else []):
            found = [(kind, entry) for kind, entry in found if any(self._matches(kind, entry, *wanted) for wanted in group)]
        results = [self._shown(kind, entry) for kind, entry in found]
        return {"count": len(results), "next": None, "previous": None, "results": results}

    def _matches(self, kind, entry, name, value):
        if name == "id__in":
            return str(entry["id"]) in value.split(",")
        try:
            return str(self._field(kind, entry, name)) == value
        except KeyError:
            raise Refused(400, {"detail": "%s has no field named '%s'" % (KINDS[kind][0], name)})

    def _shown(self, kind, entry):
        url = "/api/v2/%s/%d/" % (kind, entry["id"])
        shown = {**entry, "type": KINDS[kind][0], "url": url, "related": {}, "summary_fields": {}}
        if kind in ROLES:
            shown["summary_fields"]["object_roles"] = self._object_roles(kind, entry)
        if kind == "credential_types":
            shown["managed"] = entry.get("managed", False)
        if kind in ("job_templates", "inventory_sources"):
            shown["organization"] = self._field(kind, entry, "organization")
        if kind in ("job_templates", "workflow_job_templates"):
            shown["related"]["survey_spec"] = url + "survey_spec/"
        if kind == "projects":
            shown["scm_revision"] = ""
            if entry["id"] in self._updating:
                shown["summary_fields"]["current_update"] = {"id": entry["id"]}
        if kind == "workflow_job_template_nodes" and entry["unified_job_template"] in self.objects["workflow_approval_templates"]:
            shown["related"]["unified_job_template"] = "/api/v2/workflow_approval_templates/%d/" % entry["unified_job_template"]
        if kind == "credentials":
            fields = self.objects["credential_types"][entry["credential_type"]]["inputs"]["fields"]
            secret = {field["id"] for field in fields if field.get("secret")}
            shown["inputs"] = {key: ENCRYPTED if key in secret else value for key, value in entry["inputs"].items()}
        return shown


class _Handler(BaseHTTPRequestHandler):
    awx = None

    def _respond(self):
        parts = urlsplit(self.path)
        path = re.sub("^/api/v2/", "", parts.path).strip("/").split("/")
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(text) if text else {}
        try:
            status, answer = self._authorized(path) or self.awx.answer(self.command, path, parse_qsl(parts.query), body)
        except Refused as refusal:
            status, answer = refusal.status, refusal.body
        data = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.end_headers()
        self.wfile.write(data)

    def _authorized(self, path):
        given = self.headers.get("Authorization", "")
        if path[0] == "tokens":
            self.awx.sessions += {"POST": 1, "DELETE": -1}[self.command]
            if given != "Basic " + base64.b64encode(("%s:%s" % (USER, PASSWORD)).encode()).decode():
                raise Refused(401, {"detail": "Authentication credentials were not provided."})
            return (204, None) if self.command == "DELETE" else (201, {"id": 1, "token": TOKEN})
        if given != "Bearer " + TOKEN:
            raise Refused(
                401, {"detail": "Authentication credentials were not provided. To establish a login session, visit /api/login/."}
            )
        return None

    do_GET = do_POST = do_PATCH = do_DELETE = _respond

    def log_message(self, format, *args):
        """Quiet."""
