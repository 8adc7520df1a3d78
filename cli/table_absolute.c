/* SPDX-License-Identifier: MIT
 *
 * table_absolute.c - posenc table for models whose positions are added to the input
 *
 * What is added, channel by channel, without any scaling of the input itself. */
#include "table_absolute.h"

#include "npy_out.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_ROWS = 256, MAX_JSON_NUMBERS = 1 << 22 };

typedef struct piece {
    const cli_absolute *absolute;
    int64_t rows;
    float *values; /* [PIECE_ROWS][model_dim] */
} piece;

/* The rows from begin on; the last piece of a range is shorter. */
static int fill(piece *p, int64_t begin, int64_t end)
{
    const int64_t dim = p->absolute->model_dim;
    const pe_positions at = {.start = begin};
    pe_tensor y;
    pe_error error;
    p->rows = end - begin < PIECE_ROWS ? end - begin : PIECE_ROWS;
    pe_tensor_bshd(&y, PE_F32, p->values, 1, p->rows, 1, dim);
    if (pe_absolute_fill(p->absolute->plan, &at, &y, &error) != PE_OK)
        return cli_fail_with("--positions", &error);
    return CLI_DONE;
}

static int print_rows(piece *p, cli_range range, int is_csv)
{
    const int64_t dim = p->absolute->model_dim;
    if (is_csv)
        (void)puts("position,channel,value");
    else
        (void)printf("%10s %7s %13s\n", "position", "channel", "value");
    for (int64_t begin = range.begin; begin < range.end; begin += p->rows) {
        int status = fill(p, begin, range.end);
        if (status != CLI_DONE)
            return status;
        for (int64_t i = 0; i < p->rows * dim; i++) {
            cli_number value;
            (void)printf(is_csv ? "%lld,%lld,%s\n" : "%10lld %7lld %13s\n",
                         (long long)(begin + i / dim), (long long)(i % dim),
                         cli_float(&value, p->values[i]));
        }
        if (ferror(stdout))
            return CLI_FAILED;
    }
    return CLI_DONE;
}

static int write_npy(piece *p, cli_range range, const char *path)
{
    cli_file_out out;
    const int64_t shape[2] = {range.end - range.begin, p->absolute->model_dim};
    int status = cli_npy_create(&out, path, "<f4", 2, shape);
    for (int64_t begin = range.begin; status == CLI_DONE && begin < range.end;
         begin += p->rows) {
        status = fill(p, begin, range.end);
        if (status == CLI_DONE)
            status = cli_file_write(&out, p->values,
                                    (size_t)(p->rows * shape[1]) * sizeof(float));
    }
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

static int print_json(piece *p, const cli_table_absolute_args *args,
                      const cli_model *model)
{
    const int64_t dim = p->absolute->model_dim;
    json_object *root = cli_json_start("posenc.table/1");
    json_object *rows = json_object_new_array();
    cli_json_set_text(root, "model", model->name);
    cli_json_set_text(root, "method", p->absolute->method);
    if (p->absolute->rows == 0)
        cli_json_set_text(root, "angles",
                          cli_choice_name(cli_angles_names, args->rope->angles));
    cli_json_set_integer(root, "begin", args->positions.begin);
    cli_json_set_integer(root, "end", args->positions.end);
    cli_json_set_integer(root, "model_dim", dim);
    (void)json_object_object_add(root, "encoding", rows);
    for (int64_t begin = args->positions.begin; begin < args->positions.end;
         begin += p->rows) {
        int status = fill(p, begin, args->positions.end);
        if (status != CLI_DONE) {
            (void)json_object_put(root);
            return status;
        }
        for (int64_t t = 0; t < p->rows; t++)
            (void)json_object_array_add(rows,
                                        cli_json_floats(p->values + t * dim, dim));
    }
    return cli_json_print(root);
}

static int print(piece *p, const cli_table_absolute_args *args, const cli_model *model)
{
    const int64_t rows = args->positions.end - args->positions.begin;
    const int64_t most = MAX_JSON_NUMBERS / p->absolute->model_dim;
    const pe_positions at = {.start = args->positions.begin};
    if (args->is_json && rows > most)
        return cli_fail(CLI_USAGE,
                        "--positions spans %lld, at most %lld with --json; "
                        "write a longer table with -o FILE.npy",
                        (long long)rows, (long long)most);
    int status = cli_absolute_check(p->absolute, &at, 1, rows);
    if (status != CLI_DONE)
        return status;
    if (args->output != NULL)
        return write_npy(p, args->positions, args->output);
    return args->is_json ? print_json(p, args, model)
                         : print_rows(p, args->positions, args->is_csv);
}

int cli_table_absolute(const cli_model *model, const cli_table_absolute_args *args)
{
    cli_absolute absolute;
    int status = cli_absolute_open(&absolute, model, args->rope, args->table, 0);
    if (status != CLI_DONE)
        return status;
    piece p = {.absolute = &absolute};
    p.values = calloc((size_t)absolute.model_dim, PIECE_ROWS * sizeof *p.values);
    status = p.values == NULL ? cli_fail(CLI_FAILED, "out of memory")
                              : print(&p, args, model);
    free(p.values);
    cli_absolute_close(&absolute);
    return status;
}
