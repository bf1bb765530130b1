# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernels of a host: which are installed, and which one its boot loader, GRUB, boots next.

Reads GRUB's own files and starts no program: grub.cfg as grub-mkconfig writes it, grubenv, and entries of the Boot Loader
Specification where grub.cfg has the command ``blscfg``. grub.cfg is a script, of which only what these generators write is
understood. With anything else, and with any other boot loader, the next kernel is unknown (None), which is never an error.

    grubenv: next_entry       the entry for one boot (grub-reboot), counts first
    grub.cfg: set default=    a number, title or ID, with ">" between those of submenus; "${saved_entry}": the one in grubenv

A default under a condition of its own makes the next kernel unknown. Except the one of Fedora's GRUB for boots that failed, if none
are counted.

Sources: the GRUB manual (section "Simple configuration handling" and "default"), and the Boot Loader Specification,
https://uapi-group.org/specifications/specs/boot_loader_specification.
"""

from __future__ import annotations

import os
import re
import shlex

from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

MODULES = "/lib/modules"
# Where distributions have grub.cfg; the first one that has entries counts. The one in the EFI partition may only refer to another.
_EFI = "/boot/efi/EFI"
_GRUB = ("/boot/grub2/grub.cfg", "/boot/grub/grub.cfg")
_ENTRIES = "/boot/loader/entries"

_RELEASE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~-]{0,254}\Z")
_IMAGE = re.compile(r"(?:vmlinuz|vmlinux|Image|kernel)-(.+)\Z")
_DEFAULT = re.compile(r'\s*set\s+default="?([^"]*?)"?\s*\Z')
# Of boot files that are larger, or of more entries, nothing is read.
_MOST_BYTES = 4 * 1024 * 1024
_MOST_ENTRIES = 500


def installed(fs=""):
    """The releases of the kernels that have modules on the host, sorted."""
    try:
        names = os.listdir(fs + MODULES)
    except OSError:
        return []
    return sorted(name for name in names if _RELEASE.match(name) and os.path.isdir(os.path.join(fs + MODULES, name)))


def next_kernel(fs=""):
    """The release of the kernel that the next boot loads by default, or None if that is not known."""
    for path in _configurations(fs):
        text = _read(fs + path)
        menu = _menu(text, fs) if text else []
        if menu:
            environment = _environment(_read(os.path.join(os.path.dirname(fs + path), "grubenv")) or "")
            wanted = _wanted(text, environment)
            return _release(_entry(menu, wanted), fs) if wanted is not None else None
    return None


class _Entry:
    """An entry or a submenu. ``names``: title and ID; ``image``: path of the kernel; ``menu``: the entries of a submenu."""

    def __init__(self, names, image=None, menu=None):
        self.names = names
        self.image = image
        self.menu = menu


def _configurations(fs):
    """Paths where a grub.cfg may be, in the order in which they count."""
    found = []
    if os.path.isdir(fs + "/sys/firmware/efi"):
        try:
            found = ["%s/%s/grub.cfg" % (_EFI, name) for name in sorted(os.listdir(fs + _EFI))]
        except OSError:
            pass
    return found + list(_GRUB)


def _read(path):
    """The text of the file, or None if it is absent, no regular file, unreadable or too large."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return None
        return read_text(path)
    except (OSError, UnicodeDecodeError):
        return None


def _environment(text):
    """The variables in a grubenv."""
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, equals, value in lines if equals}


def _wanted(text, environment):
    """The default entry: a number, title, ID or path of them; None if it is unknown. An unset variable is the first entry, as for
    GRUB."""
    value = "0"
    for found, conditions in _defaults(text):
        if "next_entry" in found:
            if environment.get("next_entry"):
                return environment["next_entry"]
        elif all("next_entry" in condition for condition in conditions):
            value = found
        elif not _is_about_failed_boots(conditions) or _counts_failed_boots(environment):
            return None
    variable = re.match(r"\$\{?(\w+)\}?\Z", value)
    return (environment.get(variable.group(1)) if variable else value) or "0"


def _defaults(text):
    """(default, the conditions under which it is set) in the grub.cfg ``text``, in their order."""
    conditions = []
    for line in text.splitlines():
        word = line.strip().partition(" ")[0].rstrip(";")
        if word == "if":
            conditions.append(line)
        elif word == "elif" and conditions:
            conditions[-1] += line
        elif word == "fi" and conditions:
            conditions.pop()
        found = _DEFAULT.match(line)
        if found:
            yield found.group(1), list(conditions)


def _is_about_failed_boots(conditions):
    return any("boot_counter" in condition for condition in conditions)


def _counts_failed_boots(environment):
    return bool(environment.get("boot_counter")) and environment.get("boot_success") == "0"


def _entry(menu, wanted):
    """The entry of ``menu`` that ``wanted`` names, or None. GRUB boots the first one if there is none of that name."""
    for part in wanted.split(">"):
        if menu is None:
            return None
        chosen = next((entry for entry in menu if part in entry.names), None)
        if chosen is None and part.isdecimal() and int(part) < len(menu):
            chosen = menu[int(part)]
        if chosen is None:
            chosen = menu[0]
            break
        menu = chosen.menu
    return chosen


def _release(entry, fs):
    """The kernel release of the entry, or None: only one that is installed is believed."""
    image = _IMAGE.match(os.path.basename(entry.image or "")) if entry else None
    return image.group(1) if image and image.group(1) in installed(fs) else None


def _menu(text, fs):
    """The entries in the grub.cfg ``text``, in their order."""
    top = []
    open_menus = [top]
    count = 0
    for line in text.splitlines():
        words = _words(line)
        if not words:
            continue
        if words[0] in ("menuentry", "submenu") and words[-1] == "{" and len(words) > 2:
            count += 1
            entry = _Entry(_names(words), menu=[] if words[0] == "submenu" else None)
            open_menus[-1].append(entry)
            open_menus.append(entry.menu if entry.menu is not None else [entry])
        elif words[0] == "}" and len(open_menus) > 1:
            open_menus.pop()
        elif words[0] in ("linux", "linux16", "linuxefi") and len(words) > 1 and len(open_menus) > 1 and open_menus[-1]:
            entry = open_menus[-1][-1]
            entry.image = entry.image or words[1]
        elif words[0] == "blscfg" and len(open_menus) == 1:
            top.extend(_specified(fs))
        if count > _MOST_ENTRIES:
            return []
    return top


def _words(line):
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _names(words):
    """Title and ID of a menuentry or submenu."""
    names = [words[1]]
    for option in ("$menuentry_id_option", "--id"):
        if option in words[:-1]:
            names.append(words[words.index(option) + 1])
    return names


def _specified(fs):
    """The entries of the Boot Loader Specification, the highest version first, as blscfg sorts them."""
    try:
        files = [name for name in os.listdir(fs + _ENTRIES) if name.endswith(".conf")]
    except OSError:
        return []
    entries = []
    for name in sorted(files[:_MOST_ENTRIES], key=_version_key, reverse=True):
        fields = {}
        for line in (_read(os.path.join(fs + _ENTRIES, name)) or "").splitlines():
            words = line.split(None, 1)
            if len(words) == 2:
                fields.setdefault(words[0], words[1].strip())
        identifier = name[: -len(".conf")]
        entries.append(_Entry([identifier, name, fields.get("title", identifier)], fields.get("linux")))
    return entries


def _version_key(name):
    """A sort key in which numbers count as such, and are higher than words."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"[0-9]+|[A-Za-z]+", name)]
