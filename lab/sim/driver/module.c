/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* A kernel module as far as kmod looks: an ELF relocatable that says in .modinfo what it is. It has no code to run. */
#define INFO(number, text) \
    static const char info_##number[] __attribute__((section(".modinfo"), used, aligned(1))) = text

INFO(license, "license=GPL");
INFO(author, "author=npuops.ascend lab");
INFO(description, "description=Simulated " NAME ", loads nowhere but in the lab");
INFO(version, "version=" VERSION);
INFO(srcversion, "srcversion=" SRCVERSION);
ALIASES
INFO(depends, "depends=" DEPENDS);
INFO(retpoline, "retpoline=Y");
INFO(name, "name=" NAME);
#ifdef SIMULATE
INFO(simulate, "simulate=" SIMULATE); /* what is wrong with this driver, see lab/driver-image */
#endif
#ifdef FIRMWARE
INFO(simulate_firmware, "simulate_firmware=" FIRMWARE); /* lowest and highest that chips may run with this driver */
#endif
INFO(vermagic, "vermagic=" VERMAGIC);
