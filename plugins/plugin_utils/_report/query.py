# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""npu_query: a user's query of a playbook's result, as a JMESPath expression."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import bounded

try:
    import jmespath
    from jmespath.exceptions import EmptyExpressionError, IncompleteExpressionError, JMESPathError, LexerError, ParseError
    from jmespath.functions import Functions
    from jmespath.lexer import Lexer
except ImportError:
    jmespath = None  # type: ignore[assignment]  # ``check`` tells

_LONGEST = 4096
_TOO_MUCH = "it needs more than the memory that it may use"
# A fleet of thousands of nodes is answered in less than a second. Some characters can double an answer, though.
_SECONDS, _MEMORY, _MAX_ANSWER = 20, 2**29, 2**26

# What can be asked of which result; `nodes` is a list everywhere, each with its `name`.
KEYS = {
    "status": ("halted", "nodes", "problems", "rollouts", "storm"),
    "plan": (
        "capacity", "cluster_notes", "cluster_reasons", "components", "counts", "deferred", "due_nodes", "estimate_seconds",
        "green", "halted", "in_flight", "max_parallel", "nodes", "order", "park", "problem", "reason", "settled_nodes", "summary",
        "window",
    ),
    "report": (
        "approve", "components", "ended", "from", "go_on", "halted", "nodes", "reason", "run", "seconds", "started", "to",
        "workloads", "written",
    ),
}  # fmt: skip

_NODES = {
    "status": lambda source: source["fleet"],
    "plan": lambda source: source["hosts"].values(),
    "report": lambda source: source["nodes"],
}


def check(expression: str, kind: str) -> None:
    """Raise NpuError if ``expression`` cannot be asked of a result of this ``kind``, saying where it is wrong."""
    if jmespath is None:
        raise NpuError(
            "npu_query needs the Python library jmespath, which %s does not find: %s -m pip install jmespath"
            % (sys.executable, sys.executable)
        )
    if len(expression) > _LONGEST:
        raise NpuError("npu_query has %d characters, and may have %d. Ask for less at once" % (len(expression), _LONGEST))
    try:
        _check(expression, kind)
    except RecursionError:
        raise NpuError("npu_query is nested too deeply. Use fewer parentheses, brackets and negations") from None


def _check(expression: str, kind: str) -> None:
    try:
        tree = jmespath.compile(expression).parsed
    except JMESPathError as exc:
        raise _wrong(expression, kind, *_place(exc, expression)) from None
    for name, arguments in _calls(tree):
        if name not in Functions.FUNCTION_TABLE:
            raise _wrong(expression, kind, _first(expression, name, "lparen"), "there is no function %s" % name)
        signature = Functions.FUNCTION_TABLE[name]["signature"]
        more = bool(signature) and bool(signature[-1].get("variadic"))
        if arguments < len(signature) or (arguments > len(signature) and not more):
            told = "%s%d argument%s" % ("at least " if more else "", len(signature), "" if len(signature) == 1 else "s")
            raise _wrong(expression, kind, _first(expression, name, "lparen"), "%s takes %s, not %d" % (name, told, arguments))
    for name in _top_level(tree):
        if name not in KEYS[kind]:
            raise _wrong(expression, kind, _first(expression, name), "there is no top-level key %s" % name)


def problem(expression: str, kind: str, rest: str = "") -> str:
    """Why ``expression`` cannot be asked, or an empty text. ``rest``: what Ansible has cut off it at a space."""
    if not expression:
        return ""
    if rest:
        return (
            "Ansible has cut npu_query off at a space, before: %s. Put a second pair of quotes around an expression with spaces,"
            """ such as -e 'npu_query="nodes[].[name, node]"', or leave the spaces out""" % rest
        )
    try:
        check(expression, kind)
    except NpuError as exc:
        return exc.message
    return ""


def answer(expression: str, kind: str, result: Mapping[str, Any]) -> Any:
    """What ``expression`` finds in ``result``: a text, a list of texts, or other data. Without one, the table."""
    if not expression:
        return _plain(result["table"])
    check(expression, kind)
    data = document(kind, result)
    try:
        found, why = bounded.call(lambda: _search(expression, data), _SECONDS)
    except bounded.TimeIsUp:
        found, why = "", "it takes more than %d seconds" % _SECONDS
    except (bounded.Cut, AnsibleError):
        found, why = "", _TOO_MUCH
    if why:
        told = "npu_query cannot be answered: %s. The expression is: %s" % (why.rstrip("."), expression)
        if kind == "report":
            # All is done. How it came out must be told, and is what the run fails for.
            return [*result["table"], "", told]
        raise NpuError(told)
    answered = json.loads(found)
    return answered if isinstance(answered, (str, list, dict)) else found


def _search(expression: str, data: dict[str, Any]) -> tuple[str, str]:
    """The answer as JSON, and why there is none. In a process of its own, whose memory it limits."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY if hard < 0 else min(used + _MEMORY, hard), hard))
    try:
        found = json.dumps(jmespath.search(expression, data))
    except (ValueError, TypeError) as exc:
        return "", str(exc)
    except (MemoryError, RecursionError):
        return "", _TOO_MUCH
    return (found, "") if len(found) <= _MAX_ANSWER else ("", _TOO_MUCH)


def document(kind: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked: a dict with KEYS[kind]."""
    source = result["report"] if kind == "report" else result
    nodes = [dict(node, name=node["node"]) for node in _NODES[kind](source)]
    # jmespath goes by the very types of JSON; what Ansible registers are others.
    return json.loads(json.dumps(_plain({key: nodes if key == "nodes" else source[key] for key in KEYS[kind]})))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value


def _wrong(expression: str, kind: str, place: int, why: str) -> NpuError:
    where = " at character %d, after -->: %s-->%s" % (place + 1, expression[:place], expression[place:])
    return NpuError("npu_query is wrong%s (%s). The top-level keys are %s" % (where, why, ", ".join(KEYS[kind])))


def _place(exc: Exception, expression: str) -> tuple[int, str]:
    """(where, counted from 0; why)."""
    if isinstance(exc, (EmptyExpressionError, IncompleteExpressionError)):
        return len(expression), "it ends too early"
    if isinstance(exc, LexerError):
        return exc.lexer_position, exc.message
    if isinstance(exc, ParseError):
        return exc.lex_position, "unexpected %s" % exc.token_value
    return 0, str(exc)


def _first(expression: str, name: str, then: str | None = None) -> int:
    """Where ``name`` stands first, with a token of the type ``then`` behind it."""
    tokens = list(Lexer().tokenize(expression))
    return next(one["start"] for one, two in zip(tokens, tokens[1:]) if one["value"] == name and then in (None, two["type"]))


def _calls(tree: Any) -> Iterator[tuple[str, int]]:
    """(name, number of arguments) of each function that is called."""
    if not isinstance(tree, dict):  # the numbers of a slice
        return
    if tree["type"] == "function_expression":
        yield tree["value"], len(tree["children"])
    for child in tree["children"]:
        yield from _calls(child)


def _top_level(tree: Any) -> Iterator[str]:
    """Names of the fields that are asked of the document itself."""
    kind, children = tree["type"], tree["children"]
    if kind == "field":
        yield tree["value"]
    elif kind in _FIRST_ONLY:
        yield from _top_level(children[0])
        # What follows @ is asked of the document too.
        if kind in ("subexpression", "pipe") and children[0]["type"] == "current":
            yield from _top_level(children[1])
    elif kind in _ALL:
        for child in children:
            yield from _top_level(child)


# What is asked of the same as the expression around it: the first of the parts, or each.
_FIRST_ONLY = ("subexpression", "index_expression", "pipe", "projection", "value_projection", "filter_projection", "flatten")
_ALL = (
    "and_expression", "comparator", "function_expression", "key_val_pair", "multi_select_dict", "multi_select_list",
    "not_expression", "or_expression",
)  # fmt: skip
