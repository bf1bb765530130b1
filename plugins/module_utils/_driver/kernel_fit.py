# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the modules of a driver fit a kernel: those that were built for its release, or for another one with the same symbols.

``symvers``, in all functions: the Symvers of the kernel.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable


def check(modules, plan, symvers):
    """Raise NpuError if the kernel of ``symvers`` refuses one of the ``modules`` that ``plan`` (of ``tree.load_plan``) requires."""
    required = {kernel_modules.module_name(line.split(" ")[1]) for line in plan if line.endswith(" required")}
    for module in modules:
        symbols = symvers.differing(module.versions) if module.name in required else []
        if symbols:
            symbol = symbols[0]
            raise NpuError(
                "Kernel module %s does not load into the kernel %s of this host: the CRC of the symbol %s is %#010x in the module, "
                "and %#010x in %s; %d of its %d symbols differ. The module is for another build of this kernel. Compile the "
                "modules with the headers of the installed build; if that file is of another build, update it or remove it"
                % (
                    module.name,
                    symvers.release,
                    printable(symbol),
                    module.versions[symbol],
                    symvers.kernel[symbol],
                    symvers.path,
                    len(symbols),
                    len(module.versions),
                ),
                kernel=symvers.release,
                module=module.name,
                symbols=symbols,
            )


def choose(by_kernel, kernel, symvers, optional):
    """The value of ``by_kernel`` (kernel release -> name -> Modules) for ``kernel``, or another one whose modules it also loads.

    ``optional``: names of the modules that need not fit. A kernel ignores the release in the vermagic of a module that has symbol
    versions. Raises NpuError if there is no such value.
    """
    if kernel in by_kernel:
        return by_kernel[kernel]
    reasons = []
    for other in sorted(by_kernel) if symvers is not None else ():
        modules = [module for name in sorted(by_kernel[other]) for module in by_kernel[other][name]]
        why = _misfit([module for module in modules if module.name not in optional], modules, symvers)
        if why is None:
            return by_kernel[other]
        reasons.append("Those for %s do not fit: %s" % (other, why))
    has = "The image has no modules for kernel %s; it has modules for %s" % (kernel, ", ".join(sorted(by_kernel)))
    raise NpuError(
        ". ".join([has] + reasons), kernel=kernel, kernels=sorted(by_kernel), **({"misfits": reasons} if reasons else {})
    )


def _misfit(required, modules, symvers):
    """Why the kernel of ``symvers`` may not load the ``required`` ones of ``modules``, or None if it is certain that it does."""
    own = {name for module in modules for name in module.exports}
    if not required:
        return "none of them is required"
    for module in required:
        symbols = symvers.lacking(module.versions, own)
        if not module.versions:
            return "%s has no symbol versions" % module.name
        if symbols:
            return "%s needs %s with a CRC that %s does not have" % (module.name, printable(symbols[0]), symvers.path)
        if module.flags != symvers.flags:
            told = "unknown" if symvers.flags is None else printable(symvers.flags)
            return "the vermagic of %s has the flags %s, and those of this kernel are %s" % (
                module.name,
                printable(module.flags),
                told,
            )
    return None
