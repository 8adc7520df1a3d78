/* SPDX-License-Identifier: MIT
 *
 * version.c - posenc --version: the version, and how this copy was built
 */
#include "version.h"

#include "cli.h"
#include "machine.h"
#include "print.h"

#include "posenc/env.h"

#include <json-c/json_c_version.h>
#include <stdio.h>

int cli_print_version(void)
{
    const int32_t version = pe_version_number();
    cli_machine machine;
    cli_machine_read(&machine);
    cli_print("posenc %d.%d.%d\n", (int)(version / 10000), (int)(version / 100 % 100),
              (int)(version % 100));
    cli_print("compiler  %s\n", machine.compiler);
    cli_print("flags     %s\n", machine.flags);
    cli_print("kernels  ");
    for (pe_isa isa = PE_ISA_SCALAR; isa <= PE_ISA_WASM128; isa++)
        if (pe_isa_available(isa))
            cli_print(" %s", pe_isa_name(isa));
    cli_print(" run here\n");
    cli_print("json-c    %s\n", json_c_version());
    return CLI_DONE;
}
