/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libc_sec.so: bounded copies, the library every other one needs. */
#include <stddef.h>
#include <string.h>

int strcpy_s(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length >= size) {
        return 34;
    }
    memcpy(to, from, length + 1);
    return 0;
}
