/* SPDX-License-Identifier: MIT
 *
 * apply_absolute.c - posenc apply --x: adding positions to hidden states
 *
 * Tokens pass through one buffer in the order of the file, as q and k do. */
#include "apply_absolute.h"

#include "folder_out.h"
#include "print.h"
#include "progress.h"
#include "tensor_arg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_SIZE = 8 << 20, MAX_TABLE_LEN = 8192 };

typedef struct add_job {
    const cli_apply_absolute_args *args;
    cli_absolute absolute;
    cli_positions positions;
    cli_tensor x;
    cli_file_out out;
    cli_progress progress;
    char *buffer; /* PIECE_SIZE */
} add_job;

static int add_piece(add_job *job, const pe_positions *whole, int64_t row,
                     int64_t token, int64_t count)
{
    const cli_tensor *x = &job->x;
    size_t size = (size_t)(count * x->dim) * (size_t)x->element_size;
    int status = cli_npy_read(&job->x.in, job->buffer, size);
    if (status != CLI_DONE)
        return status;
    pe_tensor piece;
    pe_error error;
    pe_positions at = *whole;
    if (at.ids != NULL)
        at.ids += row * at.batch_stride + token;
    else
        at.start += token;
    at.batch_stride = 0;
    pe_tensor_bshd(&piece, x->dtype, job->buffer, 1, count, 1, x->dim);
    if (pe_absolute_add(job->absolute.plan, &at, &piece, &piece, &error) != PE_OK)
        return cli_fail_with(x->in.name, &error);
    cli_progress_add(&job->progress, count);
    return cli_file_write(&job->out, job->buffer, size);
}

static int add(add_job *job, const pe_positions *at)
{
    const cli_tensor *x = &job->x;
    if (x->in.weight->size == 0)
        return CLI_DONE; /* other counts of an empty tensor may be anything */
    const int64_t room = PIECE_SIZE / (x->dim * x->element_size);
    int status = CLI_DONE;
    if (room == 0)
        return cli_fail(CLI_FAILED, "%s: the last axis is %lld, too long", x->in.name,
                        (long long)x->dim);
    cli_progress_start(&job->progress, "x.npy", x->batch * x->seq_len);
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t t = 0; t < x->seq_len && status == CLI_DONE; t += room)
            status =
                add_piece(job, at, b, t, x->seq_len - t < room ? x->seq_len - t : room);
    cli_progress_end(&job->progress);
    return status;
}

static void report(const add_job *job)
{
    const pe_weight *weight = job->x.in.weight;
    cli_shape shape;
    cli_say("%s/x.npy: %s %s, ", job->args->output,
            job->x.dtype == PE_BF16 ? "bf16" : weight->dtype_name,
            cli_shape_text(&shape, weight->rank, weight->shape));
    if (job->positions.ids != NULL)
        cli_say("positions of %s, ", job->positions.name);
    else
        cli_say("positions from %lld, ", (long long)job->positions.start);
    if (job->absolute.rows > 0)
        cli_say("learned table of %lld rows\n", (long long)job->absolute.rows);
    else
        cli_say("sinusoidal, %s angles\n",
                cli_choice_name(cli_angles_names, job->args->rope->angles));
}

static int work(add_job *job, const cli_model *model)
{
    const cli_apply_absolute_args *args = job->args;
    pe_positions at;
    int status = cli_positions_open(&job->positions, "positions", args->positions);
    if (status == CLI_DONE)
        status = cli_absolute_open(&job->absolute, model, args->rope, args->table,
                                   MAX_TABLE_LEN);
    if (status != CLI_DONE)
        return status;
    if (args->positions == NULL)
        job->positions.start = job->absolute.start;
    const cli_tensor_want want = {.head_dim = (int32_t)job->absolute.model_dim,
                                  .is_hidden = 1,
                                  .is_bf16 = args->is_bf16};
    status = cli_tensor_open(&job->x, args->x, &want);
    if (status == CLI_DONE)
        status = cli_positions_fit(&job->positions, job->x.batch, job->x.seq_len,
                                   job->absolute.num_axes, &at);
    if (status == CLI_DONE)
        status = cli_absolute_check(&job->absolute, &at, job->x.batch, job->x.seq_len);
    if (status == CLI_DONE)
        status = cli_folder_make(args->output);
    const char *const inputs[] = {args->x, args->table};
    if (status == CLI_DONE)
        status = cli_folder_create(&job->out, args->output, "x.npy", job->x.in.weight,
                                   inputs, CLI_COUNT(inputs));
    if (status == CLI_DONE)
        status = add(job, &at);
    if (status == CLI_DONE)
        status = cli_file_commit(&job->out);
    if (status == CLI_DONE)
        report(job);
    return status;
}

int cli_apply_absolute(const cli_model *model, const cli_apply_absolute_args *args)
{
    add_job job = {.args = args, .buffer = malloc(PIECE_SIZE)};
    if (job.buffer == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    int status = work(&job, model);
    cli_file_discard(&job.out);
    cli_tensor_close(&job.x);
    cli_positions_close(&job.positions);
    cli_absolute_close(&job.absolute);
    free(job.buffer);
    return status;
}
