/* SPDX-License-Identifier: MIT
 *
 * bias_arg.c - the score bias that slopes and bias are asked about
 */
#include "bias_arg.h"

#include <errno.h>
#include <stdlib.h>

static int read_number(const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return *text != '\0' && *end == '\0' && errno == 0;
}

static int from_count(cli_bias *out, int64_t num_heads, const cli_bias_args *args)
{
    if (args->index >= 0)
        return cli_fail(CLI_USAGE, "--index goes with a MODEL, not with a head count");
    if (num_heads < INT32_MIN || num_heads > INT32_MAX)
        return cli_fail(CLI_USAGE, "%lld heads are too many", (long long)num_heads);
    out->spec.num_heads = (int32_t)num_heads;
    out->spec.type = PE_BIAS_ALIBI;
    out->spec.form = PE_BIAS_CAUSAL;
    out->spec.slope_recipe = args->recipe > 0 ? args->recipe : PE_SLOPES_PUBLISHED;
    out->spec.round_to = args->round_to;
    if (args->max_bias != NULL &&
        (!read_number(args->max_bias, &out->spec.max_bias) || out->spec.max_bias == 0))
        return cli_fail(CLI_USAGE, "--max-bias is '%s', must be a number over 0",
                        args->max_bias);
    return CLI_DONE;
}

/* Numbers the buckets where the table would be. */
static int show_buckets(cli_bias *out)
{
    const int32_t buckets = out->spec.num_buckets ? out->spec.num_buckets : 32;
    const size_t count = (size_t)buckets * (size_t)out->spec.num_heads;
    if (out->spec.num_heads < 1 || buckets < 1 ||
        (out->table = malloc(count * sizeof *out->table)) == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++)
        out->table[i] = (float)(i / (size_t)out->spec.num_heads);
    out->spec.table = out->table;
    out->spec.scale = 0;
    out->shows_bucket = 1;
    return CLI_DONE;
}

static int from_model(cli_bias *out, const char *operand, const cli_bias_args *args)
{
    pe_error error;
    if (args->max_bias != NULL || args->recipe >= 0 || args->round_to != 0)
        return cli_fail(CLI_USAGE,
                        "--max-bias, --recipe and --round-to go with a head count; %s "
                        "has its own",
                        operand);
    const int status = cli_model_open(&out->model, operand, 0);
    if (status != CLI_DONE)
        return status;
    out->name = out->model.name;
    const pe_model_info *info = pe_model_get_info(out->model.model);
    const int64_t index = args->index < 0 ? 0 : args->index;
    if (info->num_biases == 0)
        return cli_fail(CLI_FAILED, "%s has no score bias; its method is %s", out->name,
                        info->method);
    if (index >= info->num_biases)
        return cli_fail(CLI_USAGE,
                        "--index is %lld, must be below %d, the biases of %s",
                        (long long)index, (int)info->num_biases, out->name);
    if (pe_model_bias_spec(out->model.model, (int32_t)index, &out->spec, &error) !=
        PE_OK)
        return cli_fail_with(out->name, &error);
    if (out->spec.type == PE_BIAS_T5 && out->spec.table == NULL)
        return show_buckets(out);
    return CLI_DONE;
}

int cli_bias_open(cli_bias *out, const char *operand, const cli_bias_args *args)
{
    int64_t num_heads;
    pe_error error;
    *out = (cli_bias){.spec = {.struct_size = sizeof out->spec}};
    int status = cli_read_integer(operand, &num_heads)
                     ? from_count(out, num_heads, args)
                     : from_model(out, operand, args);
    if (status == CLI_DONE && args->form != 0)
        out->spec.form = args->form;
    if (status == CLI_DONE &&
        pe_bias_create(&out->plan, &out->spec, NULL, &error) != PE_OK)
        status = cli_fail(CLI_USAGE, "%s", error.message);
    if (status != CLI_DONE)
        cli_bias_close(out);
    return status;
}

void cli_bias_close(cli_bias *bias)
{
    pe_bias_destroy(bias->plan);
    free(bias->table);
    cli_model_close(&bias->model);
    *bias = (cli_bias){.plan = NULL};
}
