/* SPDX-License-Identifier: MIT
 *
 * inspect_layers.c - what each layer does, runs of equal ones together
 *
 * Sites may come in any order; here they stand by role, then by layer. */
#include "inspect_text.h"

#include "names.h"
#include "print.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

static int by_role_and_layer(const void *a, const void *b)
{
    const pe_site *const *x = a, *const *y = b;
    if ((*x)->role != (*y)->role)
        return (*x)->role < (*y)->role ? -1 : 1;
    return (*x)->layer < (*y)->layer ? -1 : (*x)->layer > (*y)->layer;
}

static void print_rope(const pe_model *model, int32_t index)
{
    pe_rope_spec spec = {.struct_size = sizeof spec};
    cli_number number;
    if (pe_model_rope_spec(model, index, &spec, NULL) != PE_OK)
        return;
    cli_print("  rope[%d] %s, theta %s, %d of %d turn", (int)index,
              cli_choice_name(cli_rope_type_names, spec.freqs.rope_type),
              cli_double(&number, spec.freqs.rope_theta),
              (int)(spec.pairs.rotary_dim != 0 ? spec.pairs.rotary_dim : spec.head_dim),
              (int)spec.head_dim);
}

static void print_run(const pe_model *model, const pe_site *first, int32_t last)
{
    char run[32];
    if (last > first->layer)
        (void)snprintf(run, sizeof run, "%d-%d", (int)first->layer, (int)last);
    else
        (void)snprintf(run, sizeof run, "%d", (int)last);
    cli_print("  %-9s  %-8s", run, cli_choice_name(cli_role_names, first->role));
    if (first->rope >= 0)
        print_rope(model, first->rope);
    if (first->bias >= 0)
        cli_print("  bias[%d]", (int)first->bias);
    cli_print("%s\n", first->rope < 0 && first->bias < 0 ? "  no rotation" : "");
}

int cli_inspect_layers(const pe_model *model)
{
    const int32_t num = pe_model_get_info(model)->num_sites;
    const pe_site **sites = calloc((size_t)num + 1, sizeof *sites);
    if (sites == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    for (int32_t i = 0; i < num; i++)
        sites[i] = pe_model_site(model, i);
    qsort(sites, (size_t)num, sizeof *sites, by_role_and_layer);
    cli_print("\nlayer by layer\n");
    for (int32_t i = 0, end; i < num; i = end) {
        for (end = i + 1; end < num && sites[end]->role == sites[i]->role &&
                          sites[end]->rope == sites[i]->rope &&
                          sites[end]->bias == sites[i]->bias &&
                          sites[end]->layer == sites[end - 1]->layer + 1;)
            end++;
        print_run(model, sites[i], sites[end - 1]->layer);
    }
    free(sites);
    return CLI_DONE;
}
