# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubernetes.core's authentication options, for plugins, to which Ansible itself gives options from the environment.

kubernetes.core's own fragment tells the environment variables in prose only, and without that collection the plugin could not
even say that it is missing. A test holds the names against kubernetes.core's.
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
    type: raw
    env:
      - name: K8S_AUTH_KUBECONFIG
  context:
    description:
      - Name of a context of the kubeconfig. Without it, its current context.
    type: str
    env:
      - name: K8S_AUTH_CONTEXT
  host:
    description:
      - URL of the API server.
    type: str
    env:
      - name: K8S_AUTH_HOST
  api_key:
    description:
      - Bearer token.
    type: str
    env:
      - name: K8S_AUTH_API_KEY
  username:
    description:
      - User name, with an API server that still knows HTTP Basic authentication.
    type: str
    env:
      - name: K8S_AUTH_USERNAME
  password:
    description:
      - The password for O(username).
    type: str
    env:
      - name: K8S_AUTH_PASSWORD
  client_cert:
    description:
      - Path of a client certificate (PEM).
    type: path
    aliases: [cert_file]
    env:
      - name: K8S_AUTH_CLIENT_CERT
      - name: K8S_AUTH_CERT_FILE
  client_key:
    description:
      - Path of the key for O(client_cert).
    type: path
    aliases: [key_file]
    env:
      - name: K8S_AUTH_CLIENT_KEY
      - name: K8S_AUTH_KEY_FILE
  ca_cert:
    description:
      - Path of the authority's certificate, with the full chain, that the API server's certificate is checked with.
    type: path
    aliases: [ssl_ca_cert]
    env:
      - name: K8S_AUTH_CA_CERT
      - name: K8S_AUTH_SSL_CA_CERT
  validate_certs:
    description:
      - Whether the API server's certificate is checked.
    type: bool
    aliases: [verify_ssl]
    env:
      - name: K8S_AUTH_VALIDATE_CERTS
      - name: K8S_AUTH_VERIFY_SSL
  proxy:
    description:
      - URL of an HTTP proxy. The usual variables such as E(HTTPS_PROXY) are not looked at.
    type: str
    env:
      - name: K8S_AUTH_PROXY
  no_proxy:
    description:
      - Hosts, domains and networks that are reached without O(proxy), separated by commas.
    type: str
    env:
      - name: K8S_AUTH_NO_PROXY
  proxy_headers:
    description:
      - Headers for the HTTP proxy, with the keys V(proxy_basic_auth), V(basic_auth) (both C(user:password)) and V(user_agent).
        In the environment each of them has a variable, for example E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
    type: dict
  persist_config:
    description:
      - Whether the client may write tokens it renewed back into the kubeconfig.
    type: bool
    env:
      - name: K8S_AUTH_PERSIST_CONFIG
  impersonate_user:
    description:
      - Act as this user.
    type: str
    env:
      - name: K8S_AUTH_IMPERSONATE_USER
  impersonate_groups:
    description:
      - Act as a member of these groups.
    type: list
    elements: str
    env:
      - name: K8S_AUTH_IMPERSONATE_GROUPS
"""
