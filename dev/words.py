# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that no text has words that are unusual in the documentation of Kubernetes.

Users read the strings of plugins and of the node agent, the values in the YAML files of roles, playbooks and extensions, and the
Markdown files. Developers read the docstrings and comments of all Python files, where a few more words are usual. A line is an
exception if it ends with ``# words: ok``, or in Markdown with ``<!-- words: ok -->``.
"""

from __future__ import annotations

import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
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
}
# The same, where users read it.
WORDS_FOR_USERS = {
    r"told": "reported; printed; announced",
    r"ill": "unhealthy; not OK",
    r"(is|are) (not )?gone|gone from": "missing; deleted; no longer exists",
}


def patterns(words: dict[str, str], space: str) -> dict[re.Pattern[str], str]:
    """Compile them. `space` is what may separate two words."""
    return {
        re.compile(rf"(?<![\w.-])(?:{word})(?![\w-])".replace(" ", space), re.IGNORECASE): advice for word, advice in words.items()
    }


FOR_USERS = patterns(WORDS | WORDS_FOR_USERS, r"\s+")
FOR_DEVELOPERS = patterns(WORDS, r"(?:\s|#)+")  # also across the lines of a comment
KEY = re.compile(r"\w+")  # a string of one word
OK = re.compile(r"# words: ok|<!-- words: ok -->")
# In these files, comments are replaced with spaces, so that lines keep their numbers.
COMMENT = {
    ".yml": re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE),
    ".j2": re.compile(r"\{#.*?#\}|^\s*#[^\n]*", re.DOTALL | re.MULTILINE),
    ".md": re.compile(r"<!--.*?-->", re.DOTALL),
}
PROGRAMS = re.compile(r"(plugins/.*|images/node-agent/npu_node_agent/.*)\.py")
FILES = re.compile(
    r".*\.py|(plugins|roles|playbooks|extensions)/.*\.(yml|j2)|"
    r"((docs|roles|images|lab|plugins|extensions)/.*)?[^/]*\.md|changelogs/fragments/.*\.yml"
)


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                yield first.value


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings of a program that are neither docstrings nor keys, each with the number of its first line."""
    others = set(docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in others and not KEY.fullmatch(node.value):
            yield node.lineno, node.value


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a program, those on lines that follow each other together, each with the number of its first line."""
    first: int = 0
    together: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        alone = token.line.lstrip().startswith("#")
        if together and alone and token.start[0] == first + len(together):
            together.append(token.string)
            continue
        if together:
            yield first, "\n".join(together)
        first, together = token.start[0], [token.string]
    if together:
        yield first, "\n".join(together)


def texts(name: str, text: str) -> Iterator[tuple[int, str, dict[re.Pattern[str], str]]]:
    """Yield the pieces of the file `name`, each with the number of its first line and what to look for."""
    if not name.endswith(".py"):
        piece = COMMENT[pathlib.Path(name).suffix].sub(lambda comment: re.sub(r".", " ", comment[0]), text)
        yield 1, piece, FOR_USERS
        return
    tree = ast.parse(text)
    if PROGRAMS.fullmatch(name):
        yield from ((line, piece, FOR_USERS) for line, piece in strings(tree))
    yield from ((found.lineno, str(found.value), FOR_DEVELOPERS) for found in docstrings(tree))
    yield from ((line, piece, FOR_DEVELOPERS) for line, piece in comments(text))


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
        for first, piece, wanted in texts(name, text)
        for pattern, advice in wanted.items()
        for match in pattern.finditer(piece)
    ]
    return [f"{name}:{line}: {word}: {advice}" for line, word, advice in sorted(found) if not OK.search(lines[line - 1])]


def read(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file in the checkout `root` that has something to read."""
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
