/* SPDX-License-Identifier: MIT
 *
 * absolute_arg.c - what a model adds to its input: sinusoids, or a table of rows
 */
#include "absolute_arg.h"

#include "npy_in.h"

#include <stdlib.h>
#include <string.h>

static int has_sinusoidal(const cli_model *model, pe_sinusoidal_spec *spec)
{
    *spec = (pe_sinusoidal_spec){.struct_size = sizeof *spec};
    return pe_model_sinusoidal_spec(model->model, spec, NULL) == PE_OK;
}

static int has_learned(const cli_model *model, pe_learned_spec *spec)
{
    *spec = (pe_learned_spec){.struct_size = sizeof *spec};
    return pe_model_learned_spec(model->model, spec, NULL) == PE_OK;
}

int cli_absolute_is_meant(const cli_model *model, const char *table)
{
    pe_sinusoidal_spec sinusoidal;
    pe_learned_spec learned;
    if (table != NULL)
        return 1;
    return pe_model_get_info(model->model)->num_ropes == 0 &&
           (has_sinusoidal(model, &sinusoidal) || has_learned(model, &learned));
}

static int64_t stated(const cli_model *model, const char *name)
{
    const pe_field *field = pe_model_find_field(model->model, name);
    int64_t value = 0;
    return field != NULL && cli_read_integer(field->value, &value) ? value : 0;
}

/* Room for a copy of the table that from says: a file may start its numbers anywhere. */
static int take_table(cli_absolute *out, const cli_model *model, const pe_weight *from,
                      const char *name, pe_tensor *weight)
{
    const int64_t dim = stated(model, "learned.model_dim");
    const int64_t rows = stated(model, "learned.rows");
    cli_shape shape;
    if (from->rank != 2 || from->dtype < PE_F32 || from->dtype > PE_BF16)
        return cli_fail(
            CLI_FAILED, "%s is %s %s, must be (rows, model_dim) of f32, f16 or bf16",
            name, from->dtype_name, cli_shape_text(&shape, from->rank, from->shape));
    if (dim != 0 && from->shape[1] != dim)
        return cli_fail(CLI_FAILED, "%s: rows of %lld, must be of model_dim (%lld)",
                        name, (long long)from->shape[1], (long long)dim);
    if (rows != 0 && from->shape[0] != rows)
        cli_note("%s has %lld rows, the table of %s has %lld", name,
                 (long long)from->shape[0], model->name, (long long)rows);
    out->table = malloc(from->size != 0 ? (size_t)from->size : 1);
    if (out->table == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    pe_tensor_bshd(weight, from->dtype, out->table, 1, from->shape[0], 1,
                   from->shape[1]);
    return CLI_DONE;
}

/* A tensor of the model's own files goes by its name; anything else is a file. */
static int read_table(cli_absolute *out, const cli_model *model, const char *table,
                      pe_tensor *weight)
{
    const pe_weight *own = NULL;
    if (model->checkpoint != NULL)
        own = pe_checkpoint_find_weight(model->checkpoint, table);
    if (own != NULL) {
        int status = take_table(out, model, own, table, weight);
        if (status == CLI_DONE && own->size != 0)
            memcpy(out->table, own->data, (size_t)own->size);
        return status;
    }
    cli_npy_in in;
    int status = cli_npy_open(&in, table);
    if (status == CLI_DONE)
        status = take_table(out, model, in.weight, in.name, weight);
    if (status == CLI_DONE)
        status = cli_npy_read(&in, out->table, (size_t)in.weight->size);
    cli_npy_close(&in);
    return status;
}

static int open_learned(cli_absolute *out, const cli_model *model, const char *table,
                        pe_learned_spec *spec, pe_isa isa)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    pe_tensor weight;
    pe_error error;
    if (table != NULL) {
        const int status = read_table(out, model, table, &weight);
        if (status != CLI_DONE)
            return status;
        spec->weight = &weight;
    }
    if (spec->weight == NULL)
        return cli_fail(CLI_USAGE,
                        "--table FILE.npy is missing: %s has a learned table, which "
                        "its settings do not hold",
                        model->name);
    out->method = "learned";
    out->num_axes = 1;
    out->model_dim = spec->weight->dim;
    out->rows = spec->weight->seq_len;
    out->offset = spec->position_offset;
    if (pe_learned_create(&out->plan, spec, &env, &error) != PE_OK)
        return cli_fail_with(table != NULL ? table : model->name, &error);
    return CLI_DONE;
}

static int open_sinusoidal(cli_absolute *out, const cli_model *model,
                           const cli_rope_args *args, int64_t table_len,
                           pe_sinusoidal_spec *spec)
{
    pe_error error;
    const pe_env env = {.struct_size = sizeof env, .isa = args->isa};
    spec->angles = args->angles;
    spec->table_len = table_len;
    out->method = "sinusoidal";
    out->num_axes = spec->num_axes > 1 ? spec->num_axes : 1;
    out->start = spec->has_padding ? spec->padding_position + 1 : 0;
    out->model_dim = spec->model_dim;
    if (pe_sinusoidal_create(&out->plan, spec, &env, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    return CLI_DONE;
}

int cli_absolute_open(cli_absolute *out, const cli_model *model,
                      const cli_rope_args *args, const char *table, int64_t table_len)
{
    pe_sinusoidal_spec sinusoidal;
    pe_learned_spec learned;
    int status;
    *out = (cli_absolute){0};
    if (args->layer >= 0 || args->role >= 0)
        return cli_fail(CLI_USAGE,
                        "--layer and --role choose an attention; positions of %s are "
                        "added to its input",
                        model->name);
    const int is_learned = has_learned(model, &learned);
    if (table == NULL && has_sinusoidal(model, &sinusoidal)) {
        status = open_sinusoidal(out, model, args, table_len, &sinusoidal);
    } else if (!is_learned) {
        const pe_model_info *info = pe_model_get_info(model->model);
        status = cli_fail(
            CLI_FAILED, "%s %s (method %s)%s", model->name,
            table != NULL ? "has no learned table" : "adds nothing to its input",
            info->method,
            table == NULL && info->num_ropes > 0 ? ": say --q and --k" : "");
    } else if (args->angles != PE_ANGLES_EXACT) {
        status =
            cli_fail(CLI_USAGE, "--angles is given, but a learned table has no angles");
    } else {
        status = open_learned(out, model, table, &learned, args->isa);
    }
    if (status != CLI_DONE)
        cli_absolute_close(out);
    return status;
}

int cli_absolute_check(const cli_absolute *absolute, const pe_positions *at,
                       int64_t batch, int64_t seq_len)
{
    const int64_t first = -absolute->offset;
    const int64_t last = absolute->rows - absolute->offset - 1;
    if (absolute->rows == 0)
        return CLI_DONE;
    const int64_t lines = at->ids != NULL && at->batch_stride != 0 ? batch : 1;
    for (int64_t i = 0; i < lines * seq_len; i++) {
        const int64_t position = at->ids != NULL ? at->ids[i] : at->start + i;
        if (position < first || position > last)
            return cli_fail(CLI_FAILED,
                            "position is %lld at row %lld, token %lld, must be in %lld "
                            ".. %lld: the table has %lld rows, position_offset is %lld",
                            (long long)position, (long long)(i / seq_len),
                            (long long)(i % seq_len), (long long)first, (long long)last,
                            (long long)absolute->rows, (long long)absolute->offset);
    }
    return CLI_DONE;
}

void cli_absolute_close(cli_absolute *absolute)
{
    pe_absolute_destroy(absolute->plan);
    free(absolute->table);
    *absolute = (cli_absolute){0};
}
