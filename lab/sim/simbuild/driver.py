# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated driver: the content of Huawei's package, as far as any program reads it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .tools import SOURCE, digest, run

DRIVER = SOURCE / "driver"
CFLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fstack-protector-strong")

# Modules with what each needs, in the order they load. drv_vascend needs vfio and mdev, which few kernels have: it
# fails to load on most hosts, and drivers work without it.
_HDK_25_MODULES = {
    "drv_seclib_host": "",
    "ascend_kernel_open_adapt": "drv_seclib_host",
    "asdrv_pbl": "ascend_kernel_open_adapt,drv_seclib_host",
    "asdrv_vascend_adapt": "asdrv_pbl",
    "drv_vascend": "asdrv_vascend_adapt,mdev,vfio",
    "asdrv_vpc": "asdrv_vascend_adapt,asdrv_pbl",
    "drv_pcie_host": "asdrv_vpc,asdrv_pbl",
    "asdrv_dpa": "drv_pcie_host",
    "ascend_soc_platform": "asdrv_dpa",
    "asdrv_vmng": "ascend_soc_platform",
    "asdrv_fms": "asdrv_vmng,asdrv_pbl",
    "asdrv_dms": "asdrv_fms",
    "drv_pcie_hdc_host": "asdrv_dms,drv_pcie_host",
    "asdrv_vnic": "drv_pcie_hdc_host",
    "asdrv_svm": "asdrv_dms,asdrv_dpa",
    "asdrv_trsbase": "asdrv_svm",
    "asdrv_esched": "asdrv_trsbase",
    "asdrv_trs": "asdrv_esched",
    "ts_agent": "asdrv_trs",
    "drv_dvpp_cmdlist": "asdrv_trs",
    "asdrv_buff": "asdrv_svm",
    "asdrv_queue": "asdrv_buff,asdrv_esched",
}
_SPLIT_MODULES = {
    "drv_seclib_host": "",
    "drv_davinci_intf_host": "drv_seclib_host",
    "ascend_uda": "drv_davinci_intf_host",
    "drv_pcie_host": "ascend_uda,drv_seclib_host",
    "drv_devmng_host": "drv_pcie_host",
    "drv_pcie_hdc_host": "drv_devmng_host,drv_pcie_host",
    "drv_pcie_vnic_host": "drv_pcie_hdc_host",
    "drv_virtmng_host": "drv_devmng_host",
    "drv_vascend": "drv_virtmng_host,mdev,vfio",
    "drv_devmm_host": "drv_devmng_host,drv_pcie_hdc_host",
    "ascend_trs_core": "drv_devmng_host",
    "ascend_event_sched_host": "ascend_trs_core,drv_devmm_host",
    "ascend_queue": "ascend_event_sched_host",
    "ascend_logdrv": "drv_pcie_hdc_host",
    "ts_agent": "ascend_trs_core",
    "drv_dvpp_cmdlist": "ascend_trs_core",
}


@dataclass(frozen=True)
class Product:
    """A driver for one family of chips."""

    chip: str  # as in the package's name
    devices: tuple[str, ...]  # PCI device IDs its modules drive
    modules: dict[str, str]
    inner: str  # Innerversion in version.info


PRODUCTS = (
    Product("910b", ("D802",), _HDK_25_MODULES, "V100R001C24SPC001B220"),
    Product("310p", ("D500",), _SPLIT_MODULES, "V100R001C24SPC001B221"),
)


def firmware_range(version: str) -> tuple[str, str]:
    """The lowest and the highest firmware with which chips run under a driver: those before 25.5 do not know firmware 8."""
    version_line = [int(number) if number.isdigit() else 0 for number in version.split(".")[:2]]
    return ("7.0.0", "8.9.9" if version_line >= [25, 5] else "7.8.99")


def key() -> str:
    """Changes when a driver would come out differently."""
    return digest(DRIVER, Path(__file__))


def make_tree(product: Product, version: str, target: Path, fault: str = "", kernel: str = os.uname().release) -> None:
    """Write what is in a package (not yet: what is installed by it) to the directory `target`.

    `fault`: what is wrong with the chips while this driver is loaded, as in lab/fault; empty: nothing. `kernel`: of its modules.
    """
    shutil.copytree(DRIVER / "package", target)
    (target / "version.info").write_text(_version_info(product, version), encoding="ascii")
    script = target / "driver" / "script"
    mode = "|".join(reversed(product.modules))
    (script / "specific_func.inc").write_text(
        f'device_bdf="0x{product.devices[0].lower()}"\nvendor_bdf="0x19e5"\nmode_normal="{mode}"\n'
        'basic_ko="drv_pcie_hdc_host.ko"\n',
        encoding="ascii",
    )
    make_modules(product, version, target / "driver" / "host", fault, kernel)
    make_programs(version, target / "driver" / "lib64", target / "driver" / "tools")
    # Huawei's packages have it one directory higher than where the installer puts it.
    (target / "driver" / "lib64" / "driver" / "libdcmi.so").rename(target / "driver" / "lib64" / "libdcmi.so")
    device = target / "driver" / "device"
    device.mkdir()
    for name in ("device_boot.img", "device_sw.img", "sysBaseConfig.bin"):
        (device / f"ascend_{product.chip}_{name}").write_bytes(f"simulated {name} {version}\n".encode() * 64)
    _set_modes(target)


def make_modules(product: Product, version: str, target: Path, fault: str, kernel: str) -> None:
    """Write the modules for `kernel` to the directory `target`."""
    target.mkdir(parents=True)
    for name, depends in product.modules.items():
        aliases = " ".join(
            f'INFO(alias{i}, "alias=pci:v000019E5d0000{device}sv*sd*bc12sc00i*");' for i, device in enumerate(product.devices)
        )
        run(
            "gcc",
            *CFLAGS,
            "-c",
            DRIVER / "module.c",
            "-o",
            target / f"{name}.ko",
            f'-DNAME="{name}"',
            f'-DVERSION="{version}"',
            f'-DDEPENDS="{depends}"',
            f'-DSRCVERSION="{digest(name, version)[:23].upper()}"',
            f'-DVERMAGIC="{kernel} SMP preempt mod_unload modversions "',
            f"-DALIASES={aliases if name != 'drv_seclib_host' else ''}",
            *([f'-DFIRMWARE="{",".join(firmware_range(version))}"'] if name == "drv_pcie_host" else []),
            *([f'-DSIMULATE="{fault}"'] if fault and name == "drv_pcie_host" else []),
        )


def make_programs(version: str, libraries: Path, tools: Path) -> None:
    """Compile the libraries and tools: without RPATH, so that they are found only where a host was told to look."""
    common, private = libraries / "common", libraries / "driver"
    for directory in (common, private, tools):
        directory.mkdir(parents=True, exist_ok=True)
    build = (
        "gcc",
        *CFLAGS,
        f"-I{DRIVER / 'lib'}",
        "-Wl,--no-as-needed",
        f"-L{common}",
        f"-L{private}",
        f"-Wl,-rpath-link,{common}:{private}",
        "-Wl,--build-id=none",
    )
    for source, target, needs in (
        ("c_sec", common, ()),
        ("mmpa", common, ()),
        ("ascend_hal", private, ("c_sec", "mmpa")),
        ("drvdsmi_host", private, ("ascend_hal",)),
        ("dcmi", private, ("drvdsmi_host", "c_sec")),
    ):
        run(
            *build,
            "-shared",
            "-fPIC",
            f"-Wl,-soname,lib{source}.so,-z,nodelete",  # a thread of libdcmi may run when a program closes the library
            *sorted((DRIVER / "lib").glob(f"{source}*.c")),
            *(f"-l{name}" for name in needs),
            "-o",
            target / f"lib{source}.so",
        )
    for tool in ("npu-smi", "hccn_tool", "upgrade-tool"):
        run(
            *build,
            *sorted((DRIVER / tool).glob("*.c")),
            f'-DTOOL_VERSION="{version}"',
            "-lc_sec",
            "-ldrvdsmi_host",
            "-lmmpa",
            "-lascend_hal",
            "-ldcmi",
            "-o",
            tools / tool,
        )


def _version_info(product: Product, version: str) -> str:
    series = ",".join(f"[V100R001C{number}]" for number in range(20, 25))
    return (
        f"Version={version}\nascendhal_version=7.35.23\naicpu_version=1.0\ntdt_version=1.0\nlog_version=1.0\n"
        "prof_version=2.0\ndvppkernels_version=1.1\ntsfw_version=1.0\n"
        f"Innerversion={product.inner}\ncompatible_version={series}\n"
        f"compatible_version_fw=[{','.join(firmware_range(version))}]\n"
        f"package_version={version}\n"
    )


def _set_modes(target: Path) -> None:
    """The modes Huawei's packages have: nothing writable, modules and device images for root's group alone."""
    modes = {"host": 0o440, "device": 0o440, "script": 0o550, "lib64": 0o444, "tools": 0o555}
    for path in target.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
        else:
            parts = path.relative_to(target).parts
            path.chmod(modes.get(parts[1] if len(parts) > 2 else "", 0o550 if path.suffix == ".sh" else 0o444))
