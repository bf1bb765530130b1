/* Copyright (c) 2026, npuops.ascend maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#include "ascend_hal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT "6629"
#define CONNECT_TIMEOUT_MS 2000
#define TEXT_SIZE 65536

int strcpy_s(char *to, size_t size, const char *from);
int mm_probe_device(const char *path);

static const char *device_directory(void)
{
    const char *directory = getenv("NPUSIM_DEV"); /* for tests */

    return directory ? directory : "/dev";
}

static int probe(const char *name, int number)
{
    char path[256];

    snprintf(path, sizeof(path), number < 0 ? "%s/%s" : "%s/%s%d", device_directory(), name, number);
    return mm_probe_device(path);
}

int hal_on_host(void)
{
    return access("/run/npusim", F_OK) == 0;
}

static int connect_to(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *address;
    struct pollfd waiting;
    int error = 0;
    socklen_t size = sizeof(error);
    int fd;

    if (getaddrinfo(host, port, &hints, &address) != 0) {
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        waiting = (struct pollfd){.fd = fd, .events = POLLOUT};
        if (errno != EINPROGRESS || poll(&waiting, 1, CONNECT_TIMEOUT_MS) != 1 ||
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(address);
    return fd;
}

/* The default gateway of a pod is its node. */
static int default_gateway(char *host, size_t size)
{
    FILE *routes = fopen("/proc/net/route", "re");
    char line[256], interface[64];
    unsigned int destination, gateway;
    int found = 0;

    while (routes && !found && fgets(line, sizeof(line), routes)) {
        if (sscanf(line, "%63s %x %x", interface, &destination, &gateway) == 3 && destination == 0) {
            found = inet_ntop(AF_INET, &gateway, host, size) != NULL;
        }
    }
    if (routes) {
        fclose(routes);
    }
    return found;
}

static int connect_silicon(void)
{
    const char *fixed = getenv("NPUSIM_ADDRESS"); /* for tests: address:port */
    const char *host_ip = getenv("HOST_IP");
    char host[64];
    int fd;

    if (fixed) {
        const char *colon = strchr(fixed, ':');

        if (!colon) {
            return -1;
        }
        snprintf(host, sizeof(host), "%.*s", (int)(colon - fixed), fixed);
        return connect_to(host, colon + 1);
    }
    fd = connect_to("127.0.0.1", PORT);
    if (fd < 0 && host_ip) {
        fd = connect_to(host_ip, PORT);
    }
    if (fd < 0 && default_gateway(host, sizeof(host))) {
        fd = connect_to(host, PORT);
    }
    return fd;
}

/* Blocks as long as the silicon does, like a driver that hangs in the kernel. Closes fd. */
static int ask_at(int fd, const char *program, char *text, size_t size)
{
    size_t length = 0;
    struct pollfd waiting;
    ssize_t got;

    if (fd < 0) {
        return -1;
    }
    length = snprintf(text, size, "query %s\n", program);
    if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length) {
        close(fd);
        return -1;
    }
    length = 0;
    waiting = (struct pollfd){.fd = fd, .events = POLLIN};
    while (length < size - 1) {
        if (poll(&waiting, 1, -1) < 0 && errno == EINTR) {
            continue;
        }
        got = recv(fd, text + length, size - 1 - length, 0);
        if (got <= 0) {
            break;
        }
        length += got;
    }
    close(fd);
    text[length] = '\0';
    return length >= 4 && strcmp(text + length - 4, "end\n") == 0 ? 0 : -1;
}

static int ask(const char *program, char *text, size_t size)
{
    return ask_at(connect_silicon(), program, text, size);
}

/* The port must be up, and the value must end there. */
static int has_address(int fd, const char *address)
{
    static char text[TEXT_SIZE];
    char wanted[64], *rest = NULL, *value;

    snprintf(wanted, sizeof(wanted), " ip=%s", address);
    if (ask_at(fd, "hccn_tool", text, sizeof(text)) != 0) {
        return 0;
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        value = strstr(line, wanted);
        if (value && strstr(line, " port=1 ") && strchr(" ", value[strlen(wanted)])) {
            return 1;
        }
    }
    return 0;
}

int hal_peer_has(const char *address)
{
    const char *path = getenv("NPUSIM_HOSTS"); /* for tests: lines of an address and a port */
    FILE *hosts = fopen(path ? path : "/etc/hosts", "re");
    char line[256], host[64], name[64];
    int found = 0;

    while (hosts && !found && fgets(line, sizeof(line), hosts)) {
        if (sscanf(line, "%63s %63s", host, name) == 2 && (path || strcmp(name, "localhost") != 0)) {
            found = has_address(connect_to(host, path ? name : PORT), address);
        }
    }
    if (hosts) {
        fclose(hosts);
    }
    return found;
}

static void read_value(struct hal_chip *chip, const char *key, char *value)
{
    static const struct {
        const char *key;
        size_t offset, size; /* size 0: a number */
    } fields[] = {
#define NUMBER(name) {#name, offsetof(struct hal_chip, name), 0}
#define TEXT(name) {#name, offsetof(struct hal_chip, name), sizeof(((struct hal_chip *)0)->name)}
        NUMBER(phy), NUMBER(card), NUMBER(chip), NUMBER(result), NUMBER(health), NUMBER(temp), NUMBER(mcu_temp),
        NUMBER(power), NUMBER(used), NUMBER(hbm), NUMBER(ddr), NUMBER(cores), NUMBER(ctrlcpu), NUMBER(port), NUMBER(weak), TEXT(ip), TEXT(bus), TEXT(family),
        TEXT(name), TEXT(product), TEXT(device), TEXT(subvendor), TEXT(subdevice), TEXT(board),
        TEXT(serial), TEXT(code), TEXT(firmware),
    };

    for (char *c = value; *c; c++) {
        *c = *c == '~' ? ' ' : *c;
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(key, fields[i].key) == 0 && fields[i].size == 0) {
            *(int *)((char *)chip + fields[i].offset) = atoi(value);
        } else if (strcmp(key, fields[i].key) == 0) {
            strcpy_s((char *)chip + fields[i].offset, fields[i].size, value);
        }
    }
}

static void read_chip(struct hal_state *state, char *line)
{
    struct hal_chip *chip = &state->chips[state->count];
    char *rest = NULL;
    int reachable;

    memset(chip, 0, sizeof(*chip));
    strcpy_s(chip->firmware, sizeof(chip->firmware), state->firmware);
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equal = strchr(word, '=');

        if (equal) {
            *equal = '\0';
            read_value(chip, word, equal + 1);
        }
    }
    reachable = probe("davinci", chip->phy);
    /* The driver knows a chip whose node somebody removed; a container sees no more than its nodes. */
    if (reachable == 0 || (reachable == ENOENT && hal_on_host())) {
        chip->logic = state->count++;
    }
}

static void read_parts(struct hal_parts *parts, const char *line)
{
    const char *from = strstr(line, "cores=");

    if (from) {
        sscanf(from, "cores=%d memory=%d aicpu=%d vpc=%d venc=%d vdec=%d jpegd=%d jpege=%d", &parts->cores, &parts->memory,
               &parts->aicpu, &parts->vpc, &parts->venc, &parts->vdec, &parts->jpegd, &parts->jpege);
    }
}

static void read_template(struct hal_state *state, const char *line)
{
    struct hal_template *template = &state->templates[state->template_count++];

    sscanf(line, "name=%23s", template->name);
    read_parts(&template->parts, line);
}

static void read_vnpu(struct hal_state *state, const char *line)
{
    struct hal_vnpu *vnpu = &state->vnpus[state->vnpu_count++];

    sscanf(line, "id=%d phy=%d template=%23s group=%d used=%d", &vnpu->id, &vnpu->phy, vnpu->name, &vnpu->group, &vnpu->used);
}

int hal_control(const char *request, char *error, int size)
{
    const char *path = getenv("NPUSIM_CONTROL"); /* for tests */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char text[1024], *found;
    size_t length = 0;
    ssize_t got;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(error, size, "no answer");
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path ? path : "/run/npusim/control.sock");
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request)) {
        while (length < sizeof(text) - 1 && (got = recv(fd, text + length, sizeof(text) - 1 - length, 0)) > 0) {
            length += got;
        }
    }
    close(fd);
    text[length] = '\0';
    found = strstr(text, "\"Error\":\"");
    if (!found) {
        return -1;
    }
    found += strlen("\"Error\":\"");
    snprintf(error, size, "%.*s", (int)strcspn(found, "\""), found);
    return error[0] ? -1 : 0;
}

int hal_read(const char *program, struct hal_state *state)
{
    static char text[TEXT_SIZE];
    char *rest = NULL;

    memset(state, 0, sizeof(*state));
    state->result = HAL_INNER_ERROR;
    if (probe("davinci_manager", -1) != 0 || ask(program, text, sizeof(text)) != 0) {
        return state->result;
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, ' ');

        if (!value) {
            continue;
        }
        *value++ = '\0';
        if (strcmp(line, "result") == 0) {
            state->result = atoi(value);
        } else if (strcmp(line, "smi_fails") == 0) {
            state->smi_fails = atoi(value);
        } else if (strcmp(line, "smi_garbage") == 0) {
            state->smi_garbage = atoi(value);
        } else if (strcmp(line, "driver") == 0) {
            strcpy_s(state->driver, sizeof(state->driver), value);
        } else if (strcmp(line, "firmware") == 0) {
            strcpy_s(state->firmware, sizeof(state->firmware), value);
        } else if (strcmp(line, "chip") == 0 && state->count < HAL_MAX_CHIPS) {
            read_chip(state, value);
        } else if (strcmp(line, "parts") == 0) {
            read_parts(&state->parts, value);
        } else if (strcmp(line, "template") == 0 && state->template_count < HAL_MAX_TEMPLATES) {
            read_template(state, value);
        } else if (strcmp(line, "vnpu") == 0 && state->vnpu_count < HAL_MAX_VNPUS) {
            read_vnpu(state, value);
        } else if (strcmp(line, "vnpu_recover") == 0) {
            state->vnpu_recover = atoi(value);
        }
    }
    return state->result;
}
