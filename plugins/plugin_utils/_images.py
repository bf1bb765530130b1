# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the registry says of a driver image, asked with a host's configuration.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._registry import RegistryClient, parse_reference


def resolve(reference_text, config):
    """The digest of a reference. Raises NpuError. ``config``: with the keys of _preflight.CONFIG_DEFAULTS."""
    reference = parse_reference(reference_text)
    return _client(reference, config).resolve(reference.repository, reference.digest or reference.tag).digest


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
