# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose driver was installed from Huawei's package without this collection, which uses that driver unchanged."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator

from support.lab.lab import Lab
from support.lab.rollout import reboot

# The variables of such a host.
KEPT = {"npu_driver_source": "preinstalled"}

_PACKAGE = "/var/tmp/driver.run"


def install(lab: Lab, node: str, package: pathlib.Path) -> None:
    """Run the package on a host without a driver, and reboot it."""
    lab.copy(package, node, _PACKAGE)
    lab.ssh(node, f"id HwHiAiUser >/dev/null 2>&1 || useradd --create-home HwHiAiUser; sh {_PACKAGE} --full --quiet")
    reboot(lab, node)


@contextlib.contextmanager
def own_driver(lab: Lab, node: str) -> Iterator[None]:
    """Nothing of the collection is anywhere, and the 910B host has a driver of its own. Afterwards, the fleet is installed as before."""
    lab.playbook("uninstall", npu_uninstall_force=True)
    install(lab, node, lab.driver_package("910b", str(lab.variable("npu_driver_version"))))
    try:
        yield
    finally:
        lab.playbook("uninstall", npu_uninstall_force=True, **KEPT)
        lab.ssh(node, f"sh {_PACKAGE} --uninstall --quiet; rm -rf {_PACKAGE} /usr/local/Ascend /etc/ascend_install.info")
        reboot(lab, node)
        lab.playbook("install")
