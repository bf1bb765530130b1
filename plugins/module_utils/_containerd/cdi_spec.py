# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CDI spec of a host: what a container with the device huawei.com/npu=N gets.

Version 0.5.0 of the format, which every containerd with CDI supports
(https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md). The spec has no device numbers, because majors change
with every boot; containerd reads them from the device nodes when a container starts. Mounts go through the link ``driver``, so that
the spec stays valid when another release is activated. ASCEND_VISIBLE_DEVICES is never set: the exporter maps chips to pods by the
devices of a container, and any value of that variable would take precedence.
"""

from __future__ import annotations

import json
import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import device_nodes, pci
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text, remove_file, write_atomic

KIND = "huawei.com/npu"
VERSION = "0.5.0"
PATH = "/etc/cdi/huawei.com-npu.json"
DIRECTORIES = ("/etc/cdi", "/var/run/cdi")

# The path at which programs built with CANN expect the driver inside a container.
TARGET = "/usr/local/Ascend/driver"
LIBRARY_PATH = ":".join(TARGET + "/lib64" + name for name in ("/driver", "/common", ""))

# The hook and its environment. Without one, the runtime would pass that of the image.
HOOK = "/var/lib/npuops/bin/npu-cdi-hook"
_HOOK_ENVIRONMENT = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
_HOOK_SECONDS = 20
# The programs on the host that the hook runs, besides a shell.
HOOK_PROGRAMS = ("ldconfig", "unshare", "umount", "sed")
_PROGRAM_PATHS = ("/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/")

MOUNT_OPTIONS = ["ro", "nosuid", "nodev", "rbind", "rprivate"]

# Device nodes for all containers with a chip: the required ones with every driver, the others if the family's driver creates them.
_REQUIRED = ("davinci_manager", "hisi_hdc")
_NODES = {
    "950": _REQUIRED + ("asdrv_svm",),
    None: _REQUIRED + ("devmm_svm", "dvpp_cmdlist"),
}

# Says where the driver is.
_INSTALL_INFO = "/etc/ascend_install.info"
# Further mounts, if they exist on the host, where they may come and go (cdi_mounts): DCMI as installed by packages, and the network
# configuration of the chips.
OPTIONAL = ("/usr/local/dcmi", _INSTALL_INFO, "/etc/hccl_rootinfo.json", "/etc/hccn.conf")


class HostDevices:
    """What the spec depends on: the ``numbers`` of the chips, those without a device node (``missing``), the number of ``chips`` on
    the PCI bus, their family, the common device nodes, and the numbers of virtual NPUs that the driver created from chips."""

    def __init__(self, chips, family, numbers, missing, nodes, virtual=()):
        self.chips = chips
        self.family = family
        self.numbers = numbers
        self.missing = missing
        self.nodes = nodes
        self.virtual = virtual

    def with_chips(self, chips):
        """The same host when it had so many chips."""
        numbers = chip_numbers(chips, [number for number in self.numbers if number not in self.missing])
        return HostDevices(chips, self.family, numbers, self.missing, self.nodes, self.virtual)


def look(fs=""):
    """The HostDevices below ``fs``. Raises NpuError for chips of different families."""
    functions = pci.chip_functions(fs + "/sys/bus/pci/devices")
    family = pci.family_of(functions)
    chips = pci.chip_count(functions)
    present = device_nodes.numbers(fs)
    numbers = chip_numbers(chips, present)
    nodes = list(_NODES.get(family.name if family else None, _NODES[None]))
    if os.path.exists(fs + "/dev/" + _REQUIRED[0]):
        nodes = [name for name in nodes if name in _REQUIRED or os.path.exists("%s/dev/%s" % (fs, name))]
    missing = [number for number in numbers if number not in present]
    return HostDevices(chips, family, numbers, missing, nodes, device_nodes.numbers(fs, "vdavinci"))


def chip_numbers(chips, present):
    """The numbers of the devices to describe: those with nodes, and if these are fewer than ``chips``, the lowest free numbers.

    The driver creates the nodes some time after it is loaded. The spec is the same before and after.
    """
    numbers = list(present)
    candidate = 0
    while len(numbers) < chips:
        if candidate not in numbers:
            numbers.append(candidate)
        candidate += 1
    return sorted(numbers)


def spec(host, root, library_path="hook", fs="", complete=False):
    """The CDI spec as a dict.

    ``root``: the directory that contains ``driver``. ``library_path``: how containers find the driver's libraries:
    "hook" adds them to the container's loader cache, "env" sets LD_LIBRARY_PATH (the image's own value is lost),
    "none" does neither. ``complete``: with all OPTIONAL mounts, even if the host does not have them now.
    """
    devices = [{"name": str(number), "containerEdits": {"deviceNodes": [_node(number)]}} for number in host.numbers]
    devices.extend({"name": str(number), "containerEdits": {"deviceNodes": [_virtual_node(number)]}} for number in host.virtual)
    devices.append({"name": "all", "containerEdits": {"deviceNodes": [_node(number) for number in host.numbers]}})
    edits = {
        "deviceNodes": [{"path": "/dev/" + name, "permissions": "rw"} for name in host.nodes],
        "mounts": [_mount(source, target) for source, target in mounts(root, fs, complete)],
    }
    edits.update(_LIBRARY_PATHS[library_path])
    return {"cdiVersion": VERSION, "kind": KIND, "devices": devices, "containerEdits": edits}


def hook():
    """The edits that run the hook before a container starts. Its arguments are paths in the container."""
    arguments = [os.path.basename(HOOK)] + LIBRARY_PATH.split(":")
    return {
        "hooks": [
            {
                "hookName": "createContainer",
                "path": HOOK,
                "args": arguments,
                "env": _HOOK_ENVIRONMENT,
                "timeout": _HOOK_SECONDS,
            }
        ]
    }


# The edits for each value of library_path.
_LIBRARY_PATHS = {
    "hook": hook(),
    "env": {"env": ["LD_LIBRARY_PATH=" + LIBRARY_PATH]},
    "none": {},
}


def hook_reason(script, fs=""):
    """Why the hook has to be written with the content ``script``, or removed (``script`` None); None if it is up to date.

    Raises NpuError if the hook cannot work on this host.
    """
    path = fs + HOOK
    if script is None:
        return "%s is not needed" % HOOK if os.path.lexists(path) else None
    missing = missing_programs(fs)
    if missing:
        raise NpuError(
            "This host has no %s, which the hook for the driver's libraries runs. Install it, or set npu_runtime_library_path: env"
            % " and no ".join(missing)
        )
    if not os.path.lexists(path):
        return "%s does not exist" % HOOK
    if os.path.islink(path) or read_text(path) != script or os.stat(path).st_mode & 0o777 != 0o755:
        return "%s is not the hook of this version" % HOOK
    return None


def write_hook(script, fs=""):
    """Write the hook, or remove it (``script`` None). A container that starts meanwhile uses the old or the new one."""
    path = fs + HOOK
    if script is None:
        remove_file(path)
        return
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    write_atomic(path, script, 0o755)


def missing_programs(fs=""):
    """The programs that the hook runs and that the host does not have."""
    return [name for name in HOOK_PROGRAMS if not any(os.access(fs + path + name, os.X_OK) for path in _PROGRAM_PATHS)]


def mounts(root, fs="", complete=False):
    """(path on the host, path in the container) of all mounts: the OPTIONAL ones first, as each can be left out then.

    Mounts the tree as a whole, not parts that only some releases have, so that containers also start with the next release.
    """
    tree = root.rstrip("/") + "/driver"
    # With another root, _INSTALL_INFO names a directory that containers do not have.
    wanted = [path for path in OPTIONAL if path != _INSTALL_INFO or tree == TARGET]
    found = [(path, path) for path in wanted if complete or os.path.exists(fs + path)]
    found.append((tree, TARGET))
    # Packages install npu-smi outside of the tree; driver images have it inside.
    program = next(
        (
            path
            for path in (tree + "/tools/npu-smi", "/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi")
            if os.path.exists(fs + path)
        ),
        tree + "/tools/npu-smi",
    )
    found.append((program, "/usr/local/bin/npu-smi"))
    return found


def mount_sources(document):
    """The host paths that ``document`` mounts."""
    return [str(mount.get("hostPath")) for mount in _dicts(_edits(document).get("mounts"))]


def hooks(document):
    """The host paths of the hooks in ``document``."""
    return [str(entry.get("path")) for entry in _dicts(_edits(document).get("hooks"))]


def _edits(document):
    edits = document.get("containerEdits")
    return edits if isinstance(edits, dict) else {}


def _dicts(listed):
    """The dicts in ``listed``, which may be anything."""
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def text(document):
    """The spec as the text of its file, in which each of the OPTIONAL mounts is a line."""
    edits = _edits(document)
    listed = _dicts(edits.get("mounts"))
    lines = {"@%d@" % number: mount for number, mount in enumerate(listed) if mount.get("hostPath") in OPTIONAL}
    marked = ["@%d@" % number if "@%d@" % number in lines else mount for number, mount in enumerate(listed)]
    told = json.dumps(dict(document, containerEdits=dict(edits, mounts=marked)), indent=2) + "\n"
    for mark, mount in lines.items():
        told = told.replace('"%s"' % mark, json.dumps(mount))
    return told


def read(path):
    """The spec in ``path`` as a dict; None if there is no such file or it is not a JSON object."""
    try:
        document = json.loads(read_text(path) or "")
    # Deep nesting is a RecursionError.
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def reason(path, wanted):
    """Why the file ``path`` has to be written, or removed (``wanted`` None); None if it is up to date.

    Raises NpuError if another file describes devices of the same kind.
    """
    if wanted is None:
        return "%s is not needed" % path if os.path.lexists(path) else None
    others = other_writers(path, directories_of(path))
    if others:
        raise NpuError(
            "%s also describes devices of the kind %s, and containerd does not resolve devices that two files describe. Remove it, "
            "or the software that writes it" % (" and ".join(others), KIND)
        )
    if not os.path.lexists(path):
        return "%s does not exist" % path
    return None if read_text(path) == text(wanted) else "%s is not the spec of this host" % path


def write(path, wanted):
    """Write the file, or remove it (``wanted`` None). containerd does not notice a file that is moved from another directory."""
    if wanted is None:
        remove_file(path)
        return
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    write_atomic(path, text(wanted), 0o644)


def directories_of(path):
    """The directories from which containerd reads specs, with the directory of ``path`` first."""
    return [os.path.dirname(path)] + list(DIRECTORIES[1:])


def problem(document, host, root, library_path, fs=""):
    """Why ``document`` (a result of ``read``) is not the spec of this host, as a sentence; None if it is."""
    if document is None:
        return "there is no CDI spec"
    # The optional mounts come and go with their files.
    document, wanted = _without_optional(document), _without_optional(spec(host, root, library_path, fs))
    if document == wanted:
        return None
    names = [device.get("name") for device in _dicts(document.get("devices"))]
    expected = [device["name"] for device in wanted["devices"]]
    if names != expected:
        return "the CDI spec describes %s instead of %s" % (_list(names), _list(expected))
    for key in ("cdiVersion", "kind", "devices"):
        if document.get(key) != wanted[key]:
            return "the CDI spec has the wrong %s" % key
    edits = _edits(document)
    parts = sorted(set(edits) | set(wanted["containerEdits"]))
    differing = [key for key in parts if edits.get(key) != wanted["containerEdits"].get(key)]
    return "the CDI spec has the wrong %s" % (" and ".join(differing) or "content")


def notes(fs=""):
    """Sentences on OPTIONAL files of the host that its spec does not mount. Containers start without them."""
    document = read(fs + PATH)
    mounted = mount_sources(document or {})
    wanted = [path for path in OPTIONAL if path != _INSTALL_INFO or TARGET in mounted]
    new = [path for path in wanted if document and os.path.exists(fs + path) and path not in mounted]
    return ["%s is new on this host, and containers with a chip do not get it: run npuops.ascend.install" % path for path in new]


def _without_optional(document):
    edits = _edits(document)
    if not isinstance(edits.get("mounts"), list):
        return document
    kept = [mount for mount in edits["mounts"] if not (isinstance(mount, dict) and mount.get("hostPath") in OPTIONAL)]
    return dict(document, containerEdits=dict(edits, mounts=kept))


def other_writers(path, directories=DIRECTORIES):
    """Spec files other than ``path`` that describe devices of the same kind, which prevents containerd from resolving them."""
    found = []
    for other in spec_files(directories):
        kind = re.search(r"""["']?\bkind["']?\s*:\s*["']?([^\s"',}#]+)""", read_text(other) or "")
        if os.path.realpath(other) != os.path.realpath(path) and kind and kind.group(1) == KIND:
            found.append(other)
    return found


def unreadable(directories=DIRECTORIES):
    """Spec files that are empty or not JSON. One of them prevents containerd from resolving any CDI device on the host."""
    found = []
    for path in spec_files(directories):
        content = read_text(path)
        if content is None or not content.strip() or (path.endswith(".json") and read(path) is None):
            found.append(path)
    return found


def spec_files(directories=DIRECTORIES):
    """The files that containerd reads as CDI specs."""
    found = []
    for directory in directories:
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        found.extend(os.path.join(directory, name) for name in sorted(names) if name.endswith((".json", ".yaml")))
    return found


def _list(names):
    return ", ".join(str(name) for name in names) or "nothing"


def _node(number):
    return {"path": "/dev/davinci%d" % number, "permissions": "rw"}


def _virtual_node(number):
    """Inside a container, a virtual NPU has the name of a chip."""
    return {"path": "/dev/davinci%d" % number, "hostPath": "/dev/vdavinci%d" % number, "permissions": "rw"}


def _mount(source, target):
    return {"hostPath": source, "containerPath": target, "options": MOUNT_OPTIONS}
