# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubernetes.core's authentication options, for plugins: with that collection's own fragment a plugin could not be loaded without
it, and so not say that it is missing. A test holds the names against kubernetes.core's.

Nothing here has an ``env``: kubernetes.core itself looks at the environment, where an empty variable counts as none.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, several with V(:) between them, or the kubeconfig itself as a dictionary. A relative path begins
        in the current directory.
      - Without it, and without O(host) and O(context), it is the service account of the pod that Ansible runs in, then
        E(KUBECONFIG), then C(~/.kube/config).
      - Also E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description:
      - Name of a context of the kubeconfig. Without it, its current context.
      - Also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - URL of the API server.
      - Also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token.
      - Also E(K8S_AUTH_API_KEY).
    type: str
  username:
    description:
      - User name, with an API server that still knows HTTP Basic authentication.
      - Also E(K8S_AUTH_USERNAME).
    type: str
  password:
    description:
      - The password for O(username).
      - Also E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description:
      - Path of a client certificate (PEM).
      - Also E(K8S_AUTH_CLIENT_CERT) or E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - Path of the key for O(client_cert).
      - Also E(K8S_AUTH_CLIENT_KEY) or E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description:
      - Path of the authority's certificate, with the full chain, that the API server's certificate is checked with.
      - Also E(K8S_AUTH_CA_CERT) or E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description:
      - Whether the API server's certificate is checked.
      - Also E(K8S_AUTH_VALIDATE_CERTS) or E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - URL of an HTTP proxy. The usual variables such as E(HTTPS_PROXY) are not looked at.
      - Also E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description:
      - Hosts, domains and networks that are reached without O(proxy), separated by commas.
      - Also E(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description:
      - Headers for the HTTP proxy, with the keys V(proxy_basic_auth), V(basic_auth) (both C(user:password)) and V(user_agent).
        Also E(K8S_AUTH_PROXY_HEADERS_USER_AGENT) and so on.
    type: dict
  persist_config:
    description:
      - Whether the client may write tokens it renewed back into the kubeconfig.
      - Also E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description:
      - Act as this user.
      - Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Act as a member of these groups.
      - Also E(K8S_AUTH_IMPERSONATE_GROUPS), with commas between them.
    type: list
    elements: str
"""
