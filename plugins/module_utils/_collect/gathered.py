# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes into a bundle, and what does not and why: text only, without secrets and control characters, and limited in size."""

from __future__ import annotations

import time

from ansible_collections.npuops.ascend.plugins.module_utils._collect.member_names import directories_of, free_name, is_member_name
from ansible_collections.npuops.ascend.plugins.module_utils._collect.redaction import redact
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable

MOST_FILES = 2000
MOST_LEFT_OUT = 1000
_LONGEST_REASON = 600
_CONTROL = {code: "?" for code in [*range(32), *range(127, 160)] if chr(code) not in "\n\t"}


class Gathered:
    """``files``: [{name, source, cut, text}]; ``left_out``: [{what, why, absent}], and ``more_left_out``, how many are not in that
    list; ``used``: bytes of all texts so far.

    limit: bytes of all texts; seconds: after which nothing more is begun. ``absent`` marks what the host or cluster does not have,
    in contrast to what could not be read.
    """

    def __init__(self, limit, seconds, now=time.monotonic):
        self.files = []
        self.left_out = []
        self.more_left_out = 0
        self._limit = limit
        self.used = 0
        self._names = set()
        self._directories = set()
        self._now = now
        self._deadline = now() + seconds

    @property
    def room(self):
        """Bytes that are left."""
        return max(0, self._limit - self.used)

    @property
    def seconds(self):
        """Seconds that are left."""
        return max(0.0, self._deadline - self._now())

    def add(self, name, text, source, cut=False):
        """Add the member ``name``, with where its text is from, and whether only the last part of that is in it.

        If the name is taken, the member gets one like it.
        """
        if not is_member_name(name):
            raise ValueError("%r is not a name of a member" % name)
        text = redact(text.replace("\r\n", "\n")).translate(_CONTROL)
        size = len(text.encode("utf-8", "replace"))
        if size > self.room or len(self.files) >= MOST_FILES:
            self.leave_out(source, "the bundle has reached its limit of %d bytes or %d files" % (self._limit, MOST_FILES))
            return
        self.used += size
        name = free_name(name, self._names, self._directories)
        self._names.add(name)
        self._directories.update(directories_of(name))
        self.files.append({"name": name, "source": printable(source), "cut": bool(cut), "text": text})

    def leave_out(self, what, why, absent=False):
        """Note that ``what`` is not in the bundle, and why."""
        if len(self.left_out) >= MOST_LEFT_OUT:
            self.more_left_out += 1
            return
        # The message of a failed program may quote what it printed.
        why = printable(" ".join(redact(why).split()), _LONGEST_REASON)
        self.left_out.append({"what": printable(what), "why": why, "absent": bool(absent)})

    def has_time(self, what):
        """Whether there is time to begin with ``what``; notes that it is left out if not."""
        if self.seconds > 0:
            return True
        self.leave_out(what, "the time limit was reached before it was begun")
        return False
