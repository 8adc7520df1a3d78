/* SPDX-License-Identifier: MIT
 *
 * rope_arg.c - the rotation that --layer, --role, --seq-len and --angles choose
 */
#include "rope_arg.h"

#include "report.h"
#include "sites.h"

#include <stdio.h>
#include <string.h>

static int fail_no_rotation(const cli_model *model)
{
    const char *method = pe_model_get_info(model->model)->method;
    const char *instead = "has no positional encoding";
    if (strcmp(method, "sinusoidal") == 0 || strcmp(method, "learned") == 0)
        instead = "positions are added to the input (see posenc apply --x)";
    else if (strcmp(method, "alibi") == 0 || strcmp(method, "t5") == 0)
        instead = "positions act on the scores (see posenc bias)";
    else if (strcmp(method, "none") != 0)
        instead = "positions act on the scores";
    return cli_fail(CLI_FAILED, "%s rotates nothing (method %s): %s", model->name,
                    method, instead);
}

/* "0-4 (default, rope_theta 10000)" */
static int describe(char *out, size_t size, const pe_model *model,
                    const cli_site_group *group)
{
    pe_rope_spec spec = {.struct_size = sizeof spec};
    cli_number theta;
    if (group->rope < 0 || pe_model_rope_spec(model, group->rope, &spec, NULL) != PE_OK)
        return snprintf(out, size, "%s (no rotation)", group->layers);
    return snprintf(out, size, "%s (%s, rope_theta %s, head_dim %d)", group->layers,
                    cli_choice_name(cli_rope_type_names, spec.freqs.rope_type),
                    cli_double(&theta, spec.freqs.rope_theta), (int)spec.head_dim);
}

static int fail_groups(const cli_model *model, const cli_site_groups *groups,
                       int32_t role)
{
    char list[800] = "";
    size_t used = 0;
    for (size_t i = 0; i < groups->count && used < sizeof list; i++) {
        if (groups->items[i].role != role)
            continue;
        if (used > 0)
            used += (size_t)snprintf(list + used, sizeof list - used, "; ");
        if (used < sizeof list)
            used += (size_t)describe(list + used, sizeof list - used, model->model,
                                     &groups->items[i]);
    }
    return cli_fail(CLI_USAGE, "layers of %s differ: %s; choose one with --layer",
                    model->name, list);
}

static const cli_site_group *group_of(const cli_site_groups *groups,
                                      const pe_site *site)
{
    for (size_t i = 0; i < groups->count; i++) {
        const cli_site_group *group = &groups->items[i];
        if (group->role == site->role && group->rope == site->rope &&
            group->bias == site->bias)
            return group;
    }
    return NULL;
}

/* Self attention, or the first role of a model that has none: a vision tower. */
static int32_t choose_role(const cli_site_groups *groups, int32_t said)
{
    if (said >= 0 || groups->count == 0)
        return said;
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].role == PE_SITE_SELF)
            return PE_SITE_SELF;
    return groups->items[0].role;
}

static int choose_layer(const cli_site_group **out, const cli_model *model,
                        const cli_site_groups *groups, const cli_rope_args *args)
{
    int32_t role = choose_role(groups, args->role);
    const pe_site *site = pe_model_find_site(model->model, (int32_t)args->layer, role);
    if (site == NULL)
        return cli_fail(CLI_USAGE,
                        "--layer is %lld, but %s has no %s attention there; posenc "
                        "inspect lists its layers",
                        (long long)args->layer, model->name,
                        cli_choice_name(cli_role_names, role));
    *out = group_of(groups, site);
    if (site->rope < 0)
        return cli_fail(CLI_FAILED, "layer %d of %s has no rotation (NoPE)",
                        (int)site->layer, model->name);
    return CLI_DONE;
}

/* The only group of the role whose rotation differs from none before it. */
static int choose_group(const cli_site_group **out, const cli_model *model,
                        const cli_site_groups *groups, const cli_rope_args *args)
{
    if (args->layer >= 0)
        return choose_layer(out, model, groups, args);
    int32_t role = choose_role(groups, args->role);
    *out = NULL;
    for (size_t i = 0; i < groups->count; i++) {
        const cli_site_group *group = &groups->items[i];
        if (group->role != role)
            continue;
        if (*out != NULL && (*out)->rope != group->rope)
            return fail_groups(model, groups, role);
        *out = *out ? *out : group;
    }
    if (*out == NULL)
        return cli_fail(CLI_USAGE,
                        "%s has no %s attention; posenc inspect lists its layers",
                        model->name, cli_choice_name(cli_role_names, role));
    if ((*out)->rope < 0)
        return cli_fail(CLI_FAILED, "the %s sites of %s have no rotation (NoPE)",
                        cli_choice_name(cli_role_names, role), model->name);
    return CLI_DONE;
}

static int choose(cli_rope *out, int32_t *index, const cli_model *model,
                  const cli_rope_args *args)
{
    if (pe_model_get_info(model->model)->num_ropes == 0)
        return fail_no_rotation(model);
    cli_site_groups groups;
    const cli_site_group *group = NULL;
    int status = cli_sites_group(&groups, model->model);
    if (status == CLI_DONE)
        status = choose_group(&group, model, &groups, args);
    if (status == CLI_DONE) {
        int whole = strlen(group->layers) < sizeof out->layers;
        (void)snprintf(out->layers, sizeof out->layers, "%.*s%s",
                       (int)sizeof out->layers - 4, group->layers, whole ? "" : "...");
        *index = group->rope;
    }
    cli_sites_release(&groups);
    return status;
}

static int create(cli_rope *out, const cli_model *model, int32_t index,
                  const cli_rope_args *args, int64_t table_len)
{
    pe_error error;
    out->spec = (pe_rope_spec){.struct_size = sizeof out->spec};
    if (pe_model_rope_spec(model->model, index, &out->spec, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    if (out->spec.head_dim == 0)
        return cli_fail(CLI_FAILED,
                        "%s: no head size is stated: add head_dim, or hidden_size and "
                        "num_attention_heads",
                        model->name);
    out->spec.angles = args->angles;
    out->spec.table_len = table_len;
    const pe_env env = {.struct_size = sizeof env, .isa = args->isa};
    if (pe_rope_create(&out->plan, &out->spec, &env, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    out->info = pe_rope_get_info(out->plan);
    return CLI_DONE;
}

int cli_rope_open(cli_rope *out, cli_model *model, const cli_rope_args *args,
                  int64_t last, int64_t table_len)
{
    int32_t index = 0;
    *out = (cli_rope){0};
    int status = choose(out, &index, model, args);
    if (status == CLI_DONE)
        status = create(out, model, index, args, table_len);
    if (status == CLI_DONE && last < INT64_MAX && last >= out->info->seq_len_max) {
        if (args->seq_len != 0) {
            cli_note("positions reach %lld, but with --seq-len %lld the frequencies "
                     "are right for lengths up to %lld",
                     (long long)last, (long long)args->seq_len,
                     (long long)out->info->seq_len_max);
            return CLI_DONE;
        }
        cli_note("frequencies depend on the total length; taking %lld, the largest "
                 "position plus 1 (--seq-len says otherwise)",
                 (long long)last + 1);
        pe_rope_destroy(out->plan);
        out->plan = NULL;
        status = cli_model_set_len(model, last + 1);
        if (status == CLI_DONE)
            status = choose(out, &index, model, args);
        if (status == CLI_DONE)
            status = create(out, model, index, args, table_len);
    }
    if (status != CLI_DONE)
        cli_rope_close(out);
    return status;
}

void cli_rope_close(cli_rope *rope)
{
    pe_rope_destroy(rope->plan);
    *rope = (cli_rope){0};
}
