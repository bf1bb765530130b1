/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* libmmpa.so: what differs between operating systems. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* 0 if the device can be reached by this process: it is there, and neither modes nor the device cgroup forbid it.
 * The simulated numbers belong to no driver: a device that may be opened answers ENXIO. Returns errno else. */
int mm_probe_device(const char *path)
{
    int descriptor = open(path, O_RDWR | O_CLOEXEC);

    if (descriptor >= 0) {
        close(descriptor);
        return 0;
    }
    return errno == ENXIO ? 0 : errno;
}
