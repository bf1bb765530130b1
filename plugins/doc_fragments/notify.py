# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option with the webhook that is notified."""

    DOCUMENTATION = r"""
options:
  notify:
    description:
      - The webhook that is notified. One that cannot be reached causes a warning and no failure. Nothing is sent in check mode.
    type: dict
    default: {}
    suboptions:
      url:
        description: Its address, C(https://) or C(http://). If empty, nothing is sent.
        type: str
      kind:
        description: What it takes. With V(auto), it follows from the server, and is V(json) for one that is not known.
        type: str
        choices: [auto, slack, dingtalk, wecom, feishu, json]
        default: auto
      secret:
        description: With which DingTalk or Feishu verifies who sends a message.
        type: str
"""
