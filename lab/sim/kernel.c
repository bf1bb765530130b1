/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libkernel.so: uname() with the release of the kernel that lab/kernel made this node boot. npusim writes the file at boot. */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname *name)
{
    long status = syscall(SYS_uname, name);
    if (status != 0)
        return (int)status;
    int file = (int)syscall(SYS_openat, AT_FDCWD, "/run/npusim/kernel", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    char release[sizeof name->release];
    long length = syscall(SYS_read, file, release, sizeof release - 1);
    syscall(SYS_close, file);
    if (length > 0) {
        memcpy(name->release, release, (size_t)length);
        name->release[length] = '\0';
    }
    return 0;
}
