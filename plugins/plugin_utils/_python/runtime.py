# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install a Python on hosts that have none, by unpacking the node agent's image there.

The shell script plugin_utils/_python/bring_python.sh does this on the host; this module prepares its input and explains its errors.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import ctr as image_ctr
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient

# As in the script.
_NO_CTR, _NO_SOCKET, _NOT_PULLED, _NOT_UNPACKED, _NOT_STARTED, _BUSY = range(10, 16)

_SAYS = re.compile(r"^npuops-python: (current|trace)=(.*)$", re.MULTILINE)


class PythonOnHost:
    """The output of the script's task look: ``current`` (name of the runtime, or None) and ``traces`` (paths that exist)."""

    def __init__(self, output: str) -> None:
        found = [match.groups() for match in _SAYS.finditer(output.replace("\r", ""))]
        self.current = next((value for key, value in found if key == "current" and value), None)
        self.traces = [value for key, value in found if key == "trace"]
        self.answered = bool(found)


def name_of(image: str) -> str:
    """The name of the directory for the reference ``image``: its tag or digest, and a hash of the whole reference."""
    reference = parse_reference(image)
    word = reference.tag if reference.tag and not reference.digest else reference.digest.partition(":")[2][:12]
    return "%s-%s" % (word, hashlib.sha256(str(reference).encode("utf-8")).hexdigest()[:12])


def script_for(script: str, task: str, **variables: str) -> str:
    """The text to send to the host: ``script`` with its variables set."""
    settings = dict({"traces": "", "name": "", "image": "", "registry": "", "hosts_toml": ""}, task=task, **variables)
    return "".join("%s=%s\n" % (key, shlex.quote(settings[key])) for key in sorted(settings)) + script


def pull_variables(
    image: str,
    username: str | None = None,
    password: str | None = None,
    plain_http: bool = False,
    ca_file: str | None = None,
    meant_for: str | None = None,
) -> dict[str, str]:
    """The variables of the task bring. Queries the registry; raises NpuError.

    ``meant_for``: an image or a repository; credentials, plain_http and ca_file are used only if ``image`` is in the same registry.
    """
    reference = parse_reference(image)
    if meant_for and parse_reference(meant_for).registry != reference.registry:
        username = password = ca_file = None
        plain_http = False
    client = RegistryClient(reference.registry, username, password, plain_http, ca_file)
    digest = reference.digest or client.resolve(reference.repository, reference.tag).digest
    header = client.authorization(reference.repository)
    return {
        "name": name_of(image),
        "image": "%s@%s" % (reference.name, digest),
        "registry": reference.registry,
        "hosts_toml": image_ctr.hosts_toml(client.base, header, ca_file).rstrip("\n"),
    }


def secrets_of(hosts_toml: str) -> list[str]:
    """The secrets in it: the Authorization header, with and without its scheme."""
    headers = re.findall(r'Authorization = "(.*)"', hosts_toml)
    return headers + [header.partition(" ")[2] for header in headers]


def failure(status: int, output: str, image: str, secrets: Iterable[str] = ()) -> NpuError:
    """The NpuError for a script that ended with ``status`` and ``output`` while installing ``image``."""
    output = output.strip()
    for secret in secrets:
        output = output.replace(secret, "***") if secret else output
    last = output.splitlines()[-1].strip() if output else "no message, exit status %d" % status
    about = "Python could not be installed on this host"
    if status == _NO_CTR:
        return NpuError(
            "%s: it has no ctr (part of containerd), which is needed to unpack the image. Install containerd, or install a Python "
            "and set ansible_python_interpreter to its path" % about
        )
    if status == _NO_SOCKET:
        return NpuError("%s: containerd is not running (it has no socket). Start it, then run again" % about)
    if status == _BUSY:
        return NpuError("%s: %s. Wait until it ends, then run again" % (about, last))
    if status in (_NOT_PULLED, _NOT_UNPACKED):
        return NpuError("%s: %s" % (about, image_ctr.explain(host_command.Result(status, "", output), image, 0).message))
    if status == _NOT_STARTED:
        return NpuError(
            "%s: the Python in the image %s does not start: %s. The image must be the node agent's image of this collection, for "
            "the architecture of this host, and /var/lib must not be mounted noexec" % (about, image, last)
        )
    return NpuError("%s: %s" % (about, last))
