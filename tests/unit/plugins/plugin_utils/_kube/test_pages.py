# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page that is requested ahead is the page that the caller would have requested, or none."""

from __future__ import annotations

import json
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import pages


def page(token, items=("a",)):
    """As an API server writes it."""
    more = '"resourceVersion":"170"' + (',"continue":"%s","remainingItemCount":7' % token if token else "")
    return '{"kind":"PodList","apiVersion":"v1","metadata":{%s},"items":%s}\n' % (more, json.dumps(items))


class Server:
    """Its pages by token; ``asked``: the tokens in order."""

    def __init__(self, texts):
        self.texts, self.asked, self.answers = texts, [], threading.Event()
        self.answers.set()

    def __call__(self, token):
        self.asked.append(token)
        assert self.answers.wait(60)
        if token not in self.texts:
            raise NpuError("gone")
        return self.texts[token]


def test_the_next_page_is_requested_before_this_one_is_read():
    server = Server({"one": page("two-2_=", ["a"]), "two-2_=": page("three", ["b"]), "three": page(None, ["c"])})
    ahead = pages.Ahead(server)
    ahead.begin("one")
    ahead.begin("one")
    assert ahead.take("one")["items"] == ["a"]
    ahead.begin("two-2_=")
    assert ahead.take("two-2_=")["items"] == ["b"] and ahead.take("three")["items"] == ["c"]
    assert server.asked == ["one", "two-2_=", "three"]
    assert ahead.take("three") is None and ahead.take(None) is None


@pytest.mark.parametrize("text", ["", "<html>", "[1]", '"x"', "[" * 100_000, '{"kind":"PodList"'])
def test_what_is_no_page_is_left_to_the_caller(text):
    ahead = pages.Ahead(Server({"one": text}))
    ahead.begin("one")
    assert ahead.take("one") is None


def test_what_fails_is_left_to_the_caller():
    ahead = pages.Ahead(Server({}))
    ahead.begin("one")
    assert ahead.take("one") is None


@pytest.mark.parametrize(
    "text",
    [
        '{"items":[{"metadata":{"continue":"theirs"}}],"metadata":{}}',
        '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"continue":"theirs"}}]}',
    ],
)
def test_a_token_in_an_item_is_not_that_of_the_list(text):
    server = Server({"one": text})
    ahead = pages.Ahead(server)
    ahead.begin("one")
    assert ahead.take("one")["items"] and server.asked == ["one"]


def test_what_comes_for_another_token_is_not_taken():
    server = Server({"one": page(None, ["a"]), "two": page(None, ["b"])})
    server.answers.clear()
    ahead = pages.Ahead(server)
    ahead.begin("one")
    late = ahead._thread
    ahead.begin("two")
    server.answers.set()
    late.join()
    found = ahead.take("two")
    assert found is None or found["items"] == ["b"]
