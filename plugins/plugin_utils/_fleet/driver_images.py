# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the registry says of a driver image, asked with a host's configuration."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.manifests import is_digest
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import signature


def resolve(reference_text, config):
    """The digest of a reference, verified where signatures are required. Raises NpuError.

    ``config``: with the keys of _fleet.preflight.CONFIG_DEFAULTS. The digest in it counts for more than the tag.
    """
    reference = parse_reference(reference_text)
    required = signature.policy(config.get("driver_signature_policy") or signature.OFF) == signature.REQUIRE
    pinned = config.get("driver_digest")
    if pinned and not is_digest(pinned):
        raise NpuError("npu_driver_digest is %r; it must be sha256: and 64 hexadecimal digits" % pinned)
    if pinned and reference.digest and pinned != reference.digest:
        raise NpuError("npu_driver_image names %s, and npu_driver_digest is %s" % (reference.digest, pinned))
    client = _client(reference, config)
    digest = client.resolve(reference.repository, pinned or reference.digest or reference.tag).digest
    if required:
        signature.verify(client, reference.repository, digest, config.get("driver_signature_keys"))
    return digest


def size(reference_text, digest, config, machine):
    """Bytes of the layers of the image with that digest for a host whose ``uname -m`` is ``machine``. Raises NpuError."""
    reference = parse_reference(reference_text)
    _descriptor, manifest = _client(reference, config).image(reference.repository, digest, machine)
    return sum(layer["size"] for layer in manifest["layers"])


def _client(reference, config):
    return RegistryClient(
        reference.registry,
        username=config["registry_username"],
        password=config["registry_password"],
        plain_http=config["registry_plain_http"],
        ca_file=config["registry_ca_file"],
    )
