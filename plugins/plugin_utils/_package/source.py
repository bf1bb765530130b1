# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where one of Huawei's packages comes from: a web server, a path on the controller, or an artifact in a registry."""

from __future__ import annotations

import dataclasses
import os
import urllib.parse
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import (
    DRIVER,
    FIRMWARE,
    MIRRORED,
    RUNTIME,
    WHAT,
    digest,
    variable,
)

WEB, FILE, REGISTRY = "web", "file", "registry"
OCI = "oci://"
_EXAMPLES = (
    "the URL of a .run file (https://...), its absolute path on the controller, or oci:// and the reference of an artifact in a"
    " registry"
)


@dataclasses.dataclass(frozen=True)
class PackageSource:
    """``place``: URL, path or reference, with what is secret in a URL; ``name``: the same for people and for records, without that.

    ``digest``: ``sha256:`` and the checksum that the file must have; ``setting``: the variable that names it.
    """

    kind: str
    place: str
    name: str
    digest: str
    username: str | None = None
    password: str | None = dataclasses.field(default=None, repr=False)
    plain_http: bool = False
    ca_file: str | None = None
    setting: str = DRIVER

    @property
    def what(self) -> str:
        """What it is, for messages."""
        return WHAT[self.setting]

    def is_same(self, other: PackageSource) -> bool:
        """Whether both name one file, whatever gives access to it."""
        return (self.kind, self.name, self.digest) == (other.kind, other.name, other.digest)

    def variable(self, part: str | None = None) -> str:
        """The variable that names it, or its ``part`` sha256, username or password."""
        return variable(self.setting, part)

    @classmethod
    def of(cls, options: Mapping[str, Any], setting: str = DRIVER) -> PackageSource:
        """From the options ``package``, ``package_sha256``, ``package_username``, ``package_password`` and the ``registry_`` ones.

        The first four begin with ``firmware_`` if ``setting`` is FIRMWARE. Raises NpuError.
        """
        own = "firmware_package" if setting == FIRMWARE else "package"
        text = str(options.get(own) or "").strip()
        if not text:
            when = "it" if setting in (RUNTIME, MIRRORED) else "with npu_driver_source: package, it"
            raise NpuError("%s is not set: %s must be %s" % (variable(setting), when, _EXAMPLES))
        wanted = digest(str(options.get(own + "_sha256") or ""), setting)
        ca_file = options.get("registry_ca_file") or None
        if text.startswith(OCI):
            reference = mirrored(str(parse_reference(text[len(OCI) :])), options.get("registry_mirror"))
            return cls(
                REGISTRY,
                reference,
                OCI + reference,
                wanted,
                options.get("registry_username") or None,
                options.get("registry_password") or None,
                bool(options.get("registry_plain_http")),
                ca_file,
                setting,
            )
        if "://" in text:
            name = _check_url(text, setting)
            username, password = options.get(own + "_username") or None, options.get(own + "_password") or None
            return cls(WEB, text, name, wanted, username, password, text.startswith("http://"), ca_file, setting)
        path = os.path.expanduser(text)
        if not os.path.isabs(path):
            raise NpuError("%s is %r; it must be %s" % (variable(setting), printable(text), _EXAMPLES))
        return cls(FILE, path, path, wanted, setting=setting)


def _check_url(text: str, setting: str) -> str:
    """The URL without query and fragment. Raises NpuError, without what may be secret in the URL."""
    name = variable(setting)
    try:
        parts = urllib.parse.urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise NpuError("%s is not a valid URL; it must be %s" % (name, _EXAMPLES)) from None
    if parts.username is not None or parts.password is not None:
        raise NpuError(
            "%s has a user name or password in the URL, where logs and records would show it. Set %s and %s instead"
            % (name, variable(setting, "username"), variable(setting, "password"))
        )
    if not usable:
        raise NpuError("%s begins with %s://; it must be %s" % (name, printable(parts.scheme, 40) or "nothing and", _EXAMPLES))
    if not text.isprintable() or " " in text:
        raise NpuError("%s has a space or a control character in its URL: encode it" % name)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
