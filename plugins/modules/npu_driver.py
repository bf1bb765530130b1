#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver
short_description: Bring a staged NPU driver into effect on a host
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Lets C(driver) below O(root) name a release that M(npuops.ascend.npu_driver_stage) staged, installs the boot
    scripts and units, and loads the driver at once when none is loaded. No reboot is needed.
  - When every chip answers, C(good) names the release as well. It is what a boot falls back to.
  - With O(source=preinstalled) nothing of the driver is written. The boot unit only looks whether the driver works and
    publishes that.
  - Creates what driver and MindCluster expect of a host, the users C(HwHiAiUser) (1000) and C(hwMindX) (9000), log
    directories, and the files that say where the driver is. What cannot be written, because C(/usr) is read-only
    for instance, is told in RV(missing) and as a warning, with what it costs.
  - A driver that is loaded is never replaced, because an Ascend chip does not survive that. Then nothing is changed at
    all, and RV(upgrade_required) tells.
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
options:
  state:
    description:
      - V(present) brings the driver into effect.
      - V(absent) takes back what V(present) put on the host, the units and scripts, the links, the releases and the files that say
        where the driver is, and the markers and sockets of the components. What was installed counts, not O(source). A driver that
        was there before, the users and the logs stay. Modules of a loaded driver stay until the host is rebooted, and so does a
        release that something mounts. RV(left) tells.
    type: str
    choices: [present, absent]
    default: present
  empty_directories:
    description:
      - With O(state=absent), directories that are removed if they are empty.
    type: list
    elements: path
    default: []
  release:
    description:
      - The name of the release, as M(npuops.ascend.npu_driver_stage) returns it. Required with O(source=image),
        except in check mode, where nothing may have been staged.
    type: str
  chip:
    description:
      - The chip's word in the tags of driver images, for messages of the boot unit.
    type: str
    default: ""
  files:
    description:
      - The boot scripts and units.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where the file belongs.
        type: path
        required: true
      content:
        description: What is in it.
        type: str
        required: true
      mode:
        description: Its mode, in octal digits.
        type: str
        default: "0644"
  components:
    description:
      - For which of MindCluster's components the host is prepared.
    type: dict
    default: {}
    suboptions:
      device_plugin:
        description: The device plugin.
        type: bool
        default: true
      exporter:
        description: The exporter.
        type: bool
        default: true
  timeout:
    description:
      - Seconds to wait until all chips have their devices, here and at each boot. Real chips take minutes.
      - At most 800, because systemd ends the boot unit after 900 seconds.
    type: int
    default: 600
seealso:
  - module: npuops.ascend.npu_driver_stage
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Bring the staged driver into effect
  npuops.ascend.npu_driver:
    release: "{{ staged.release }}"
    files:
      - path: /var/lib/npuops/bin/npu-driver
        content: "{{ lookup('ansible.builtin.file', 'npu-driver', rstrip=false) }}"
        mode: "0755"

- name: Take it back
  npuops.ascend.npu_driver:
    state: absent

- name: Use the driver that is on the host
  npuops.ascend.npu_driver:
    source: preinstalled
    files: "{{ boot_files }}"
"""

RETURN = r"""
left:
  description: What stays on the host, and why.
  returned: success, with O(state=absent)
  type: list
  elements: str
release:
  description: The release in effect; V(none) with O(source=preinstalled).
  returned: success, with O(state=present)
  type: str
version:
  description: The version of the driver in effect.
  returned: success
  type: str
  sample: 25.5.0
tree:
  description: The path of the driver tree in effect.
  returned: success
  type: str
  sample: /var/lib/Ascend/driver
ready:
  description: What the boot unit published, with the ID of the boot; V(none) while no driver works.
  returned: success
  type: dict
reboot_required:
  description: Always V(false). What needs a reboot is not done here.
  returned: success
  type: bool
upgrade_required:
  description: Whether another driver is loaded, so that O(release) has to wait for an upgrade.
  returned: success
  type: bool
missing:
  description: What could not be prepared on this host, why, and what it costs.
  returned: success
  type: list
  elements: str
msg:
  description: What was done, or why nothing was.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._driver import activation as driver_activation
from ansible_collections.npuops.ascend.plugins.module_utils._driver import removal as driver_removal
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "empty_directories": {"type": "list", "elements": "path", "default": []},
            "source": {"type": "str", "choices": ["image", "preinstalled"], "default": "image"},
            "root": {"type": "path", "default": "/var/lib/Ascend"},
            "release": {"type": "str"},
            "chip": {"type": "str", "default": ""},
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str", "required": True},
                    "mode": {"type": "str", "default": "0644"},
                },
            },
            "components": {
                "type": "dict",
                "default": {},
                "options": {
                    "device_plugin": {"type": "bool", "default": True},
                    "exporter": {"type": "bool", "default": True},
                },
            },
            "timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    try:
        (run if module.params["state"] == "present" else remove)(module)
    except NpuError as exc:
        module.fail_json(msg=exc.message, **exc.details)


def run(module):
    params = module.params
    activation = driver_activation.Activation(
        source=params["source"],
        root=params["root"].rstrip("/"),
        release=params["release"],
        files=params["files"],
        chip=params["chip"],
        components=sorted(name for name, wanted in params["components"].items() if wanted),
        timeout=params["timeout"],
        accept_absent=module.check_mode,
    )
    before = activation.links()
    reasons = activation.plan()
    if not module.check_mode:
        reasons = activation.apply()
    after = activation.planned_links() if module.check_mode else activation.links()
    for text in activation.missing + [activation.pending, activation.unconfirmed]:
        if text:
            module.warn(text)
    module.exit_json(
        changed=bool(reasons),
        msg=activation.pending or "; ".join(reasons) or "the driver is in effect",
        release=activation.layout.target("driver") if params["source"] == "image" else None,
        version=activation.version(),
        tree=activation.root + "/driver",
        ready=activation.ready(),
        reboot_required=False,
        upgrade_required=activation.pending is not None,
        missing=activation.missing,
        diff={"before": before, "after": dict(after, done=reasons) if reasons else before},
    )


def remove(module):
    removal = driver_removal.Removal(module.params["root"].rstrip("/"), module.params["empty_directories"])
    reasons = removal.plan()
    if not module.check_mode:
        removal.apply()
    module.exit_json(
        changed=bool(reasons),
        msg="; ".join(reasons) or "nothing of npuops.ascend is on this host",
        left=removal.left,
        diff={"before": {"to_remove": reasons}, "after": {}} if reasons else {"before": {}, "after": {}},
    )


if __name__ == "__main__":
    main()
