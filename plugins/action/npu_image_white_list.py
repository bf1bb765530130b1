# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import white_list_entries
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.image_white_list import WhiteList


class ActionModule(ClusterAction):
    """See the documentation of the module npu_image_white_list."""

    ARGUMENTS = {"images": {"type": "list", "elements": "str", "required": True}}

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_client.connect(params)
        white_list = WhiteList.find(cluster)
        if white_list is None:
            return {"changed": False, "added": [], "msg": "The cluster does not have the kind ImageWhiteList."}
        images = [image for image in params["images"] if white_list_entries.is_driver_image(image)]
        added = white_list.allow(cluster, images, self.check_mode)
        result = {"changed": bool(added), "added": added, "msg": "added: %s" % ", ".join(added) if added else "nothing to add"}
        if self.diff_mode:
            result["diff"] = {"before": "", "after": "".join(entry + "\n" for entry in added)}
        return result
