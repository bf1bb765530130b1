/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
/* npu-smi: the command line and its errors. All text goes to stdout; the exit status is a negative code, modulo 256. */
#include "npu_smi.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OCCUPIED (-8020)

static int usage(void)
{
    printf("Usage: %s <Command|-h|-v> [Options...]\n\n%s Command:\n", TOOL_NAME, TOOL_NAME);
    printf("\t%-12s  %s\n", "-h", "This command's help information");
    printf("\t%-12s  %s\n", "--help", "This command's help information");
    printf("\t%-12s  %s\n", "-v", "Show npu-smi version information");
    printf("\t%-12s  %s\n", "info", "Show hardware details");
    printf("\t%-12s  %s\n", "set", "Change the settings of the device");
    return 0;
}

static void info_usage(void)
{
    printf("Usage: %s info <watch|proc|-h|-m|-l|-t type> [Options...]\n\nCommands:\n", TOOL_NAME);
    printf("       -h, --help     Show this help text and exit\n");
    printf("       -m             Show all device's mapping information\n");
    printf("       -l             Show all device's topology information\n");
    printf("       -t type        Show information for type\n");
    printf("                      type: board, common, health, power, product, temp, usages.\n");
    printf("\nOptions:\n       -i %%d          Card ID\n       -c %%d          Chip ID\n");
}

static int number(const char *text, int *value)
{
    char *end;

    *value = (int)strtol(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0';
}

static int bad(const char *option)
{
    printf("Error parameter of %s\n", option);
    info_usage();
    return BAD_PARAMETER;
}

static int info(const struct hal_state *state, int argc, char **argv)
{
    struct question question = {NULL, -1, -1, -1};
    int count;

    if (argc == 0) {
        print_table(state);
        return 0;
    }
    if (argc == 1 && (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0)) {
        info_usage();
        return 0;
    }
    if (argc == 1 && strcmp(argv[0], "-l") == 0) {
        print_list(state);
        return 0;
    }
    if (argc == 1 && strcmp(argv[0], "-m") == 0) {
        print_mapping(state);
        return 0;
    }
    for (int i = 0; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "-t") == 0 && (known_type(value) || known_vnpu_type(value))) {
            question.type = value;
        } else if ((strcmp(argv[i], "-p") == 0 && number(value, &question.phy)) ||
                   (strcmp(argv[i], "-i") == 0 && number(value, &question.card)) ||
                   (strcmp(argv[i], "-c") == 0 && number(value, &question.chip))) {
            continue;
        } else {
            return bad(argv[i]);
        }
    }
    if (!question.type) {
        printf("\nInput parameter format error.\n");
        info_usage();
        return BAD_PARAMETER;
    }
    if (known_vnpu_type(question.type)) {
        return print_vnpu_type(state, &question);
    }
    if (question.card < 0) {
        printf("\nThis command must input card id.\n\n");
        return BAD_PARAMETER;
    }
    if (dcmi_get_device_num_in_card(question.card, &count) != 0) {
        return bad("-i");
    }
    return print_type(state, &question);
}

static int set(const struct hal_state *state, int argc, char **argv)
{
    struct change change = {{"", -1, -1, -1}, 0, -1, ""};
    static const char *const known[] = {"create-vnpu", "destroy-vnpu", "vnpu-mode", "vnpu-cfg-recover"};

    for (int i = 0; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "-t") == 0) {
            change.of.type = value;
        } else if (strcmp(argv[i], "-f") == 0) {
            change.template = value;
        } else if ((strcmp(argv[i], "-i") == 0 && number(value, &change.of.card)) ||
                   (strcmp(argv[i], "-c") == 0 && number(value, &change.of.chip)) ||
                   (strcmp(argv[i], "-v") == 0 && number(value, &change.vnpu)) ||
                   (strcmp(argv[i], "-d") == 0 && number(value, &change.value))) {
            continue;
        } else {
            printf("Error parameter of %s\n", argv[i]);
            return BAD_PARAMETER;
        }
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], change.of.type) == 0) {
            return set_vnpu(state, &change);
        }
    }
    printf("Error parameter of -t\n");
    return BAD_PARAMETER;
}

static int failed(int result)
{
    if (result == OCCUPIED) {
        printf("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n");
        printf("dcmi model initialized failed, because the device is used. ret is %d\n", result);
    } else {
        printf("DrvMngGetConsoleLogLevel failed. (ret=4)\n");
        printf("dcmi module initialize failed. ret is %d\n", result);
    }
    return result;
}

static int run(int argc, char **argv)
{
    const struct hal_state *state;
    int result, known;

    if (argc < 2) {
        usage();
        return BAD_PARAMETER;
    }
    known = strcmp(argv[1], "info") == 0 || strcmp(argv[1], "set") == 0 || strcmp(argv[1], "-v") == 0;
    if (!known && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0) {
        printf("Command or option is not found.\n");
        usage();
        return INNER_ERROR;
    }
    /* A program that waits for the driver in the kernel cannot be ended by a signal. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    result = dcmi_init();
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    state = dcmi_state();
    if (state->smi_garbage) {
        printf("\x7f\x01\x02|| npu-smi \xff\xfe ?? +--+\n|| @@ 0000:: |||\n");
        return 0;
    }
    if (state->smi_fails) {
        return failed(state->smi_fails);
    }
    if (result != 0) {
        return failed(result);
    }
    if (strcmp(argv[1], "-v") == 0) {
        printf("%s version: %s\n", TOOL_NAME, TOOL_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "set") == 0) {
        return set(state, argc - 2, argv + 2);
    }
    return known ? info(state, argc - 2, argv + 2) : usage();
}

int main(int argc, char **argv)
{
    exit(run(argc, argv));
}
