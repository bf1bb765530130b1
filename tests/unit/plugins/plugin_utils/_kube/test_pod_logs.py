# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a pod's log, of a kubelet that keeps the beginning of what it is asked for, and of one that sends without end."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import pod_logs

POD = "/api/v1/namespaces/n/pods/p"


def test_the_newest_lines_are_kept(api, cluster):
    api.logs["p"] = "".join("line %d of a long log\n" % number for number in range(1000))
    found = pod_logs.tail(cluster, POD, 500, 100)
    assert found == ("".join("line %d of a long log\n" % number for number in range(996, 1000)), True, True)
    assert pod_logs.tail(cluster, POD, 2, 100) == ("line 998 of a long log\nline 999 of a long log\n", True, True)


def test_a_short_log_is_whole(api, cluster):
    api.logs["p"] = "one\ntwo"
    assert pod_logs.tail(cluster, POD, 5, 100) == ("one\ntwo", False, True)
    assert pod_logs.tail(cluster, "/api/v1/namespaces/n/pods/q", 5, 100) == ("", False, True)


def test_a_log_without_end_is_not_read_to_its_end(api, cluster, endless):
    api.logs["p"] = endless
    found = pod_logs.tail(cluster, POD, 5, 1000)
    assert found == ("", True, False) and endless.sent < endless.all
    # The next request is not answered with the rest.
    api.logs["p"] = "next\n"
    assert pod_logs.tail(cluster, POD, 5, 1000).text == "next\n"


def test_a_log_that_comes_too_slowly(api, cluster, monkeypatch):
    api.logs["p"] = (b"piece\n" for _number in range(100))
    monkeypatch.setattr(pod_logs, "_SECONDS", 0)
    found = pod_logs.tail(cluster, POD, 5, 1000)
    assert found.text.startswith("piece\n") and not found.ended


def test_an_answer_that_breaks_off(api, cluster):
    def breaks():
        yield b"one\n"
        raise OSError

    api.logs["p"] = breaks()
    with pytest.raises(kube_client.Unreachable):
        pod_logs.tail(cluster, POD, 5, 1000)
    assert pod_logs.last_lines(cluster, POD, 5) == []


def test_what_only_explains(api, cluster, endless):
    api.logs["p"] = "a\nb\n" + "".join(" x%d\n\n" % number + "x" * 16000 + "\n" for number in range(2))
    assert [line[:4] for line in pod_logs.last_lines(cluster, POD, 5)] == ["xxxx", "x1", "xxxx"]
    api.logs["p"] = "unable to retrieve container logs for containerd://634a6d02f17f"
    assert pod_logs.last_lines(cluster, POD, 5) == []
    api.logs["p"] = endless
    (line,) = pod_logs.last_lines(cluster, POD, 5)
    assert set(line) == {"x"} and len(line) == 5 * 32 * 1024
