#!/usr/bin/python
# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: npu_driver
short_description: Activate a staged NPU driver on a host
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Points the link C(driver) below O(root) to a release that M(npuops.ascend.npu_driver_stage) staged, installs the boot scripts
    and systemd units, and loads the driver if none is loaded. No reboot is necessary.
  - If C(npu-smi) lists all chips, and not all of them as C(Critical), also points the link C(good) to the release. A boot falls
    back to that release.
  - With O(source=preinstalled), the module does not change the driver. The boot unit only checks that the driver works and
    publishes the result.
  - Creates what the driver and MindCluster expect of a host. These are the users C(HwHiAiUser) (UID 1000) and C(hwMindX) (UID
    9000), log directories, and files with the location of the driver. What cannot be created, for example because C(/usr) is
    read-only, is listed with the consequences in RV(missing) and as a warning.
  - Never replaces a loaded driver, because an Ascend chip does not survive a driver unload. If another driver is loaded, the module
    changes nothing and returns RV(upgrade_required=true).
extends_documentation_fragment:
  - npuops.ascend.attributes
  - npuops.ascend.attributes.full
  - npuops.ascend.attributes.host
  - npuops.ascend.driver
options:
  state:
    description:
      - V(present) activates the driver.
      - V(absent) removes what V(present) created, which are the units and scripts, the links, the releases, the files with the
        location of the driver, and the markers and sockets of the components. It stops the diagnosis of an acceptance. What is
        removed depends on what was installed, not on O(source). A driver that was on the host before, the users and the logs are
        kept. A loaded driver stays loaded until the host is rebooted, and a mounted release is kept, as are the files about a
        write of firmware that failed. RV(left) lists them.
    type: str
    choices: [present, absent]
    default: present
  empty_directories:
    description:
      - Directories to remove if they are empty. Only used with O(state=absent).
    type: list
    elements: path
    default: []
  release:
    description:
      - Name of the release, as M(npuops.ascend.npu_driver_stage) returned it. Required with O(state=present) and
        O(source=image), except in check mode, in which no release may be staged yet.
    type: str
  chip:
    description:
      - The chip in the tags of driver images, such as V(910b). It appears in messages of the boot unit.
    type: str
    default: ""
  files:
    description:
      - The boot scripts and systemd units, which are files of the role P(npuops.ascend.npu_driver#role).
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path of the file on the host.
        type: path
        required: true
      content:
        description: Content of the file.
        type: str
        required: true
      mode:
        description: Mode of the file, in octal digits.
        type: str
        default: "0644"
  components:
    description:
      - The components of MindCluster for which log directories are created.
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
  chips:
    description:
      - The number of chips that the host has. By default, at least as many as it had before.
      - The module records which chips the host has, and fails if some of them are missing later. Set this option to accept that the
        host has fewer chips than before.
    type: int
  timeout:
    description:
      - Seconds to wait until all chips have their device nodes, in this module and at each boot. Real chips take minutes.
      - Must be between 1 and 800, because systemd stops the boot unit after 900 seconds.
    type: int
    default: 600
seealso:
  - module: npuops.ascend.npu_driver_stage
  - module: npuops.ascend.npu_validate
"""

EXAMPLES = r"""
- name: Activate the staged driver
  npuops.ascend.npu_driver:
    release: "{{ staged.release }}"
    files:
      - path: /var/lib/npuops/bin/npu-driver
        content: "{{ lookup('ansible.builtin.file', 'npu-driver', rstrip=false) }}"
        mode: "0755"

- name: Remove the driver
  npuops.ascend.npu_driver:
    state: absent

- name: Use the driver that is already on the host
  npuops.ascend.npu_driver:
    source: preinstalled
    files: "{{ boot_files }}"
"""

RETURN = r"""
left:
  description: What was not removed, and why.
  returned: success, with O(state=absent)
  type: list
  elements: str
release:
  description: The active release, V(none) with O(source=preinstalled).
  returned: success, with O(state=present)
  type: str
version:
  description: Version of the active driver, V(none) if there is no driver yet.
  returned: success, with O(state=present)
  type: str
  sample: 25.5.0
tree:
  description: Path of the active driver tree.
  returned: success, with O(state=present)
  type: str
  sample: /var/lib/Ascend/driver
ready:
  description: What the boot unit published in this boot, V(none) if the driver is not ready.
  returned: success, with O(state=present)
  type: dict
reboot_required:
  description: Always V(false), because this module makes no change that requires a reboot.
  returned: success, with O(state=present)
  type: bool
upgrade_required:
  description: Whether another driver is loaded, so that O(release) requires an upgrade (playbook C(npuops.ascend.upgrade)).
  returned: success, with O(state=present)
  type: bool
missing:
  description: What could not be created on this host, why, and the consequences.
  returned: success, with O(state=present)
  type: list
  elements: str
msg:
  description: What was done, or why nothing was done.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.npuops.ascend.plugins.module_utils._acceptance import image_traces
from ansible_collections.npuops.ascend.plugins.module_utils._activation import activation as driver_activation
from ansible_collections.npuops.ascend.plugins.module_utils._activation import removal as driver_removal
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "empty_directories": {"type": "list", "elements": "path", "default": []},
            "source": {"type": "str", "choices": ["image", "package", "preinstalled"], "default": "image"},
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
            "chips": {"type": "int"},
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
        chips=params["chips"],
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
        msg=activation.pending or "; ".join(reasons) or "the driver is active",
        release=activation.layout.target("driver") if activation.source == "image" else None,
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
    reasons = []
    if transient_unit.running(image_traces.UNIT):
        reasons.append("stop the diagnosis of an acceptance")
        if not module.check_mode:
            transient_unit.stop(image_traces.UNIT)
    if image_traces.exist():
        reasons.append("remove the ToolBox image of an acceptance")
        try:
            if not module.check_mode:
                image_traces.clear()
        except NpuError as exc:
            removal.left.append("the ToolBox image of an acceptance is kept: %s" % exc.message)
    if reasons and not module.check_mode and transient_unit.running(image_traces.UNIT):
        removal.left.append("the diagnosis of an acceptance does not end: see systemctl status %s" % image_traces.UNIT)
    reasons += removal.plan()
    if not module.check_mode:
        removal.apply()
    module.exit_json(
        changed=bool(reasons),
        msg="; ".join(reasons) or "npuops.ascend has nothing installed on this host",
        left=removal.left,
        diff={"before": {"to_remove": reasons}, "after": {}} if reasons else {"before": {}, "after": {}},
    )


if __name__ == "__main__":
    main()
