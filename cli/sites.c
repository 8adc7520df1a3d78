/* SPDX-License-Identifier: MIT
 *
 * sites.c - the attention sites of a model, equal ones together
 */
#include "sites.h"

#include <stdio.h>
#include <stdlib.h>

static int is_of_group(const pe_site *site, const cli_site_group *group)
{
    return site->role == group->role && site->rope == group->rope &&
           site->bias == group->bias;
}

static int has_group(const cli_site_groups *groups, const pe_site *site)
{
    for (size_t i = 0; i < groups->count; i++)
        if (is_of_group(site, &groups->items[i]))
            return 1;
    return 0;
}

static void print_run(FILE *file, int is_first, int32_t begin, int32_t end)
{
    (void)fprintf(file, "%s%d", is_first ? "" : ",", begin);
    if (end > begin)
        (void)fprintf(file, "-%d", end);
}

/* Layers ascend within a role. */
static char *fold_layers(const pe_model *model, const cli_site_group *group)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    const pe_site *site;
    int32_t begin = -1, end = -1;
    int is_first = 1;
    for (int32_t i = 0; (site = pe_model_site(model, i)) != NULL; i++) {
        if (!is_of_group(site, group))
            continue;
        if (begin >= 0 && site->layer != end + 1) {
            print_run(file, is_first, begin, end);
            is_first = 0;
            begin = -1;
        }
        begin = begin < 0 ? site->layer : begin;
        end = site->layer;
    }
    if (begin >= 0)
        print_run(file, is_first, begin, end);
    return fclose(file) == 0 ? text : NULL;
}

int cli_sites_group(cli_site_groups *out, const pe_model *model)
{
    const pe_site *site;
    int32_t num_sites = pe_model_get_info(model)->num_sites;
    *out = (cli_site_groups){0};
    out->items = calloc((size_t)num_sites + 1, sizeof *out->items);
    if (out->items == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    for (int32_t i = 0; (site = pe_model_site(model, i)) != NULL; i++) {
        if (has_group(out, site))
            continue;
        cli_site_group *group = &out->items[out->count];
        *group = (cli_site_group){
            .role = site->role, .rope = site->rope, .bias = site->bias};
        group->layers = fold_layers(model, group);
        if (group->layers == NULL) {
            cli_sites_release(out);
            return cli_fail(CLI_FAILED, "out of memory");
        }
        out->count++;
    }
    return CLI_DONE;
}

void cli_sites_release(cli_site_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        free(groups->items[i].layers);
    free(groups->items);
    *groups = (cli_site_groups){0};
}
