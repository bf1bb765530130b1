/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* upgrade-tool: which firmware the chips run, and writing images to their flash, one chip after the other. */
#include "dcmi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_VERSION "22.0.3" /* of the one capture; what it counts is unknown */

static const struct {
    int type;
    const char *name;
} components[] = {{0, "nve"}, {3, "uefi"}, {8, "imu"}, {9, "imp"}};

#define COMPONENTS (int)(sizeof(components) / sizeof(components[0]))

static void component_versions(const struct hal_chip *chip, int component)
{
    for (int i = 0; i < COMPONENTS; i++) {
        if (component == -1 || component == components[i].type) {
            printf("Get component version(%s) succeed for deviceId(%d), componentType(%d).\n", chip->firmware, chip->phy,
                   components[i].type);
            printf("\t{\"device_id\":%d, \"component\":%s, \"version\":%s}\n", chip->phy, components[i].name, chip->firmware);
        }
    }
}

static void system_version(const struct hal_chip *chip)
{
    printf("Get system version(%s) succeed, deviceId(%d)\n", SYSTEM_VERSION, chip->phy);
    printf("\t{\"device_id\":%d, \"version\":%s}\n", chip->phy, SYSTEM_VERSION);
}

/* The version in the first line of an image: "simulated 910b nve 7.8.0.7.220". 0 if it is an image for the chip. */
static int image_version(const char *directory, const struct hal_chip *chip, const char *component, char *version)
{
    char path[512], family[8], family_in_file[8], component_in_file[16];
    FILE *file;
    int fields = 0;

    snprintf(family, sizeof(family), "%s", chip->family);
    for (char *c = family; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    snprintf(path, sizeof(path), "%s/ascend_%s_%s.img", directory, family, component);
    file = fopen(path, "re");
    if (file) {
        fields = fscanf(file, "simulated %7s %15s %31s", family_in_file, component_in_file, version);
        fclose(file);
    }
    if (fields != 3 || strcmp(family, family_in_file) != 0 || strcmp(component, component_in_file) != 0) {
        printf("Image %s is not there, or not for deviceId(%d).\n", path, chip->phy);
        return 1;
    }
    return 0;
}

/* One chip's flash. The silicon answers when it is written. Only root reaches its socket. */
static int write_flash(int phy, const char *version)
{
    char request[128], error[128];

    snprintf(request, sizeof(request), "{\"Operation\":\"flash\",\"Chip\":%d,\"Version\":\"%s\"}\n", phy, version);
    if (hal_control(request, error, sizeof(error)) != 0) {
        printf("Upgrade failed for deviceId(%d): %s.\n", phy, error);
        return 1;
    }
    printf("Upgrade succeed for deviceId(%d), version(%s).\n", phy, version);
    return 0;
}

static int upgrade(const struct hal_chip *chip, const char *directory)
{
    char version[32];

    for (int i = 0; i < COMPONENTS; i++) {
        if (image_version(directory, chip, components[i].name, version) != 0) {
            return 1;
        }
    }
    return write_flash(chip->phy, version);
}

static int usage(void)
{
    printf("Usage: upgrade-tool --device_index <index|-1> --component <type|-1> --version\n"
           "       upgrade-tool --device_index <index|-1> --component -1 --path <directory>\n"
           "       upgrade-tool --device_index <index|-1> --system_version\n");
    return 1;
}

int main(int argc, char **argv)
{
    const struct hal_state *state;
    const char *directory = NULL;
    int device = -1, component = -1, versions = 0, system = 0, found = 0, failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--version") == 0) {
            versions = 1;
        } else if (strcmp(argv[i], "--system_version") == 0) {
            system = 1;
        } else if (value && strcmp(argv[i], "--device_index") == 0) {
            device = atoi(argv[++i]);
        } else if (value && strcmp(argv[i], "--component") == 0) {
            component = atoi(argv[++i]);
        } else if (value && strcmp(argv[i], "--path") == 0) {
            directory = argv[++i];
        } else {
            return usage();
        }
    }
    if (versions + system + !!directory != 1 || (directory && component != -1)) {
        return usage();
    }
    if (dcmi_init() != 0) {
        printf("Get device count failed, ret(%d). Check that the driver is loaded.\n", dcmi_state()->result);
        return 1;
    }
    state = dcmi_state();
    printf("{\n");
    for (int i = 0; i < state->count && !failed; i++) {
        const struct hal_chip *chip = &state->chips[i];

        if (device != -1 && device != chip->phy) {
            continue;
        }
        found = 1;
        if (directory) {
            failed = upgrade(chip, directory);
        } else if (system) {
            system_version(chip);
        } else {
            component_versions(chip, component);
        }
    }
    printf("}\n");
    return failed || !found;
}
