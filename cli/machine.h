/* SPDX-License-Identifier: MIT
 *
 * machine.h - what this machine and this build are, for reports of speed
 */
#ifndef POSENC_CLI_MACHINE_H
#define POSENC_CLI_MACHINE_H

#include "cli.h"

typedef struct cli_machine {
    char cpu[96];     /* the system's name for it, or "unknown" */
    int64_t num_cpus; /* that this process may use */
    int64_t cache[3]; /* bytes of L1 data, L2, L3; 0: not known */
    double load;      /* runnable tasks in the last minute; negative: not known */
    const char *compiler, *flags;
} cli_machine;

void cli_machine_read(cli_machine *out);

/* "l1", "l2", "l3" or "dram": where size bytes fit. */
const char *cli_machine_place(const cli_machine *machine, double size);

#endif /* POSENC_CLI_MACHINE_H */
