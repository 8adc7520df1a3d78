/* SPDX-License-Identifier: MIT
 *
 * lines.c - an executor that cuts anywhere, and looks which lines each piece wrote
 */
#include "lines.h"

#include <string.h>

void line_watch_run(void *ctx, int64_t count, int64_t grain, pe_work_fn work, void *arg)
{
    line_watch *c = ctx;
    int64_t begin = 0;

    (void)grain;
    memset(c->owner, 0, sizeof c->owner);
    c->shared = c->at_work = 0;
    for (int piece = 1; begin < count; piece++) {
        const int64_t most =
            count - begin < count / 3 + 1 ? count - begin : count / 3 + 1;
        const int64_t end = begin + test_rng_int(c->r, 1, most);
        int changed = 0;

        memcpy(c->before, c->data, c->size);
        work(arg, 0, begin, end);
        for (size_t line = 0; line < c->size / LINES_SIZE; line++) {
            if (memcmp(c->before + line * LINES_SIZE, c->data + line * LINES_SIZE,
                       LINES_SIZE) == 0)
                continue;
            changed = 1;
            if (c->owner[line] != 0)
                c->shared++;
            c->owner[line] = piece;
        }
        c->at_work += changed;
        begin = end;
    }
}

void lines_spoil_unused(pe_tensor *t)
{
    const int64_t far = INT64_MAX / LINES_SIZE * LINES_SIZE;

    t->batch_stride = t->batch == 1 ? -far : t->batch_stride;
    t->seq_stride = t->seq_len == 1 ? -far : t->seq_stride;
    t->head_stride = t->num_heads == 1 ? far : t->head_stride;
}
