# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack zstd, as kernels of Ubuntu have their modules: with Python 3.14, or else with the host's zstd, which its initramfs needs.

Both accept a window of 128 MiB at most, and nothing that unpacks to more than a limit.
"""

from __future__ import annotations

import importlib
import os
import select
import subprocess
import tempfile
import time

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

try:
    _found = importlib.import_module("compression.zstd")
except ImportError:
    _found = None  # type: ignore[assignment]
_library = _found  # None before Python 3.14

# Not by PATH: it is run as root.
PROGRAMS = ("/usr/bin/zstd", "/bin/zstd")
_SECONDS = 20
_WINDOW_LOG = 27
_CHUNK = 2**20


def unpack(content, limit):
    """At most ``limit`` + 1 bytes of what is packed in ``content``. Raises NpuError."""
    return _with_library(content, limit) if _library is not None else _with_program(content, limit)


def _with_library(content, limit):
    options = {_library.DecompressionParameter.window_log_max: _WINDOW_LOG}
    try:
        decompressor = _library.ZstdDecompressor(options=options)
        unpacked = decompressor.decompress(content, limit + 1)
    except (_library.ZstdError, MemoryError) as exc:
        raise NpuError(str(exc)) from None
    if len(unpacked) <= limit and not decompressor.eof:
        raise NpuError("it is truncated")
    return unpacked


def _with_program(content, limit):
    program = next((path for path in PROGRAMS if os.access(path, os.X_OK)), None)
    if program is None:
        raise NpuError("it is packed with zstd, and this host has neither %s nor Python 3.14" % PROGRAMS[0])
    try:
        with tempfile.TemporaryFile() as packed:
            packed.write(content)
            packed.seek(0)
            return _output([program, "-d", "-c", "-q"], packed, limit)
    except OSError as exc:
        raise NpuError("%s cannot be used: %s" % (program, exc.strerror or exc)) from None


def _output(command, source, limit):
    # run_command would keep all of its output, however much that is.
    process = subprocess.Popen(  # pylint: disable=ansible-bad-function
        command,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        start_new_session=True,
    )
    output, deadline, parts, size = process.stdout.fileno(), time.monotonic() + _SECONDS, [], 0
    try:
        while size <= limit:
            if not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise NpuError("zstd did not end within %d s" % _SECONDS)
            part = os.read(output, min(_CHUNK, limit + 1 - size))
            if not part:
                break
            parts.append(part)
            size += len(part)
        else:
            return b"".join(parts)
        if process.wait(_SECONDS) != 0:
            raise NpuError("it is damaged or truncated")
        return b"".join(parts)
    except subprocess.TimeoutExpired:
        raise NpuError("zstd did not end within %d s" % _SECONDS) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
