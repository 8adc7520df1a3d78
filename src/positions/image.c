/* SPDX-License-Identifier: MIT
 *
 * image.c - positions of image patches, and of text with images and videos in it
 */
#include "positions/builders.h"

#include "base/checked.h"
#include "base/error.h"

static const int64_t MAX_TOKENS = (int64_t)1 << 40;

pe_status pe_positions_grid(int64_t h, int64_t w, int64_t merge, int64_t *ids,
                            pe_error *error)
{
    int64_t n;
    if (h < 1 || w < 1 || !pe_mul_i64(h, w, &n) || n > MAX_TOKENS)
        return pe_fail(error, PE_E_SHAPE,
                       "the grid is %lld x %lld, both must be at least 1, and the "
                       "product at most 2^40",
                       (long long)h, (long long)w);
    if (merge < 1 || h % merge != 0 || w % merge != 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "merge is %lld, must be at least 1 and divide h (%lld) and w "
                       "(%lld)",
                       (long long)merge, (long long)h, (long long)w);
    if (ids == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "ids is NULL");
    int64_t t = 0;
    for (int64_t y0 = 0; y0 < h; y0 += merge)
        for (int64_t x0 = 0; x0 < w; x0 += merge)
            for (int64_t y = y0; y < y0 + merge; y++)
                for (int64_t x = x0; x < x0 + merge; x++, t++) {
                    ids[t] = y;
                    ids[n + t] = x;
                }
    return PE_OK;
}

static int is_text(const pe_mrope_run *run)
{
    return run->h == 0 && run->w == 0;
}

static double time_step(const pe_mrope_run *run)
{
    return run->time_step == 0 ? 1 : run->time_step;
}

/* Temporal id of a frame, truncated as Qwen2.5-VL's code does. */
static int64_t frame_id(const pe_mrope_run *run, int64_t frame)
{
    return (int64_t)((double)frame * time_step(run));
}

static int64_t run_tokens(const pe_mrope_run *run)
{
    return is_text(run) ? run->t : run->t * run->h * run->w;
}

/* Ids that the run takes up: one past its largest, from its first. */
static int64_t run_span(const pe_mrope_run *run)
{
    if (is_text(run))
        return run->t;
    int64_t span = frame_id(run, run->t - 1) + 1;
    if (span < run->h)
        span = run->h;
    return span < run->w ? run->w : span;
}

static pe_status check_run(const pe_mrope_run *run, int64_t i, pe_error *error)
{
    int64_t n;
    if (is_text(run) ? run->t < 0 : run->t < 1 || run->h < 1 || run->w < 1)
        return pe_fail(error, PE_E_SHAPE,
                       "runs[%lld] is t %lld, h %lld, w %lld, must be text (t at least "
                       "0, h and w 0) or an image (all at least 1)",
                       (long long)i, (long long)run->t, (long long)run->h,
                       (long long)run->w);
    if (!pe_mul_i64(run->t, is_text(run) ? 1 : run->h, &n) ||
        !pe_mul_i64(n, is_text(run) ? 1 : run->w, &n) || n > MAX_TOKENS)
        return pe_fail(error, PE_E_SHAPE,
                       "runs[%lld] has t %lld, h %lld, w %lld: more than 2^40 tokens",
                       (long long)i, (long long)run->t, (long long)run->h,
                       (long long)run->w);
    if (!(run->time_step >= 0 && run->time_step * (double)run->t <= 0x1p40))
        return pe_fail(
            error, PE_E_ARGUMENT,
            "runs[%lld].time_step is %g, must be at least 0 and put the last "
            "frame before 2^40",
            (long long)i, run->time_step);
    if (is_text(run) && run->time_step != 0)
        return pe_fail(error, PE_E_ARGUMENT,
                       "runs[%lld].time_step is %g, must be 0 for text", (long long)i,
                       run->time_step);
    return PE_OK;
}

static void fill_run(const pe_mrope_run *run, int64_t first, int64_t plane,
                     int64_t *ids)
{
    int64_t i = 0;
    if (is_text(run)) {
        for (; i < run->t; i++)
            ids[i] = ids[plane + i] = ids[2 * plane + i] = first + i;
        return;
    }
    for (int64_t t = 0; t < run->t; t++)
        for (int64_t y = 0; y < run->h; y++)
            for (int64_t x = 0; x < run->w; x++, i++) {
                ids[i] = first + frame_id(run, t);
                ids[plane + i] = first + y;
                ids[2 * plane + i] = first + x;
            }
}

pe_status pe_positions_mrope(const pe_mrope_run *runs, int64_t num_runs, int64_t start,
                             int64_t num_tokens, int64_t *ids, int64_t *next,
                             pe_error *error)
{
    if (num_runs < 0)
        return pe_fail(error, PE_E_SHAPE, "num_runs is %lld, must be at least 0",
                       (long long)num_runs);
    if (runs == NULL && num_runs > 0)
        return pe_fail(error, PE_E_ARGUMENT, "runs is NULL");
    int64_t tokens = 0, end = start;
    for (int64_t r = 0; r < num_runs; r++) {
        const pe_status status = check_run(&runs[r], r, error);
        if (status != PE_OK)
            return status;
        if (!pe_add_i64(end, run_span(&runs[r]), &end) ||
            (tokens += run_tokens(&runs[r])) > MAX_TOKENS)
            return pe_fail(
                error, PE_E_POSITION,
                "start is %lld, with runs[%lld] ids pass 2^63 or tokens 2^40",
                (long long)start, (long long)r);
    }
    if (tokens != num_tokens)
        return pe_fail(error, PE_E_SHAPE,
                       "num_tokens is %lld, must be the sum of the runs (%lld)",
                       (long long)num_tokens, (long long)tokens);
    if (ids == NULL && tokens > 0)
        return pe_fail(error, PE_E_ARGUMENT, "ids is NULL");
    int64_t first = start, done = 0;
    for (int64_t r = 0; r < num_runs; r++) {
        fill_run(&runs[r], first, num_tokens, ids + done);
        first += run_span(&runs[r]);
        done += run_tokens(&runs[r]);
    }
    if (next != NULL)
        *next = end;
    return PE_OK;
}
