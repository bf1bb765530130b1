# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts have the words of Kubernetes' documentation, and dev/words.py says where they have not."""

from __future__ import annotations

import sys

import pytest

from support.paths import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "dev"))

import words  # noqa: E402

PYTHON, TEST, YAML, PAGE, TEMPLATE = (
    "plugins/plugin_utils/a.py",
    "tests/unit/a.py",
    "roles/a/tasks/main.yml",
    "docs/a.md",
    "roles/a/templates/a.yaml.j2",
)


@pytest.mark.parametrize("name", [PYTHON, TEST, YAML, PAGE, TEMPLATE])
def test_it_is_read(name):
    assert words.FILES.fullmatch(name)


@pytest.mark.parametrize("name", ["docs/a.yml", "tests/a.json", "bench/README.md"])
def test_it_is_not_read(name):
    assert not words.FILES.fullmatch(name)


@pytest.mark.parametrize(
    "name, text, line, word",
    [
        (PYTHON, 'A = 1\nSAID = "changed by %s, or somebody else"\n', 2, "somebody else"),
        (PYTHON, 'SAID = (\n    "the file stays"\n    " as it is"\n)\n', 2, "stays as it is"),
        (PYTHON, 'DOCUMENTATION = r"""\nmodule: a\ndescription: Tried once more.\n"""\n', 3, "once more"),
        (PYTHON, 'SAID = f"{A} begins anew"\n', 1, "anew"),
        (PYTHON, '"""It begins."""\n\n\ndef a():\n    """It begins\n    anew."""\n', 6, "anew"),
        (TEST, "A = 1  # one\n\n# It stays\n# as it is.\nB = 2\n", 3, "stays # as it is"),
        (YAML, "- name: Look\n  fail:\n    msg: >-\n      Nobody did it\n", 4, "Nobody"),
        (YAML, "msg: >-\n  both stay as\n  they are\n", 2, "stay as they are"),
        (TEMPLATE, "{# a comment #}\nsummary: the chip is gone\n", 2, "is gone"),
        (PAGE, "# A page\n\nIt is due\nas well.\n", 4, "as well"),
        (PAGE, "| `node` | whoever launched it |\n", 1, "whoever"),
    ],
)
def test_a_word(name, text, line, word):
    (problem,) = words.problems(name, text)
    assert problem.startswith(f"{name}:{line}: {word}: ") and problem.removeprefix(f"{name}:{line}: {word}: ")


@pytest.mark.parametrize(
    "name, text",
    [
        (PYTHON, '"""What was told is gone."""\n\n\ndef a():\n    """An ill chip."""\n    # told\n'),
        (TEST, 'SAID = "nobody"\nB = "Nobody did it"\n'),
        (PYTHON, 'a["told"], b = c.gone, "nobody"\n'),
        (PYTHON, 'SAID = "user: nobody is mapped"  # words: ok\n'),
        (PYTHON, 'DOCUMENTATION = r"""\nuser: the account nobody  # words: ok\n"""\n'),
        (YAML, "# nobody\nuser: root  # not somebody\n"),
        (YAML, "user: nobody  # words: ok\n"),
        (TEMPLATE, "  # somebody else's\n{# nobody,\n anybody #}\nkind: Pod\n"),
        (PAGE, "The account `nobody`. <!-- words: ok -->\n"),
        (PAGE, "<!-- nobody sees this -->\nUse it as well as the other. The pod is still there.\n"),
    ],
)
def test_no_word(name, text):
    assert words.problems(name, text) == []


def test_the_checkout():
    files = dict(words.read(CHECKOUT))
    assert len(files) > 500
    assert [problem for name, text in files.items() for problem in words.problems(name, text)] == []
