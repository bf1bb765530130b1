# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exception that the library raises for everything that a user can cause or fix, and helpers for messages."""

from __future__ import annotations


class NpuError(Exception):
    """What is wrong, where, and what to do about it, as one message.

    ``details`` (a dict of plain data) are added to the module's result for programs.
    """

    def __init__(self, message, **details):
        super().__init__(message)
        self.message = message
        self.details = details


class NoVerdict(NpuError):
    """The check could not be performed: the failure is a problem of this machine and says nothing about its chips."""


def printable(text, limit=300):
    """Text from an untrusted source, for a message: without control characters, and shortened."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= limit else text[:limit] + "..."


def one_line(text):
    """Text of another program, for use inside a sentence: without line breaks and the final period."""
    return " ".join(str(text or "").split()).rstrip(".") or "no reason given"


_PROGRAMS = ("kubectl", "ansible-playbook")  # a period at the end would be part of the command that people copy


def sentence(text):
    """With a capital letter and a final period, unless it contains a command."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") or any(program in text for program in _PROGRAMS) else text + "."
