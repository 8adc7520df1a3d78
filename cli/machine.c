/* SPDX-License-Identifier: MIT
 *
 * machine.c - what this machine and this build are, for reports of speed
 *
 * From the system's own tables; a virtual machine may tell tales. */
#include "machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CLI_BUILD_FLAGS /* the build says how it compiles the kernels */
#  define CLI_BUILD_FLAGS "unknown"
#endif
#if defined(__clang__)
#  define COMPILER __VERSION__
#elif defined(__GNUC__)
#  define COMPILER "gcc " __VERSION__
#else
#  define COMPILER "unknown"
#endif

static void read_cpu_name(char *out, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    (void)snprintf(out, size, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        (void)snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file != NULL)
        (void)fclose(file);
}

/* /sys lists the caches of a CPU by index; sysconf knows only some. */
static void read_caches(int64_t cache[3])
{
    for (int index = 0; index < 8; index++) {
        static const char *const names[] = {"level", "type", "size"};
        char text[3][32] = {"", "", ""};
        for (int i = 0; i < 3; i++) {
            char path[96];
            (void)snprintf(path, sizeof path,
                           "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index,
                           names[i]);
            FILE *file = fopen(path, "r");
            if (file == NULL)
                return;
            if (fgets(text[i], sizeof text[i], file) == NULL)
                text[i][0] = '\0';
            (void)fclose(file);
        }
        const long level = strtol(text[0], NULL, 10);
        if (level >= 1 && level <= 3 && strncmp(text[1], "Instruction", 11) != 0)
            cache[level - 1] =
                strtoll(text[2], NULL, 10) * (strchr(text[2], 'M') ? 1 << 20 : 1 << 10);
    }
}

void cli_machine_read(cli_machine *out)
{
    cpu_set_t set;
    *out = (cli_machine){
        .num_cpus = 1, .load = -1, .compiler = COMPILER, .flags = CLI_BUILD_FLAGS};
    read_cpu_name(out->cpu, sizeof out->cpu);
    read_caches(out->cache);
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        out->num_cpus = CPU_COUNT(&set);
    double load[1];
    if (getloadavg(load, 1) == 1)
        out->load = load[0];
}

const char *cli_machine_place(const cli_machine *m, double size)
{
    static const char *const names[] = {"l1", "l2", "l3"};
    for (int i = 0; i < 3; i++)
        if (size <= (double)m->cache[i])
            return names[i];
    return "dram";
}
