/* SPDX-License-Identifier: MIT
 *
 * keys_arg.c - cached keys on their way to other positions: what shift and rebase share
 *
 * The error of one move.  Let r be the length of a pair times factor, u 2^-24.  cos and
 * sin are correctly rounded (u each), so are two products (u) and their sum (u): since
 * |c a| + |s b| <= r, at most 3 u r.  A store of 16 bits adds half a unit in the last
 * place, at most 2^-11 r (float16) or 2^-8 r (bfloat16), and among the subnormal
 * numbers of float16 2^-25.  r is at most sqrt(2) times the largest element.
 *
 * On average: rounding a value whose logarithm is evenly spread errs by sqrt(1/3 * 3 /
 * (8 ln 2)) = 0.42 units (root mean square, relative).  A store has one such error; for
 * float32 the errors of the sum, of two products and of cos and sin add up to 0.73. */
#include "keys_arg.h"

#include "npy_out.h"
#include "print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROOM = 1 << 16 };

const cli_choice cli_layout_names[] = {
    {"bshd", CLI_BSHD}, {"bhsd", CLI_BHSD}, {NULL, 0}};

int cli_keys_open(cli_keys *out, const cli_keys_args *args, const cli_model *model,
                  const cli_rope *rope)
{
    const pe_model_info *info = pe_model_get_info(model->model);
    const cli_tensor_want want = {.head_dim = rope->info->head_dim,
                                  .num_heads = info->num_kv_heads,
                                  .layout = args->layout,
                                  .is_bf16 = args->bf16};
    *out = (cli_keys){.largest = 0};
    int status = cli_tensor_open(&out->tensor, args->keys, &want);
    if (status == CLI_DONE && (out->room = malloc(ROOM * sizeof *out->room)) == NULL)
        status = cli_fail(CLI_FAILED, "out of memory");
    if (status != CLI_DONE)
        cli_keys_close(out);
    return status;
}

/* A piece lies in one run: its elements in any order have the same largest. */
static int find_largest(cli_keys *keys, const pe_tensor *x)
{
    const int64_t count = x->seq_len * x->num_heads * x->dim;
    const int64_t size = keys->tensor.element_size;
    pe_tensor from, to;
    pe_error error;
    for (int64_t at = 0; at < count; at += ROOM) {
        const int64_t part = count - at < ROOM ? count - at : ROOM;
        pe_tensor_bshd(&from, x->dtype, (char *)x->data + at * size, 1, part, 1, 1);
        pe_tensor_bshd(&to, PE_F32, keys->room, 1, part, 1, 1);
        if (pe_tensor_copy(&from, &to, NULL, &error) != PE_OK)
            return cli_fail_with(keys->tensor.in.name, &error);
        for (int64_t i = 0; i < part; i++)
            keys->largest = fmax(keys->largest, fabs((double)keys->room[i]));
    }
    return CLI_DONE;
}

static int change_piece(void *context, int64_t row, int64_t token, const pe_tensor *x)
{
    cli_keys *keys = context;
    const int status = find_largest(keys, x);
    return status == CLI_DONE ? keys->change(keys->context, row, token, x) : status;
}

static void report(const cli_keys *keys, const cli_keys_args *args, double factor,
                   const char *done)
{
    const pe_weight *weight = keys->tensor.in.weight;
    const pe_dtype dtype = keys->tensor.dtype;
    const double unit = dtype == PE_F16    ? ldexp(1, -11)
                        : dtype == PE_BF16 ? ldexp(1, -8)
                                           : 0;
    const double tiny = dtype == PE_F16 ? ldexp(1, -25) : 0;
    const double length = sqrt(2) * keys->largest * factor;
    const double worst = length * (3 * ldexp(1, -24) + unit) + tiny;
    const double mean = unit != 0 ? 0.42 * unit : 0.73 * ldexp(1, -24);
    cli_shape shape;
    cli_say("%s: %s %s%s%s, %s\n",
            strcmp(args->output, "-") == 0 ? "standard output" : args->output,
            dtype == PE_BF16 ? "bf16" : weight->dtype_name,
            cli_shape_text(&shape, weight->rank, weight->shape),
            weight->rank > 2 ? " " : "",
            weight->rank > 2 ? cli_choice_name(cli_layout_names, keys->tensor.layout)
                             : "",
            done);
    cli_say("rounding moves an element by at most %.3g (largest key %.6g), about "
            "%.2g of it on average; each further move adds as much\n",
            worst, keys->largest, mean);
    if (args->rope.angles != PE_ANGLES_EXACT)
        cli_note("%s angles do not add up: keys rotated anew may differ by more",
                 cli_choice_name(cli_angles_names, args->rope.angles));
}

static int check_same_file(const cli_keys_args *args)
{
    struct stat in, out;
    if (stat(args->keys, &in) == 0 && stat(args->output, &out) == 0 &&
        S_ISREG(in.st_mode) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return cli_fail(CLI_USAGE, "%s is the input; choose another --output",
                        args->output);
    return CLI_DONE;
}

int cli_keys_move(cli_keys *keys, const cli_keys_args *args, cli_stream_fn change,
                  void *context, double factor, const char *done)
{
    const pe_weight *weight = keys->tensor.in.weight;
    keys->change = change;
    keys->context = context;
    int status = check_same_file(args);
    if (status == CLI_DONE)
        status = cli_npy_create(&keys->out, args->output, weight->dtype_name,
                                weight->rank, weight->shape);
    if (status == CLI_DONE)
        status = cli_stream(&keys->tensor, &keys->out, "keys", change_piece, keys);
    if (status == CLI_DONE)
        status = cli_file_commit(&keys->out);
    if (status == CLI_DONE)
        report(keys, args, factor, done);
    return status;
}

void cli_keys_close(cli_keys *keys)
{
    cli_file_discard(&keys->out);
    cli_tensor_close(&keys->tensor);
    free(keys->room);
    *keys = (cli_keys){.largest = 0};
}
