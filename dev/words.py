# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that no text that users read has words that are unusual in the documentation of Kubernetes.

These texts are the strings of plugins and of the node agent, but not their docstrings, the values in the YAML files of
roles, playbooks and extensions, and the Markdown files. A line is an exception if it ends with ``# words: ok``, or in
Markdown with ``<!-- words: ok -->``.
"""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

# What to look for, in any case and across the ends of lines, and what to write instead.
WORDS = {
    r"somebody( else)?('s)?": "say who: a user, an administrator, another client; or write it in the passive",
    r"(no|any)body": "say who, such as no user, any client, all who; or write it in the passive",
    r"whoever": "say who: the user, the account, an administrator who",
    r"stay(s|ed)? as (it|they) (is|are|was|were)": "left unchanged; is not changed; keeps",
    r"(leave|leaves|left|kept|used)( \S+){0,6} as (it|they) (is|are)": "unchanged; does not change",
    r"anew": "again; starting over",
    r"(what|that|it|they|already) (is|are|was|were) there(?! (a|an|no|any)\b)": "exists; is installed; is present",
    r"(is|are) there(?=[.,;:)]| twice| already)": "exists; is installed; is listed",
    r"is no name of": "is not the name of; is not a valid name for",
    r"once more": "again",
    r"as well(?! as\b)": "also, before the verb",
    r"the one or the other": "either; one of them",
    r"told": "reported; printed; announced",
    r"ill": "unhealthy; not OK",
    r"(is|are) (not )?gone|gone from": "missing; deleted; no longer exists",
}
PATTERNS = {
    re.compile(rf"(?<![\w.-])(?:{word})(?![\w-])".replace(" ", r"\s+"), re.IGNORECASE): advice for word, advice in WORDS.items()
}
KEY = re.compile(r"\w+")  # a string of one word
OK = re.compile(r"# words: ok|<!-- words: ok -->")
# Comments are for developers. They are replaced with spaces, so that lines keep their numbers.
COMMENT = {
    ".yml": re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE),
    ".j2": re.compile(r"\{#.*?#\}|^\s*#[^\n]*", re.DOTALL | re.MULTILINE),
    ".md": re.compile(r"<!--.*?-->", re.DOTALL),
}
FILES = re.compile(
    r"(plugins/.*|images/node-agent/npu_node_agent/.*)\.py|(plugins|roles|playbooks|extensions)/.*\.(yml|j2)|"
    r"((docs|roles|images|lab|plugins|extensions)/.*)?[^/]*\.md|changelogs/fragments/.*\.yml"
)


def strings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a Python program that are neither docstrings nor keys, each with the number of its first line."""
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.body and isinstance(node.body[0], ast.Expr):
                docstrings.add(node.body[0].value)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in docstrings
            and not KEY.fullmatch(node.value)
        ):
            yield node.lineno, node.value


def texts(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield what users read of the file `name`, in pieces, each with the number of its first line."""
    if name.endswith(".py"):
        yield from strings(text)
    else:
        yield 1, COMMENT[pathlib.Path(name).suffix].sub(lambda comment: re.sub(r".", " ", comment[0]), text)


def line_of(lines: list[str], first: int, piece: str, found: re.Match[str]) -> int:
    """Return the number of the line in which a word begins that was found in the text `piece`, which begins at `first`."""
    number = first + piece.count("\n", 0, found.start())
    # A string of several literals has its parts on lines of their own.
    begin = re.split(r"\s", found[0])[0]
    return next((line for line in range(number, len(lines) + 1) if begin in lines[line - 1]), number)


def problems(name: str, text: str) -> list[str]:
    """Return one sentence for every word in the text of the file `name` that should not be there."""
    lines = text.split("\n")
    found = [
        (line_of(lines, first, piece, match), " ".join(match[0].split()), advice)
        for first, piece in texts(name, text)
        for pattern, advice in PATTERNS.items()
        for match in pattern.finditer(piece)
    ]
    return [f"{name}:{line}: {word}: {advice}" for line, word, advice in sorted(found) if not OK.search(lines[line - 1])]


def read(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file in the checkout `root` that has something for users."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = root / name
        if FILES.fullmatch(name) and path.is_file() and not path.is_symlink():
            yield name, path.read_text(encoding="utf-8")


if __name__ == "__main__":
    found = dict(read(pathlib.Path()))
    bad = [line for name, text in found.items() for line in problems(name, text)]
    print("\n".join(bad) if bad else f"{len(found)} files, all in the words of the documentation")
    sys.exit(bool(bad))
