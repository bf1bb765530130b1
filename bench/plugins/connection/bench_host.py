# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a host of bench/rollout_hosts.py: the call of a module goes there, and its answer comes back."""

from __future__ import annotations

DOCUMENTATION = """
name: bench_host
short_description: hosts of a benchmark
description: Hosts of a benchmark.
author: npuops.ascend maintainers (@npuops)
options: {}
"""

import ast
import json
import os
import re
import socket

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

# In what Ansible sends to a host's Python.
_MODULE = re.compile(rb"\nansible_module='([\w.]+)',")
_ARGUMENTS = re.compile(rb"\nparams=('.*?'),\nextensions=", re.DOTALL)


class Connection(ConnectionBase):
    transport = "bench_host"
    has_pipelining = True

    def _connect(self):
        self._connected = True
        return self

    def exec_command(self, cmd, in_data=None, sudoable=True):
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if not in_data:
            raise AnsibleConnectionFailure("a host of the benchmark runs modules only, not %r" % cmd)
        call = {
            "host": self._play_context.remote_addr,
            "module": _MODULE.search(in_data)[1].decode(),
            "arguments": json.loads(ast.literal_eval(_ARGUMENTS.search(in_data)[1].decode()))["ANSIBLE_MODULE_ARGS"],
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.environ["NPU_BENCH_HOSTS"])
            connection.sendall(json.dumps(call).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer = json.loads(stream.read())
        if answer is None:
            raise AnsibleConnectionFailure("Connection refused")
        return 0, json.dumps(answer).encode(), b""

    def put_file(self, in_path, out_path):
        raise AnsibleConnectionFailure("a host of the benchmark takes no files")

    fetch_file = put_file

    def close(self):
        self._connected = False

    reset = close
