# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures of images as ``cosign sign --key`` makes them, verified on the controller.

A signature lies beside the image, under the tag sha256-<digest>.sig. Each of its layers is a text that names the digest of the
image, and carries the signature of that text. Hosts pull the digest that was verified.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import manifests
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import RegistryClient
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import ImageNotFound

OFF, REQUIRE = "off", "require"

_ANNOTATION = "dev.cosignproject.cosign/signature"
_TYPE = "cosign container image signature"
# An image is signed a few times, not thousands of times.
_MAX_SIGNATURES = 50
_MAX_KEY = 16 * 1024


def policy(value: str) -> str:
    """The policy ``value``; raises NpuError for what is none."""
    if value not in (OFF, REQUIRE):
        raise NpuError("npu_driver_signature_policy is %r; it must be %s or %s" % (value, OFF, REQUIRE))
    return value


def verify(
    client: RegistryClient, repository: str, digest: str, keys: str | Iterable[str] | None, index: str | None = None
) -> None:
    """Raise NpuError unless the image ``digest`` in ``repository`` is signed with one of ``keys`` (PEM texts, or paths).

    ``index``: digest of the index that names the image. Its signature counts, too: who signs an index signs all that is in it.
    """
    try:
        _verify(client, repository, digest, keys)
    except NpuError:
        if index in (None, digest):
            raise
        try:
            _verify(client, repository, index, keys)
            return
        except NpuError:
            pass
        raise


def _verify(client: RegistryClient, repository: str, digest: str, keys: str | Iterable[str] | None) -> None:
    loaded = [_load(key) for key in _listed(keys)]
    if not loaded:
        raise NpuError("npu_driver_signature_policy is %s, and npu_driver_signature_keys names no public key" % REQUIRE)
    name = "%s/%s@%s" % (client.registry, repository, digest)
    tag = digest.replace(":", "-") + ".sig"
    try:
        manifest = client.image(repository, tag)[1]
    except ImageNotFound:
        raise NpuError(
            "The image %s is not signed: the registry has no %s:%s. Sign it with: cosign sign --key ..., or set"
            " npu_driver_signature_policy: %s" % (name, repository, tag, OFF)
        ) from None
    for layer in manifest["layers"][:_MAX_SIGNATURES]:
        signature = _signature_of(layer)
        if signature is None:
            continue
        payload = client.blob(repository, layer["digest"])
        if _is_about(payload, digest) and any(_fits(key, signature, payload) for key in loaded):
            return
    raise NpuError(
        "The image %s is not signed with any of npu_driver_signature_keys. Find out who pushed it before you use it" % name
    )


def _listed(keys: str | Iterable[str] | None) -> list[str]:
    return [keys] if isinstance(keys, str) and keys.strip() else list(keys or [])


def _load(key: str) -> Any:
    """The public key in a PEM text or file. Raises NpuError."""
    # Imported here: it is not needed without a policy.
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise NpuError("To verify signatures, the controller needs the Python package cryptography") from None
    text = str(key)
    if "-----BEGIN" not in text:
        path = os.path.expanduser(text)
        try:
            with open(path, encoding="ascii", errors="replace") as stream:
                text = stream.read(_MAX_KEY)
        except OSError as exc:
            raise NpuError("The key %s of npu_driver_signature_keys cannot be read: %s" % (path, exc.strerror)) from None
    try:
        return load_pem_public_key(text.encode("utf-8"))
    except (ValueError, UnsupportedAlgorithm):
        raise NpuError("A key of npu_driver_signature_keys is not a PEM public key, like cosign.pub") from None


def _signature_of(layer: dict[str, Any]) -> bytes | None:
    annotations = layer.get("annotations")
    text = annotations.get(_ANNOTATION) if isinstance(annotations, dict) else None
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        return None


def _is_about(payload: bytes, digest: str) -> bool:
    """Whether the signed text says that it is a signature of that very image."""
    critical = (manifests.parse(payload) or {}).get("critical")
    image = critical.get("image") if isinstance(critical, dict) else None
    return (
        isinstance(critical, dict)
        and isinstance(image, dict)
        and critical.get("type") == _TYPE
        and image.get("docker-manifest-digest") == digest
    )


def _fits(key: Any, signature: bytes, payload: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512

    if not isinstance(key, ec.EllipticCurvePublicKey):
        return _verifies(key, signature, payload, None)
    # Older cosign took SHA-256 for every curve, newer ones take the hash that is as long as the key.
    hashes: dict[int, Any] = {384: SHA384, 521: SHA512}
    own = hashes.get(key.curve.key_size, SHA256)
    return any(_verifies(key, signature, payload, ec.ECDSA(algorithm())) for algorithm in dict.fromkeys((SHA256, own)))


def _verifies(key: Any, signature: bytes, payload: bytes, ecdsa: Any) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if ecdsa:
            key.verify(signature, payload, ecdsa)
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, payload, padding.PKCS1v15(), SHA256())
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, payload)
        else:
            return False
    except InvalidSignature:
        return False
    return True
