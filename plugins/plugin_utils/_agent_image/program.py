# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node agent's image has besides its base image: the program, and how it is started.

images/node-agent/Containerfile says the same for container engines.
"""

from __future__ import annotations

import re
from pathlib import Path

COLLECTION = Path(__file__).resolve().parents[3]
SOURCE = COLLECTION / "images" / "node-agent"
REQUIREMENTS = SOURCE / "requirements.lock"

# The base image must have it, and npuops-python looks for it.
PYTHON = "3.11"
PLACE = "/opt/npuops"
# The collection's own knowledge of CDI, npu-smi and PCI IDs, at the place the collection has it.
LIBRARY = tuple(
    f"plugins/module_utils/{name}.py"
    for name in (
        "_chips/chip_faults",
        "_chips/chip_health",
        "_chips/chip_memory",
        "_chips/device_nodes",
        "_chips/fault_table",
        "_chips/npu_smi",
        "_chips/pci",
        "_containerd/cdi_spec",
        "_host/command",
        "_host/errors",
        "_host/files",
        "_runtime/runtime_mode",
    )
)
ENVIRONMENT = {
    "PYTHONPATH": PLACE,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "MALLOC_ARENA_MAX": "2",
}
ENTRYPOINT = ("python", "-m", "npu_node_agent")


def version() -> str:
    """The version of the program."""
    text = (SOURCE / "npu_node_agent" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"


def write(root: Path) -> None:
    """Write the program to ``root``, the root directory of the layer."""
    copy(SOURCE / "npuops-python", root / "usr/local/bin/npuops-python", 0o755)
    place = root / PLACE.lstrip("/")
    for file in sorted((SOURCE / "npu_node_agent").glob("*.py")):
        copy(file, place / "npu_node_agent" / file.name)
    for name in LIBRARY:
        copy(COLLECTION / name, place / "ansible_collections/npuops/ascend" / name)


def copy(source: Path, target: Path, mode: int = 0o644) -> None:
    """Copy a file. The modes do not depend on how the collection was installed, and with which umask."""
    write_file(target, source.read_bytes(), mode)


def write_file(target: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file, and its parents."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def open_directories(root: Path) -> None:
    """Give the directories below ``root`` the mode that they have in the base image, whatever the umask is."""
    for directory in root.rglob("*"):
        if directory.is_dir():
            directory.chmod(0o755)
