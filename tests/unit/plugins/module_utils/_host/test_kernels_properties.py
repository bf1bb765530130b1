# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loader configurations of any content: never an error, never a kernel that is not installed."""

from __future__ import annotations

import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._host import kernels
from hypothesis import given
from hypothesis import strategies as st

from support.properties import STRANGE, bounded, damaged

RELEASE = "6.6.0-150"
GRUB = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="${saved_entry}"
fi
submenu 'Advanced' $menuentry_id_option 'advanced' {
\tmenuentry 'Linux 6.6.0-150' --class os $menuentry_id_option 'linux-6.6.0-150' {
\t\tlinux\t/vmlinuz-6.6.0-150 root=/dev/sda1
\t}
}
blscfg
"""
ENVIRONMENT = "# GRUB Environment Block\nsaved_entry=advanced>linux-6.6.0-150\n####\n"
ENTRY = "title Linux\nversion 6.6.0-150\nlinux /vmlinuz-6.6.0-150\n"
texts = st.text(STRANGE + "{}'\"$>\n\tmenuentry", max_size=60)


@given(
    st.one_of(damaged(st.just(GRUB)), texts),
    st.one_of(damaged(st.just(ENVIRONMENT)), texts),
    st.one_of(damaged(st.just(ENTRY)), texts),
)
def test_any_content(grub, environment, entry):
    with tempfile.TemporaryDirectory() as fs:
        os.makedirs(fs + "/lib/modules/" + RELEASE)
        for path, text in (
            ("/boot/grub2/grub.cfg", grub),
            ("/boot/grub2/grubenv", environment),
            ("/boot/loader/entries/%s.conf" % RELEASE, entry),
        ):
            os.makedirs(os.path.dirname(fs + path), exist_ok=True)
            with open(fs + path, "wb") as stream:
                stream.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        with bounded():
            assert kernels.next_kernel(fs) in (None, RELEASE)
