# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image registry with a user name and a password, and pushing OCI archives into it.

`run_registry` knows nothing of the lab's own instance, so a test can start another one beside it.
"""

from __future__ import annotations

import ctypes
import io
import json
import secrets
import tarfile
import threading
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from . import binaries, daemons
from .collection import library
from .files import write
from .settings import Lab, LabError
from .tasks import Step

_LOCK = threading.Lock()


@dataclass(frozen=True)
class Credentials:
    address: str
    username: str
    password: str


def credentials(lab: Lab) -> Credentials:
    """Those of the lab's registry, made up once and kept in <state>/registry.json."""
    file = lab.state / "registry.json"
    with _LOCK:  # several steps ask at once, and the first to ask makes them up
        if not file.exists():
            made = Credentials(lab.registry, "lab", secrets.token_urlsafe(18))
            write(file, json.dumps(asdict(made), indent=2) + "\n", mode=0o600)
    return Credentials(**json.loads(file.read_text(encoding="utf-8")))


def start_registry(lab: Lab, step: Step) -> None:
    """The lab's own registry: plain HTTP on the bridge, as inside many data centres."""
    run_registry(lab, step, "registry", credentials(lab), lab.state / "registry")


def run_registry(lab: Lab, step: Step, name: str, login: Credentials, directory: Path, auth: dict | None = None) -> None:
    """Start a registry unless it runs and wait until it answers.

    :param auth: the registry's own `auth` configuration, e.g. of a token service; None: user name and password
    """
    directory.mkdir(parents=True, exist_ok=True)
    if auth is None:
        write(directory / "htpasswd", f"{login.username}:{_bcrypt(login.password)}\n", mode=0o600)
        auth = {"htpasswd": {"realm": "lab", "path": str(directory / "htpasswd")}}
    config = {
        "version": "0.1",
        "log": {"level": "info", "accesslog": {"disabled": False}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "data")}, "delete": {"enabled": True}},
        "http": {"addr": login.address, "secret": secrets.token_hex(16)},
        "auth": auth,
    }
    write(directory / "config.yml", json.dumps(config, indent=2), mode=0o600)
    program = binaries.programs(lab, binaries.REGISTRY) / "registry"
    daemons.start(lab, step, name, program, "serve", directory / "config.yml")
    step.wait_for(f"the registry on {login.address}", lambda: _answers(lab, name, login.address), 30)


def _answers(lab: Lab, name: str, address: str) -> bool:
    if name not in daemons.running(lab):
        raise LabError(f"{name} does not run; see {lab.logs / name}.log")
    try:
        with urllib.request.urlopen(f"http://{address}/v2/", timeout=2):
            return True
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code == 401
    except OSError:
        return False


def _bcrypt(password: str) -> str:
    """The registry accepts only bcrypt; Debian's libcrypt has it, Python's wrapper of that library is going away."""
    library = ctypes.CDLL("libcrypt.so.1")
    for function in (library.crypt, library.crypt_gensalt):
        function.restype = ctypes.c_char_p
    salt = library.crypt_gensalt(b"$2b$", ctypes.c_ulong(5), None, 0)
    return library.crypt(password.encode(), salt).decode()


def push_archive(login: Credentials, archive: Path, repository: str, tag: str) -> None:
    """Push the image in an OCI archive (a tar with index.json) as `repository:tag`."""
    client = library("_image.registry").RegistryClient(login.address, login.username, login.password, plain_http=True)
    with tarfile.open(archive) as tar:

        def content(digest: str) -> bytes:
            file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert file is not None
            return file.read()

        index_file = tar.extractfile("index.json")
        assert index_file is not None
        top = json.load(index_file)["manifests"][0]
        manifest = content(top["digest"])
        parsed = json.loads(manifest)
        for blob in (parsed["config"], *parsed["layers"]):
            if not client.has_blob(repository, blob["digest"]):
                client.push_blob(repository, blob["digest"], blob["size"], io.BytesIO(content(blob["digest"])))
        client.push_manifest(repository, tag, manifest, parsed.get("mediaType") or top["mediaType"])
