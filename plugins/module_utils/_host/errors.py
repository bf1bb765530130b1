# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one exception the library raises for what a user can cause or repair."""

from __future__ import annotations


class NpuError(Exception):
    """What is wrong, where, and what to do about it, as one readable message.

    ``details`` (a dict of plain data) is added to the module's result, for machines.
    """

    def __init__(self, message, **details):
        super().__init__(message)
        self.message = message
        self.details = details


class NoVerdict(NpuError):
    """The question could not be put: what went wrong tells something about this machine, nothing about its chips."""


def printable(text, limit=300):
    """What somebody else calls a thing, for a message: nothing in it moves a cursor, and it has an end."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= limit else text[:limit] + "..."


def one_line(text):
    """What somebody else says, to stand inside a sentence of ours: without line breaks and final full stop."""
    return " ".join(str(text or "no reason given").split()).rstrip(".")


def sentence(text):
    """With a capital and a full stop, unless it ends in a command."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") or "kubectl" in text else text + "."
