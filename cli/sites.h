/* SPDX-License-Identifier: MIT
 *
 * sites.h - the attention sites of a model, equal ones together
 */
#ifndef POSENC_CLI_SITES_H
#define POSENC_CLI_SITES_H

#include "cli.h"

#include "posenc/model.h"

typedef struct cli_site_group {
    char *layers; /* "0-4,6-10" */
    pe_site_role role;
    int32_t rope, bias; /* as in pe_site */
} cli_site_group;

typedef struct cli_site_groups {
    cli_site_group *items;
    size_t count;
} cli_site_groups;

/* Groups sites of one role, rope and bias, in the order of their first layer. */
int cli_sites_group(cli_site_groups *out, const pe_model *model);
void cli_sites_release(cli_site_groups *groups);

#endif /* POSENC_CLI_SITES_H */
