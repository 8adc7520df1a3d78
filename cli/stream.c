/* SPDX-License-Identifier: MIT
 *
 * stream.c - a tensor of a .npy file on its way into another, piece by piece
 */
#include "stream.h"

#include "progress.h"

#include <stdlib.h>

enum { PIECE_SIZE = 8 << 20 };

typedef struct stream {
    cli_tensor *in;
    cli_file_out *out;
    cli_stream_fn change;
    void *context;
    cli_progress progress;
    char *buffer; /* PIECE_SIZE */
} stream;

typedef struct piece {
    int64_t row;          /* of the batch */
    int64_t token;        /* of its first */
    int64_t outer, inner; /* counts of the two middle axes, as they lie in the file */
} piece;

static int pass_piece(stream *s, const piece *p)
{
    const cli_tensor *t = s->in;
    size_t size = (size_t)(p->outer * p->inner * t->dim) * (size_t)t->element_size;
    int status = cli_npy_read(&s->in->in, s->buffer, size);
    if (status != CLI_DONE)
        return status;
    pe_tensor x;
    if (t->layout == CLI_BSHD)
        pe_tensor_bshd(&x, t->dtype, s->buffer, 1, p->outer, p->inner, t->dim);
    else
        pe_tensor_bhsd(&x, t->dtype, s->buffer, 1, p->outer, p->inner, t->dim);
    status = s->change(s->context, p->row, p->token, &x);
    if (status != CLI_DONE)
        return status;
    cli_progress_add(&s->progress, p->outer * p->inner);
    return cli_file_write(s->out, s->buffer, size);
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Pieces are as many whole lines of the inner axis as fit, or parts of one line. */
static int pass_all(stream *s, const char *label)
{
    const cli_tensor *t = s->in;
    int status = CLI_DONE, is_bshd = t->layout == CLI_BSHD;
    int64_t outer = is_bshd ? t->seq_len : t->num_heads;
    int64_t inner = is_bshd ? t->num_heads : t->seq_len;
    int64_t room = PIECE_SIZE / (t->dim * t->element_size);
    int64_t outer_step = inner > 0 && inner <= room ? room / inner : 1;
    cli_progress_start(&s->progress, label, t->batch * outer * inner);
    for (int64_t b = 0; b < t->batch; b++)
        for (int64_t o = 0; o < outer; o += outer_step)
            for (int64_t i = 0; i < inner && status == CLI_DONE; i += room) {
                piece p = {.row = b,
                           .token = is_bshd ? o : i,
                           .outer = at_most(outer_step, outer - o),
                           .inner = at_most(room, inner - i)};
                status = pass_piece(s, &p);
            }
    cli_progress_end(&s->progress);
    return status;
}

int cli_stream(cli_tensor *in, cli_file_out *out, const char *label,
               cli_stream_fn change, void *context)
{
    if (in->in.weight->size == 0)
        return CLI_DONE; /* other counts of an empty tensor may be anything */
    stream s = {.in = in,
                .out = out,
                .change = change,
                .context = context,
                .buffer = malloc(PIECE_SIZE)};
    const int status =
        s.buffer != NULL ? pass_all(&s, label) : cli_fail(CLI_FAILED, "out of memory");
    free(s.buffer);
    return status;
}

pe_positions cli_stream_positions(const pe_positions *whole, int64_t row, int64_t token)
{
    pe_positions at = *whole;
    if (at.ids != NULL)
        at.ids += row * at.batch_stride + token;
    else
        at.start += token;
    at.batch_stride = 0;
    return at;
}
