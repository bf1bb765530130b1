# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubernetes.core's authentication options, for plugins. A plugin that uses kubernetes.core's own fragment cannot be loaded without
that collection, and so cannot report that it is missing. A test compares the names with kubernetes.core's.

No option has an ``env``: kubernetes.core reads the environment itself and ignores empty variables.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig file, several paths separated by V(:), or the kubeconfig itself as a dictionary. A relative path is
        relative to the current directory.
      - By default, and without O(host) and O(context), the service account of the pod that Ansible runs in is used, then
        E(KUBECONFIG), then C(~/.kube/config).
      - Also E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description:
      - Name of a context in the kubeconfig. By default, its current context.
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
      - User name, for an API server that supports HTTP Basic authentication.
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
      - Path of the private key for O(client_cert) (PEM).
      - Also E(K8S_AUTH_CLIENT_KEY) or E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description:
      - Path of the CA certificate (PEM, with the full chain) that verifies the API server's certificate.
      - Also E(K8S_AUTH_CA_CERT) or E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description:
      - Whether to verify the API server's certificate.
      - Also E(K8S_AUTH_VALIDATE_CERTS) or E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - URL of an HTTP proxy. Variables such as E(HTTPS_PROXY) are ignored.
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
      - Also E(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH), E(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH) and
        E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
    type: dict
  persist_config:
    description:
      - Whether the client may write renewed tokens to the kubeconfig.
      - Also E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description:
      - User to impersonate.
      - Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Groups to impersonate.
      - Also E(K8S_AUTH_IMPERSONATE_GROUPS), separated by commas.
    type: list
    elements: str
"""
