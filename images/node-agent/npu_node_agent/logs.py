# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log to standard output, one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
import time

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": "%s.%03dZ" % (seconds, record.msecs),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line.update((key, value) for key, value in vars(record).items() if key not in _ORDINARY)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def setup(level: str) -> None:
    """Log everything from ``level`` (a name as in logging) to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Json())
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    # Only the agent's own messages: grpclib also reports peers that disconnect during a call, which is normal here.
    logging.getLogger(__package__).setLevel(level.upper())
