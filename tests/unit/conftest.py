# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the checkout on the path as ansible_collections.npuops.ascend, and has a cluster of the test's own."""

from __future__ import annotations

import pytest

from support import collection  # noqa: F401  pylint: disable=unused-import
from support.kube.stub import ApiServer


@pytest.fixture(scope="session", autouse=True)
def lasting_directory(tmp_path_factory):
    """pytest makes its directory when the first test asks for one, and an API server of the tests may be the place just then."""
    tmp_path_factory.getbasetemp()


@pytest.fixture
def api():
    """The API server, empty."""
    with ApiServer() as server:
        yield server


class _Endless:
    """A line of a log that is ``all`` bytes long; ``sent``: bytes that were asked for."""

    all = 2**26

    def __init__(self):
        self.sent = 0

    def __iter__(self):
        while self.sent < self.all:
            self.sent += 2**16
            yield b"x" * 2**16


@pytest.fixture
def endless():
    """What ApiServer.logs may have."""
    return _Endless()


@pytest.fixture
def cluster(api):
    """A client of it."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import (
        client as kube_client,  # what runs on hosts is tested without it
    )

    return kube_client.connect({"host": api.address, "api_key": "token"})
