# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as plain dictionaries: a client whose failures are sentences, and what a Node object tells."""

from __future__ import annotations as _annotations  # below there is a function of that name

import contextlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Self, Unpack

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.each import AllOf
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.pages import Ahead
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.stream import Stream
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import (
    AnyCluster,
    Labels,
    Object,
    Objects,
    Requests,
    Selectors,
)

try:
    import yaml
    from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
    from kubernetes.client import Configuration
    from kubernetes.client.rest import ApiException
    from kubernetes.dynamic.exceptions import ResourceNotFoundError
    from urllib3.exceptions import HTTPError
    from urllib3.exceptions import TimeoutError as RequestTimeout
    from urllib3.util.retry import Retry
except ImportError as import_error:
    _MISSING: str | None = str(import_error)
    AUTH_ARG_SPEC = {}
else:
    _MISSING = None

    class _Retries(Retry):
        """A request that took all its time is not repeated: who waits for it wants to hear of it, and decides."""

        def increment(  # type: ignore[override]  # whatever else urllib3 hands on, it gets back
            self,
            method: str | None = None,
            url: str | None = None,
            response: Any = None,
            error: Exception | None = None,
            **more: Any,
        ) -> Self:
            if isinstance(error, RequestTimeout):
                raise error
            return super().increment(method, url, response, error, **more)

        def get_retry_after(self, response: Any) -> float | None:
            """urllib3 would wait as long as the server or a proxy asks, hours perhaps, without a word."""
            asked = super().get_retry_after(response)
            return None if asked is None else min(asked, _MOST_RETRY_AFTER)


# Contract (names people use with kubectl).
LABEL_PRESENT = "openfuyao.com/npu.present"
LABEL_CHIP = "npuops.ascend/chip"
LABEL_DRIVER_VERSION = "npuops.ascend/driver-version"
LABEL_FIRMWARE_VERSION = "npuops.ascend/firmware-version"
LABEL_COMPONENTS = "npuops.ascend/components"
ANNOTATION_MAINTENANCE = "npuops.ascend/maintenance"
ANNOTATION_WEDGED = "npuops.ascend/wedged"
# Since when the components are paused because install changes the virtual NPUs.
ANNOTATION_VNPU_CHANGE = "npuops.ascend/vnpu-change"

# Who we are to the API server, which remembers who set what.
FIELD_MANAGER = "npuops.ascend"

PAGE = 500
_ANSWER_SECONDS = 30
_PIECE = 65536
_MOST_RETRY_AFTER = 5  # seconds
# Of a watch, and of the beginning of its answer: a proxy between may hold it back until all of it has come.
_WATCH_SECONDS, _OPEN_SECONDS = 300, 5
_LONGEST_MESSAGE = 1000
_LABEL_VALUE = re.compile("[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_WEBHOOK_HINT = (
    ". Repair that admission webhook, or remove it: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
)
_FORBIDDEN = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')


class Refused(NpuError):
    """The server answered, and what it says is about this request: not the credentials, rights or connection."""


class Forbidden(NpuError):
    """The user lacks the permission ``details["missing"]``: {verb, resource, group, namespace}."""


class Unreachable(NpuError):
    """The server gave no answer, or one of its own failures (5xx): whether the request took effect is not known.

    ``cause``: what became of the connection, None where there was an answer; ``outage``: whether the next request has no better
    chance.
    """

    def __init__(self, message: str, cause: str | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.outage = cause is not None


class Failing(Refused):
    """This one request has no answer, or a 5xx, while the server answers others: an admission webhook that is down, most
    likely. As with Unreachable, whether it took effect is not known."""


class NotFound(Refused):
    """The object is not there."""


class Conflict(Refused):
    """The object was changed since it was read, or one of that name exists already."""


class Expired(Refused):
    """The server has forgotten the list whose pages are being read. ``token``: with which it goes on, or None."""

    def __init__(self, message: str, token: str | None) -> None:
        super().__init__(message)
        self.token = token


class NamespaceTerminating(Refused):
    """The namespace is being deleted, and all that is in it: nothing is created there any more, no eviction either."""


class Unauthorized(NpuError):
    """There are no credentials, or none that the API server accepts: it does not know who asks."""


class NoCredentials(Unauthorized):
    """There are none, or none that can be used, so that no API server was asked."""


class TooManyRequests(Refused):
    """Not now, perhaps later: a disruption budget that an eviction would violate, or a busy server.

    ``retry_after``: seconds the server asks to wait, or None; ``causes``: the server's sentences, most often none or one.
    """

    outage = False  # as of Unreachable

    def __init__(self, message: str, retry_after: int | None = None, causes: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.causes = list(causes)


def connect(options: Mapping[str, Any], where: str = "npu_kubernetes_auth (kubeconfig: /path)") -> Cluster:
    """A Cluster for kubernetes.core's authentication ``options`` (a dict, others in it are ignored), K8S_AUTH_* or the
    kubeconfig. ``where`` its user would write them down. Raises NpuError.
    """
    if _MISSING:
        raise NpuError(
            "Ansible's Python, %s, lacks the Kubernetes client: %s. Install the Python package kubernetes for it"
            " (%s -m pip install kubernetes) and the collection kubernetes.core." % (sys.executable, _MISSING, sys.executable)
        )
    options = {name: options[name] for name in AUTH_ARG_SPEC if options.get(name) is not None}
    return Cluster(_make_client(options, where), lambda: _make_client(options, where))


def _make_client(options: Mapping[str, Any], where: str) -> Any:
    """kubernetes.core's K8SClient with the credentials as they are now: files are read, a credential plugin is asked."""
    try:
        with _deadline(_ANSWER_SECONDS), _fresh_configuration(), _without_empty_variables():
            return get_api_client(**options)
    except CoreException as exc:
        raise NoCredentials(
            "No usable credentials for the Kubernetes API: %s. Name a kubeconfig that the controller can read in"
            " %s or K8S_AUTH_KUBECONFIG." % (str(exc).rstrip("."), where)
        )
    except (OSError, yaml.YAMLError) as exc:
        raise Unauthorized("The Kubernetes credentials cannot be read: %s." % exc)
    except HTTPError as exc:
        raise _unreachable("", exc)
    except ApiException as exc:
        raise _refused("", exc)
    except _TimeIsUp:
        raise NpuError(
            "The Kubernetes API did not answer within %d s. Check the server address in the kubeconfig and"
            " that the controller may reach it (firewall, proxy, VPN)." % _ANSWER_SECONDS
        )


class Cluster:
    """Requests to one API server. Bodies and answers are plain dictionaries; every failure is an NpuError."""

    def __init__(self, client: Any, renew: Callable[[], Any] | None = None) -> None:
        """``client``: kubernetes.core's K8SClient; ``renew()``: another one, of the credentials as they are then.

        Its ``clock`` goes by the server's time as soon as that has answered.
        """
        self._renew = renew
        self.clock = Clock()
        self._use(client)

    def _use(self, client: Any) -> None:
        self._discovery = client
        self._client = client.client
        # A connection that the server has closed meanwhile is still reopened at once.
        self._pool().retries = _Retries(3, raise_on_status=False)

    def _pool(self) -> Any:
        """urllib3's connections to the API server."""
        return self._client.client.rest_client.pool_manager.connection_from_url(self.address)

    @property
    def address(self) -> str:
        return self._client.configuration.host

    @property
    def without_retries(self) -> AnyCluster:
        """Itself; of a _kube.retry.RetryingCluster, the one that does not wait."""
        return self

    def path(self, kind: str, api_version: str, namespace: str | None, name: str | None) -> str:
        """The URL path of an object. Raises NpuError for a kind that the cluster does not know."""
        try:
            return self._ask(lambda: self._discovery.resource(kind, api_version)).path(name=name, namespace=namespace)
        except ResourceNotFoundError:
            raise NpuError("The cluster has no %s of %s. Is its operator installed?" % (kind, api_version))
        except ApiException as exc:
            raise _refused(self.address, exc)
        except HTTPError as exc:
            raise _unreachable(self.address, exc)

    def request(self, method: str, path: str, body: Any = None, text: bool = False, **params: Any) -> Any:
        """The decoded answer (text with ``text``). Raises NotFound, Conflict, or NpuError saying what is refused."""
        sent = self.clock.monotonic()
        answer = self._send(method, path, body=body, **params)
        try:
            content = answer.data.decode("utf-8", "replace")
        except HTTPError as exc:
            raise _unreachable(self.address, exc)
        self.clock.heard(answer.headers.get("Date"), self.clock.monotonic() - sent)
        return content if text else _decoded(self.address, content)

    def pieces(self, path: str, **params: Any) -> Generator[bytes, None, None]:
        """The answer as it arrives, for who closes this when there is enough of it. Raises NpuError."""
        answer = self._send("get", path, **params)
        try:
            yield from answer.stream(_PIECE)
        except HTTPError as exc:
            raise _unreachable(self.address, exc)
        finally:
            answer.close()  # the rest of it would be in the way of the next request

    def stream(self, path: str, version: str, **selectors: Unpack[Selectors]) -> Stream | None:
        """A watch of the objects at ``path`` for changes after the resource ``version``; None if its connection has no socket.

        It ends by itself after a few minutes. Raises NpuError, for example if the account may not watch.
        """
        asked = {"watch": True, "resource_version": version, "timeout_seconds": _WATCH_SECONDS, **selectors}
        pool = self._pool()
        # Who waits can do without: no retries, for which a busy server may ask to wait half a minute.
        usual, pool.retries = pool.retries, False
        try:
            answer = self._send("get", path, _OPEN_SECONDS, **asked)
        finally:
            pool.retries = usual
        try:
            return Stream(answer)
        except OSError:
            answer.close()
            return None

    def _send(self, method: str, path: str, seconds: int = _ANSWER_SECONDS, **params: Any) -> Any:
        """The answer, of which only the headers were read. They must come within so many ``seconds``: clients before 29 ignore a
        limit that is no whole number."""
        try:
            return self._ask(lambda: self._client.request(method, path, serialize=False, _request_timeout=seconds, **params))
        except ApiException as exc:
            raise _refused(self.address, exc)
        except HTTPError as exc:
            raise _unreachable(self.address, exc)

    def _ask(self, call: Callable[[], Any]) -> Any:
        """The answer. If the credentials are not accepted, it asks again with new ones: a credential plugin need not say how long
        they are valid, and a kubeconfig may have been rewritten since."""
        try:
            return call()
        except ApiException as exc:
            # Only the main thread can limit how long a credential plugin takes.
            if exc.status != 401 or self._renew is None or threading.current_thread() is not threading.main_thread():
                raise
            try:
                self._use(self._renew())
            except NpuError:
                raise exc from None
        return call()

    def get(self, path: str, **params: Any) -> Object | None:
        """The object at ``path``, or None when there is none."""
        try:
            return self.request("get", path, **params)
        except NotFound:
            return None

    def list(self, path: str, **selectors: Unpack[Selectors]) -> Objects:
        """All objects at ``path``, fetched in pages."""
        return list(self.each(path, **selectors))

    def each(self: Requests, path: str, **selectors: Unpack[Selectors]) -> Iterator[Object]:
        """The objects at ``path`` one after the other; only one page of them is in memory, and the text of the next one."""
        unknown = selectors.keys() - Selectors.__annotations__.keys()
        if unknown:
            raise TypeError("a list has no %s: everything would be listed" % ", ".join(sorted(unknown)))
        token, again = None, False
        # Of a Cluster only: what stands for one wants to see each request, or has an order of them.
        asked: Any = getattr(self, "without_retries", None)
        ahead = Ahead(lambda token: asked.request("get", path, text=True, limit=PAGE, _continue=token, **selectors))
        while True:
            page = ahead.take(token)
            if page is None:
                try:
                    page = self.request("get", path, limit=PAGE, _continue=token, **selectors)
                except Expired as exc:
                    # After some minutes, a server no longer has the list as it was. It offers the rest as it is now.
                    if again or not exc.token:
                        raise
                    token, again = exc.token, True
                    continue
            token, again = page.get("metadata", {}).get("continue"), False
            if token and isinstance(asked, Cluster):
                ahead.begin(token)
            yield from page.get("items") or []
            if not token:
                return

    def merge_patch(self, path: str, body: Object, **params: Any) -> Object:
        return self.request("patch", path, body=body, content_type="application/merge-patch+json", **params)

    def may(
        self: AnyCluster, verb: str, resource: str, group: str = "", namespace: str | None = None, name: str | None = None
    ) -> bool:
        """Whether the user of this client may ``verb`` the resource, or subresource such as pods/eviction (in any
        namespace without ``namespace``, whatever its name without ``name``)."""
        resource, _slash, subresource = resource.partition("/")
        attributes = {"verb": verb, "resource": resource, "group": group}
        if subresource:
            attributes["subresource"] = subresource
        if namespace:
            attributes["namespace"] = namespace
        if name:
            attributes["name"] = name
        review = self.request(
            "post",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            },
        )
        return bool(review.get("status", {}).get("allowed"))

    def nodes(self) -> dict[str, Object]:
        """All Node objects by name."""
        return {node["metadata"]["name"]: node for node in self.list("/api/v1/nodes")}


class _TimeIsUp(Exception):
    pass


@contextlib.contextmanager
def _fresh_configuration() -> Iterator[None]:
    """Neither inherit the client library's defaults nor leave any.

    A kubeconfig stays behind in them with a hook that sets the address again: all later clients of this process, and of the workers
    that it forks, would go to the cluster of that kubeconfig, whatever their own address is.
    """
    Configuration.set_default(None)
    try:
        yield
    finally:
        Configuration.set_default(None)


@contextlib.contextmanager
def _without_empty_variables() -> Iterator[None]:
    """AWX and others set variables to nothing, and kubernetes.core takes that for a value: for an address, for example."""
    empty = [name for name, value in os.environ.items() if name.startswith("K8S_AUTH_") and not value]
    for name in empty:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(dict.fromkeys(empty, ""))


@contextlib.contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Raise _TimeIsUp after ``seconds``: the client library itself has no limit for its first connection."""

    def on_alarm(_signum: int, _frame: object) -> None:
        raise _TimeIsUp()

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _where(address: str) -> str:
    return "The Kubernetes API%s" % (" at " + address if address else "")


def _decoded(address: str, content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise Unreachable(
            "%s answered what is no JSON. Check the server address in the kubeconfig, and the proxy or load balancer before it."
            % _where(address)
        )
    except RecursionError:
        raise Refused("The answer of the Kubernetes API is nested too deeply to be read.")


def _unreachable(address: str, exc: HTTPError) -> Unreachable:
    pool = getattr(exc, "pool", None)
    address = address or ("%s:%s" % (pool.host, pool.port) if pool is not None else "")
    cause = getattr(exc, "reason", None) or exc
    text = re.sub(r"^.*?(?=Failed to|\[SSL|\[Errno|timed out)", "", str(cause), flags=re.S) or str(cause)
    return Unreachable(
        "%s cannot be reached: %s. Check the server address in the kubeconfig and that the controller may reach it."
        % (_where(address), text.rstrip(".")),
        cause=text.rstrip("."),
    )


def _refused(address: str, exc: ApiException) -> NpuError:
    """What the API server said, as the exception that fits."""
    message = _status_message(exc)
    where = _where(address)
    if exc.status == 401:
        return Unauthorized("%s does not accept the credentials (401 Unauthorized). Renew the token or kubeconfig." % where)
    if exc.status == 403:
        hint = _FORBIDDEN.search(message)
        if not hint:
            ending = "NamespaceTerminating" in _causes(exc, "reason") or "because it is being terminated" in message
            return (NamespaceTerminating if ending else Refused)("%s refuses: %s" % (where, message))
        verb, resource, group, namespace = hint.groups()
        return Forbidden(
            "%s refuses: %s. Allow %s to this user, or use other credentials."
            % (where, message.rstrip("."), describe_permission(verb, resource, group, namespace)),
            missing={"verb": verb, "resource": resource, "group": group, "namespace": namespace},
        )
    text = "%s answered %s: %s" % (where, exc.status, message)
    if exc.status == 429:
        return TooManyRequests(text, _retry_after(exc), _causes(exc))
    if exc.status and exc.status >= 500:
        return Unreachable(text.rstrip(".") + _WEBHOOK_HINT if "failed calling webhook" in message else text)
    if exc.status == 410:
        return Expired(text, _new_token(exc))
    return {404: NotFound, 409: Conflict}.get(exc.status, Refused)(text)


def _status_message(exc: ApiException) -> str:
    try:
        text = json.loads(exc.body)["message"]
    except (TypeError, ValueError, KeyError):
        text = exc.body or exc.reason or exc
    # A proxy's error page is no sentence, nor need a webhook's words be.
    text = " ".join(str(text).split())
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."


def _new_token(exc: ApiException) -> str | None:
    """With which a list whose pages have expired can be continued."""
    try:
        token = json.loads(exc.body)["metadata"]["continue"]
    except (TypeError, ValueError, KeyError):
        return None
    return token if isinstance(token, str) else None


def _retry_after(exc: ApiException) -> int | None:
    """Seconds of the Retry-After header, or None."""
    value = str((exc.headers or {}).get("Retry-After", ""))
    return int(value) if value.isdecimal() and len(value) < 6 else None


def _causes(exc: ApiException, part: str = "message") -> list[str]:
    try:
        return [cause[part] for cause in json.loads(exc.body)["details"]["causes"]]
    except (TypeError, ValueError, KeyError):
        return []


def describe_permission(verb: str, resource: str, group: str = "", namespace: str | None = None, name: str | None = None) -> str:
    """How a person reads one permission."""
    return '"%s" on "%s%s"%s' % (
        verb,
        resource + ("." + group if group else ""),
        " " + name if name else "",
        " in the namespace %s" % namespace if namespace else "",
    )


def has_resource(cluster: AnyCluster, group_version: str, resource: str) -> bool:
    """Whether the API at the path ``group_version`` has that resource."""
    found = cluster.get(group_version) or {}
    return any(entry["name"] == resource for entry in found.get("resources") or [])


# --- what a Node object tells ---


def node_ready(node: Object) -> tuple[bool, str | None]:
    """(True, None), or (False, why) for a Node."""
    for condition in node.get("status", {}).get("conditions") or []:
        if condition["type"] == "Ready":
            if condition["status"] == "True":
                return True, None
            return False, condition.get("message") or condition.get("reason") or "Ready is %s" % condition["status"]
    return False, "the kubelet never reported"


def node_info(node: Object) -> Object:
    """status.nodeInfo."""
    return node.get("status", {}).get("nodeInfo") or {}


def boot_id(node: Object) -> str | None:
    return node_info(node).get("bootID")


def labels(node: Object) -> Labels:
    return node["metadata"].get("labels") or {}


def label_value(text: Any) -> str | None:
    """``text`` if the API server accepts it as the value of a label, or None."""
    return text if isinstance(text, str) and _LABEL_VALUE.fullmatch(text) else None


def annotations(node: Object) -> Labels:
    return node["metadata"].get("annotations") or {}


def owned_keys(node: Object, part: str) -> Iterator[tuple[Object, set[str]]]:
    """(entry of managedFields, the names in metadata.``part`` that it owns) for each entry; ``part``: labels or annotations."""
    for entry in node["metadata"].get("managedFields") or []:
        owned = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:" + part) or {}
        yield entry, {field[2:] for field in owned if field.startswith("f:")}


def allocatable(node: Object, resource: str) -> int:
    """How many of ``resource`` the kubelet offers on the Node (0 when it has never heard of it)."""
    return kube_quantity.whole((node.get("status", {}).get("allocatable") or {}).get(resource, 0)) or 0


def metadata_patch(
    node: Object, wanted_labels: Mapping[str, str | None], wanted_annotations: Mapping[str, str | None]
) -> Object | None:
    """The merge patch that brings labels and annotations (value None: absent) about, or None when all is so already.

    The components label is left alone on a node under maintenance, and where a person or an agent paused it. What install itself
    has paused is given back with the annotation that says so.
    """
    current = labels(node)
    wanted = dict(wanted_labels)
    ours = ANNOTATION_VNPU_CHANGE in annotations(node) and wanted_annotations.get(ANNOTATION_VNPU_CHANGE, "") is None
    if ANNOTATION_MAINTENANCE in annotations(node) or (current.get(LABEL_COMPONENTS) == "paused" and not ours):
        wanted.pop(LABEL_COMPONENTS, None)
    metadata = {}
    for key, have, want in (
        ("labels", current, wanted),
        ("annotations", annotations(node), wanted_annotations),
    ):
        changes = {name: value for name, value in want.items() if have.get(name) != value}
        if changes:
            metadata[key] = changes
    if not metadata:
        return None
    metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
    return {"metadata": metadata}


def patched(node: Object, patch: Object) -> dict[str, Labels]:
    """Labels and annotations of ``node`` as they are after ``patch``: for diffs."""
    result = {}
    for key, have in (("labels", labels(node)), ("annotations", annotations(node))):
        changes = patch["metadata"].get(key, {})
        merged = dict(have, **changes)
        result[key] = {name: merged[name] for name in sorted(changes) if merged[name] is not None}
    return result


def apply_metadata(
    cluster: Cluster, wanted: list[dict[str, Any]], check_mode: bool = False, attempts: int = 5
) -> list[dict[str, Any]]:
    """Bring the labels and annotations of many nodes about.

    ``wanted`` is a list of {name, labels, annotations, boot_id, spec}; ``boot_id``: of the boot that they are about, which need
    not be there; ``spec``: None, or a function that returns further changes of the spec of a Node, which are made with those of
    its metadata or not at all. Returns a list of {name, before, after} for the nodes that changed (or would, in check mode). A
    node that another client wrote in between is read and judged again, up to ``attempts`` times. Raises NpuError naming every node
    that is not in the cluster before anything is written, and those that could not be written when all others have been.
    """
    nodes = cluster.nodes()
    missing = [entry["name"] for entry in wanted if entry["name"] not in nodes]
    if missing:
        raise NpuError("No such node in the cluster: %s." % ", ".join(missing))
    each = AllOf()
    for entry in wanted:
        each.do(entry["name"], _apply_to_one, cluster, nodes[entry["name"]], entry, check_mode, attempts)
    each.check()
    return each.results


def _apply_to_one(cluster: Cluster, node: Object, entry: dict[str, Any], check_mode: bool, attempts: int) -> dict[str, Any] | None:
    path = "/api/v1/nodes/" + entry["name"]
    for attempt in range(attempts):
        _check_boot(node, entry.get("boot_id"))
        patch = metadata_patch(node, entry["labels"], entry["annotations"])
        if patch is None:
            return None
        spec = entry["spec"](node) if entry.get("spec") else {}
        change = {"name": entry["name"], "before": _before(node, patch), "after": patched(node, patch)}
        if spec:
            patch["spec"] = spec
            change["before"]["spec"] = {key: (node.get("spec") or {}).get(key) for key in spec}
            change["after"]["spec"] = dict(spec)
        if check_mode:
            return change
        try:
            cluster.merge_patch(path, patch, field_manager=FIELD_MANAGER)
            return change
        except Conflict:
            if attempt == attempts - 1:
                raise
            node = cluster.request("get", path)
    return None


def _check_boot(node: Object, wanted: str | None) -> None:
    """Raise NpuError when the host was rebooted since it was asked: it may have another driver by now."""
    reported = boot_id(node)
    if wanted and reported and wanted != reported:
        raise NpuError(
            "The labels were not written: the host was rebooted after its facts were gathered (boot ID %s, the node reports %s)."
            " Run this again." % (wanted, reported)
        )


def _before(node: Object, patch: Object) -> dict[str, Labels]:
    return {
        key: {name: have[name] for name in sorted(patch["metadata"].get(key, {})) if name in have}
        for key, have in (("labels", labels(node)), ("annotations", annotations(node)))
    }
