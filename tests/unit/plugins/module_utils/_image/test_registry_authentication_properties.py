# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Challenges of registries, in any form that RFC 9110 allows, and in others."""

from __future__ import annotations

import urllib.parse

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_authentication import Authentication
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import RegistryError
from hypothesis import given
from hypothesis import strategies as st

from support.properties import STRANGE, bounded, damaged, few

# A header line that http.client accepts has at most so many bytes.
LINE = 65536


class Connection:
    registry = "r.example"
    plain_http = False


def request(challenge, username="u"):
    """The request for a token, or None if it is refused as documented."""
    try:
        with bounded():
            return Authentication(Connection(), username, "secret")._token_request(challenge, "mlops/d", "pull")
    except RegistryError as exc:
        assert "r.example" in exc.message and exc.message.isprintable() and len(exc.message) < 1000
        return None


hosts = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{2,4}){1,2}(:[1-9][0-9]{1,3})?", fullmatch=True)
paths = st.sampled_from(("/token", "/service/token", "/v2/auth", "", "/t?x=1", "/t?a=b&c=d"))
services = st.text("abcXYZ019 .:/-_=", min_size=1, max_size=20).map(str.strip).filter(bool)
blanks = st.sampled_from(("", " ", "  "))


@st.composite
def challenges(draw):
    realm, service = "https://" + draw(hosts) + draw(paths), draw(services)
    parameters = [("realm", realm), ("service", service), ("scope", "repository:x:pull"), ("error", "invalid_token")]
    parameters = draw(st.permutations(parameters[: draw(st.integers(2, 4))]))
    written = []
    for name, value in parameters:
        name = draw(st.sampled_from((name, name.upper(), name.title())))
        plain = value.replace("-", "").isalnum() and draw(st.booleans())
        written.append("%s=%s" % (name, value if plain else '"%s"' % value))
    separator = "," + draw(blanks)
    return realm, service, draw(st.sampled_from(("Bearer ", "bearer ", "BEARER  "))) + separator.join(written)


@given(challenges())
def test_the_token_service_that_is_named_is_asked(challenge):
    realm, service, text = challenge
    made = request(text)
    asked = urllib.parse.urlsplit(made.full_url)
    assert made.full_url.startswith(realm) and asked.netloc == urllib.parse.urlsplit(realm).netloc
    query = urllib.parse.parse_qs(asked.query)
    assert query["service"] == [service] and query["scope"] == ["repository:mlops/d:pull"]


@given(
    st.one_of(
        damaged(
            challenges().map(lambda made: made[2]),
            (
                "realm=",
                '"',
                ",",
                "http://",
                " http://",
                "HTTP://",
                "\x01http://",
                "h\tttp://",
                "file:///etc/passwd",
                "https://a:b@c/",
                "[",
                "%00",
                "\r\nX: y",
            ),
        ),
        st.text(max_size=40).map("Bearer ".__add__),
        st.text(STRANGE, max_size=12).map('Bearer realm="https://x.example/%s"'.__mod__),
    )
)
def test_no_other_service_gets_the_password(text):
    made = request(text)
    if made is not None:
        url = urllib.parse.urlsplit(made.full_url)
        assert url.scheme == "https" and url.hostname
        assert made.full_url.isascii() and not set(" \r\n\0") & set(made.full_url)


@few
@given(
    st.sampled_from(('"', "a", "a=", 'a="', "realm=", "=", " ", ",", '\\"', 'realm="https://x.example/",', "A_a")),
    st.sampled_from(("", 'realm="', "x", "service=")),
)
def test_the_longest_header_is_read_or_refused_in_time(piece, start):
    text = "Bearer " + start + piece * (LINE // len(piece))
    try:
        with bounded(3):
            request(text[:LINE])
    except NpuError:
        raise AssertionError("not a RegistryError") from None
