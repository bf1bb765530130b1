# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package on its way to a host, through the connection of an Ansible task: hosts need no way to where the package is from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import file_on_host
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import bounded
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource


@contextlib.contextmanager
def sent(action: ActionBase, path: str, source: PackageSource, seconds: int) -> Iterator[str]:
    """``with sent(...) as there``: the path of the package on the host, until the end of the block. Raises NpuError.

    ``path``: the file on the controller; ``seconds``: how long it may take.
    """
    place = action._connection._shell.tmpdir or action._make_tmp_path()  # noqa: SLF001
    there = action._connection._shell.join_path(place, file_on_host(source.digest))  # noqa: SLF001
    try:
        _send(action, path, there, source, seconds)
        # With become, another user than that of the connection reads it.
        action._fixup_perms2((place, there))  # noqa: SLF001
        yield there
    finally:
        with contextlib.suppress(AnsibleError):
            action._remove_tmp_path(place)  # noqa: SLF001


def _send(action: ActionBase, path: str, there: str, source: PackageSource, seconds: int) -> None:
    try:
        bounded.call(lambda: action._transfer_file(path, there), seconds)  # noqa: SLF001
    except AnsibleConnectionFailure:
        raise  # the host is unreachable, as any task says it
    except (bounded.TimeIsUp, bounded.Cut):
        raise NpuError("%s was not sent to the host within %d seconds" % (source.name, seconds)) from None
    except AnsibleError as exc:
        raise NpuError(
            "%s could not be sent to the host: %s. It needs %d MiB in the directory for temporary files (ansible_remote_tmp)"
            % (source.name, one_line(exc), -(-os.path.getsize(path) // 2**20))
        ) from None
