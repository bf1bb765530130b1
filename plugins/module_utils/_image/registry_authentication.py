# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication with a registry: Basic, and Bearer, whose token is fetched from the registry's token service.

Source: https://distribution.github.io/distribution/spec/auth/token/
"""

from __future__ import annotations

import base64
import re
import urllib.error
import urllib.parse
import urllib.request

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_http
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry_errors import RegistryError

_MAX_TOKEN = 64 * 1024

# Without the lookbehind, a header of 64 KiB takes ten seconds.
_PARAMETER = re.compile(r'(?<![A-Za-z_])([A-Za-z_]+)=(?:"([^"]*)"|([^\s,"]+))')


class Authentication:
    """The Authorization headers for one registry, kept per repository and actions ("pull" or "pull,push")."""

    def __init__(self, connection, username, password):
        self._connection = connection
        self._username = username
        self._password = password
        self._headers = {}

    def header(self, repository, actions):
        """The header that the last challenge gave, or None."""
        return self._headers.get((repository, actions))

    def forget(self, repository, actions):
        """Let the next request be challenged again, so that it gets a fresh token."""
        self._headers.pop((repository, actions), None)

    def answer(self, challenges, repository, actions, watch):
        """Answer the WWW-Authenticate headers of a 401; from then on ``header`` returns the result."""
        bearer = next((text for text in challenges if text.lower().startswith("bearer ")), None)
        header = self.basic() if bearer is None else "Bearer " + self._fetch_token(bearer, repository, actions, watch)
        self._headers[(repository, actions)] = header

    def basic(self):
        """The header for Basic authentication, or None without a user name."""
        if not self._username:
            return None
        pair = "%s:%s" % (self._username, self._password or "")
        return "Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii")

    def _fetch_token(self, challenge, repository, actions, watch):
        """Ask the token service that the challenge names for a token."""
        connection = self._connection
        try:
            with connection.send(self._token_request(challenge, repository, actions), watch) as response:
                document = connection.document(connection.read(response), "token")
        except urllib.error.HTTPError as exc:
            with exc:
                raise connection.error(exc, "GET", repository) from None
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or len(token) > _MAX_TOKEN or not re.match(r"[!-~]+\Z", token):
            raise RegistryError("The token service of registry %s sent no token" % connection.registry)
        return token

    def _token_request(self, challenge, repository, actions):
        connection = self._connection
        fields = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(challenge[len("bearer ") :])}
        realm = fields.get("realm", "")
        try:
            registry_http.check_url(realm, plain_http=True)
            # urlsplit overlooks control characters and blanks in a URL; not all that use it do.
            if not realm.isascii() or not realm.isprintable() or " " in realm:
                raise ValueError(realm)
            service = urllib.parse.urlsplit(realm)
        except (registry_http.Refused, ValueError):
            raise RegistryError("Registry %s requires a token, but names no token service" % connection.registry) from None
        if service.scheme == "http" and not connection.plain_http and self._username:
            raise RegistryError(
                "Registry %s wants the password sent to %s, which is not encrypted; refused"
                % (connection.registry, printable(service.netloc))
            )
        query = {"scope": "repository:%s:%s" % (repository, actions)}
        if fields.get("service"):
            query["service"] = fields["service"]
        try:
            request = urllib.request.Request(realm + ("&" if "?" in realm else "?") + urllib.parse.urlencode(query))
        except ValueError:
            raise RegistryError("Registry %s requires a token, but names no token service" % connection.registry) from None
        if self._username:
            request.add_unredirected_header("Authorization", self.basic())
        return request
