#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_accept
short_description: "Step of a playbook: find out whether the chips of a host are fit to serve"
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Judges the chips of a host. Level 1 makes the checks of M(npuops.ascend.npu_validate), and judges more strictly. A chip that is
    not healthy is a V(WARNING) or, if it is C(Critical), a V(FAIL), and so is a chip that the host has lost.
  - Level 2 also runs C(ascend-dmi --dg --se healthCheck) of MindCluster's ToolBox, which takes up to 2 minutes. Level 3 also runs
    its C(performanceCheck) and C(stressTest), which take hours. They load the chips, so no other process may have one open.
  - C(ascend-dmi) runs in the transient systemd unit C(npuops-acceptance.service), so a lost connection does not interrupt it. Call
    the module again to wait for it.
  - With O(toolbox_image), the same unit first pulls that image with the host's own containerd, into a separate namespace, and then
    runs C(ascend-dmi) in a privileged container of it. The container has all devices, the network of the host, and the driver as
    pods get it. Image and container are removed before the result is returned. What a killed run has left, the next call removes.
  - The host keeps its last 20 results in C(/var/lib/npuops/acceptance-history).
  - The playbook C(npuops.ascend.accept) runs it for each host. See C(docs/accept.md).
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
  - npuops.ascend.registry
attributes:
  check_mode:
    support: full
    details:
      - Makes the checks of level 1 only, and keeps no result.
  diff_mode:
    support: N/A
    details:
      - The module configures nothing.
  idempotent:
    support: N/A
    details:
      - Each call without a running diagnosis is another acceptance.
options:
  level:
    description: What to do, see above.
    type: int
    choices: [1, 2, 3]
    default: 1
  library_path:
    description: The option of the same name of M(npuops.ascend.npu_validate).
    type: str
    choices: [hook, env, none]
    default: hook
  network:
    description: The option of the same name of M(npuops.ascend.npu_validate).
    type: str
    choices: ["off", warn, strict]
    default: strict
  toolbox:
    description:
      - The directory of MindCluster's ToolBox on the host. Its C(set_env.sh), and C(cann/set_env.sh) or
        C(ascend-toolkit/set_env.sh) beside it, are read if they exist. Only files that belong to the user that runs the module, and
        that no other user may write, are used.
      - With O(toolbox_image), it is a directory of the image.
    type: path
    default: /usr/local/Ascend/toolbox
  toolbox_image:
    description:
      - Reference of an image that has O(toolbox), and the CANN that its items need. Not used at level 1.
      - The tag is resolved when the acceptance begins, and the digest is what is pulled. A pull may take an hour.
      - It needs containerd. On a host with CRI-O, the level is V(UNKNOWN).
    type: str
  registry_mirror:
    description:
      - Where O(toolbox_image) is pulled from instead of the registry that it names. A prefix such as
        V(registry.example.com/mirror), which takes the place of the registry, or a dictionary of such prefixes by registry.
    type: raw
  blocked:
    description: Why C(ascend-dmi) must not be started on this host. Then a level above 1 is V(UNKNOWN).
    type: str
  ignore:
    description: Names of checks of level 1 that do not keep C(ascend-dmi) from being started if they fail. They are in the result.
    type: list
    elements: str
    default: []
  wait:
    description: Seconds to wait for C(ascend-dmi).
    type: int
    default: 30
  began:
    description:
      - RV(began) of an earlier call, to get the result of that acceptance and begin no other one. The host keeps the last result,
        because the answer with it may be lost with the connection.
    type: str
seealso:
  - module: npuops.ascend.npu_accept_node
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Accept the host at level 1
  npuops.ascend.npu_accept:
  register: acceptance
"""

RETURN = r"""
state:
  description:
    - V(pulling) while the image is pulled, V(running) while C(ascend-dmi) runs, V(done) with a result.
    - When the image has been pulled, the next call starts C(ascend-dmi), unless chips are in use by then.
  returned: success
  type: str
boot_id:
  description: Boot ID of the host, as its node reports it.
  returned: success
  type: str
began:
  description: When the acceptance began, in UTC, such as V(2026-11-26T10:00:00Z).
  returned: success
  type: str
result:
  description: The result, V(none) until there is one.
  returned: success
  type: dict
  contains:
    level:
      description: The level.
      type: int
    began:
      description: When it began, in UTC.
      type: str
    ended:
      description: When it ended, in UTC.
      type: str
    driver:
      description: Version of the driver tree, V(none) if there is none.
      type: str
    firmware:
      description: Firmware version of the chips according to C(npu-smi), with commas if they differ. V(none) if it is not known.
      type: str
    chips:
      description: Number of chips.
      type: int
    findings:
      description: The results of all checks.
      type: list
      elements: dict
      contains:
        name:
          description:
            - The name of a check of M(npuops.ascend.npu_validate), V(chip_health), V(chip_count), C(ascend-dmi) with the name of
              its item, or C(toolbox image), which has the name of the image with its digest.
          type: str
        level:
          description: The level to which the check belongs.
          type: int
        verdict:
          description: One of V(PASS), V(WARNING), V(UNKNOWN), V(FAIL).
          type: str
        seen:
          description: The actual state.
          type: str
        advice:
          description: What to do, V(none) with V(PASS).
          type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.acceptance import Acceptance
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.toolbox_image import ToolboxImage
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import registry_options


def main():
    module = AnsibleModule(
        argument_spec={
            "level": {"type": "int", "choices": [1, 2, 3], "default": 1},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
            "library_path": {"type": "str", "choices": ["hook", "env", "none"], "default": "hook"},
            "network": {"type": "str", "choices": ["off", "warn", "strict"], "default": "strict"},
            "toolbox": {"type": "path", "default": "/usr/local/Ascend/toolbox"},
            "toolbox_image": {"type": "str"},
            "registry_mirror": {"type": "raw"},
            **registry_options.ARGUMENTS,
            "blocked": {"type": "str"},
            "ignore": {"type": "list", "elements": "str", "default": []},
            "wait": {"type": "int", "default": 30},
            "began": {"type": "str"},
        },
        supports_check_mode=True,
    )
    params = module.params
    image = None
    if params["toolbox_image"]:
        image = ToolboxImage(params["toolbox_image"], params["registry_mirror"], **registry_options.access(params))
    acceptance = Acceptance(
        params["level"],
        params["toolbox"],
        blocked="not run in check mode" if module.check_mode else params["blocked"],
        ignore=params["ignore"],
        keep=not module.check_mode,
        validation={name: params[name] for name in ("root", "source", "library_path", "network")},
        image=image,
    )
    try:
        module.exit_json(changed=False, **acceptance.look(params["wait"], params["began"]))
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


if __name__ == "__main__":
    main()
