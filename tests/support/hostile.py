# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text as an attacker writes it into a Node, a file of a host or an image: a template that leaves a file where it is evaluated."""

from __future__ import annotations

import shlex

# Jinja's delimiters are what a string says of itself in its first line; there need be no brace in it.
_HEADER = "#jinja2:variable_start_string:'[[',variable_end_string:']]'\n[[ %s ]]"
_FORMS = (_HEADER, "{{ %s }}", "{%% if %s %%}x{%% endif %%}", "#jinja2:\n{{ %s }}")
# What each of them still has in it when it is shown and not evaluated.
SHOWN = "lookup('ansible.builtin.pipe'"


def templates(canary):
    """Strings of each form; the file ``canary`` is there after one of them was evaluated."""
    call = "lookup('ansible.builtin.pipe', 'touch %s')" % shlex.quote(str(canary))
    return [form % call for form in _FORMS]


def everywhere(text, value):
    """``value`` with every string in it replaced by ``text``, in the same structure."""
    if isinstance(value, dict):
        return {key: everywhere(text, item) for key, item in value.items()}
    if isinstance(value, list):
        return [everywhere(text, item) for item in value]
    return text if isinstance(value, str) else value
