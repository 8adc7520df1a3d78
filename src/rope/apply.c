/* SPDX-License-Identifier: MIT
 *
 * apply.c - part E: apply, transpose, inverse and shift
 *
 * One job walks the tokens, makes a row for each, and turns every head of one or two
 * tensors by it. */
#include "base/at.h"
#include "base/dtype.h"
#include "base/error.h"
#include "rope/plan.h"
#include "rope/rotate.h"

typedef struct {
    const pe_rope *rope;
    const pe_positions *at; /* NULL: every token moves by delta */
    int64_t delta;
    pe_row_scale scale;
    int backwards; /* turn by minus the angle */
    pe_window window;
    int num_rotors;
    const pe_rotor *rotors; /* of one shape but for their heads */
} rotation;

static pe_window window_of(const pe_rope *rope, pe_pairing in, pe_pairing out)
{
    return (pe_window){rope->kernels, rope->pairs.rotary_start, rope->turns.n, in, out};
}

/* Turns token (b, t) of every tensor by a row. */
static void rotate_token(const rotation *r, const float *cosine, const float *sine,
                         int64_t b, int64_t t)
{
    const pe_turn turn = {cosine, sine, NULL, NULL};
    for (int k = 0; k < r->num_rotors; k++)
        pe_rotate_token(&r->rotors[k], &turn, b, t);
}

static pe_row signed_row(const rotation *r, pe_row row, int64_t count,
                         pe_row_buffer *buffer)
{
    return r->backwards != r->rope->pairs.reversed ? pe_row_negate(row, count, buffer)
                                                   : row;
}

/* Tokens [begin, end) of one batch row, from the table as far as it reaches; consecutive
 * positions share the work of a run of rows. */
static void rotate_run(const rotation *r, int64_t b, int64_t begin, int64_t end)
{
    const pe_rope *rope = r->rope;
    const int64_t n = rope->turns.n;
    int64_t t = begin;
    pe_row_buffer buffer;
    for (; t < end; t++) {
        pe_row row = pe_rope_tabulated(rope, pe_at_id(r->at, 0, b, t), r->scale);
        if (row.cos == NULL)
            break;
        row = signed_row(r, row, n, &buffer);
        rotate_token(r, row.cos, row.sin, b, t);
    }
    while (t < end) {
        const int64_t start = pe_at_id(r->at, 0, b, t);
        const int64_t room = PE_MAX_PAIRS / n, rest = end - t;
        const int64_t rows = rest < room ? rest : room;
        const pe_row run = signed_row(
            r, pe_rope_run(rope, start, rows, r->scale, &buffer), rows * n, &buffer);
        for (int64_t k = 0; k < rows; k++)
            rotate_token(r, run.cos + k * n, run.sin + k * n, b, t + k);
        t += rows;
    }
}

/* Every token at its own place, or all moved by delta. */
static void rotate_each(const rotation *r, int64_t begin, int64_t end)
{
    const pe_rope *rope = r->rope;
    const int64_t seq_len = r->rotors[0].x->seq_len;
    pe_row_buffer buffer;
    pe_row row = {NULL, NULL};
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / seq_len, t = i % seq_len;
        if (r->at != NULL || row.cos == NULL) {
            const int64_t d = r->delta;
            const pe_place place = r->at != NULL ? pe_place_read(rope, r->at, b, t)
                                                 : (pe_place){1, {d, d, d, d}, {0}};
            row = signed_row(r, pe_rope_row(rope, &place, r->scale, &buffer),
                             rope->turns.n, &buffer);
        }
        rotate_token(r, row.cos, row.sin, b, t);
    }
}

/* Tokens [begin, end) of all batch rows. */
static void rotate_all(const rotation *r, int64_t begin, int64_t end)
{
    const int64_t seq_len = r->rotors[0].x->seq_len;
    if (r->at == NULL || !pe_rope_has_runs(r->rope, r->at)) {
        rotate_each(r, begin, end);
        return;
    }
    while (begin < end) {
        const int64_t b = begin / seq_len, t = begin % seq_len;
        const int64_t left = seq_len - t,
                      count = end - begin < left ? end - begin : left;
        rotate_run(r, b, t, t + count);
        begin += count;
    }
}

static void rotate_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const rotation *r = arg;
    const pe_rotor *first = r->rotors, *last = r->rotors + r->num_rotors - 1;
    const pe_tensor *outputs[2] = {first->y, last->y};
    (void)worker;
    begin = pe_tensor_cut(outputs, r->num_rotors, begin);
    end = pe_tensor_cut(outputs, r->num_rotors, end);
    rotate_all(r, begin, end);
    if (first->streams || last->streams)
        r->rope->kernels->stream_end();
}

static double bytes_of(const pe_rotor *r)
{
    return r->in_place ? 0
                       : (double)r->y->batch * (double)r->y->seq_len *
                             (double)(r->y->num_heads * r->y->dim) *
                             (double)pe_dtype_size(r->y->dtype);
}

/* From x to y, and from x2 to y2 where x2 is not NULL. */
static void run(rotation *r, const pe_tensor *x, const pe_tensor *y,
                const pe_tensor *x2, const pe_tensor *y2)
{
    pe_rotor rotors[2];
    const int64_t tokens = x->batch * x->seq_len;
    rotors[0] = pe_rotor_of(&r->window, x, y);
    if (x2 != NULL)
        rotors[1] = pe_rotor_of(&r->window, x2, y2);
    r->num_rotors = x2 != NULL ? 2 : 1;
    r->rotors = rotors;
    double bytes = 0;
    for (int k = 0; k < r->num_rotors; k++)
        bytes += bytes_of(&rotors[k]);
    for (int k = 0; k < r->num_rotors && bytes >= PE_STREAM_BYTES; k++)
        pe_rotor_stream(&rotors[k]);
    if (r->rope->env.executor.run == NULL) {
        rotate_tokens(r, 0, 0, tokens);
        return;
    }
    const int64_t heads = x->num_heads + (x2 != NULL ? x2->num_heads : 0);
    pe_run(&r->rope->env, tokens, pe_rotate_grain(heads, x->dim), rotate_tokens, r);
}

static pe_status check_one(const pe_rope *rope, const pe_positions *at,
                           const pe_tensor *x, const char *x_name, const pe_tensor *y,
                           const char *y_name, pe_error *error)
{
    if (rope == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "rope is NULL");
    const pe_status status =
        pe_rotate_check(x, x_name, y, y_name, rope->info.head_dim, error);
    if (status != PE_OK)
        return status;
    return pe_at_check(at, x->batch, x->seq_len, rope->info.num_axes, 1, "at", error);
}

pe_status pe_rope_apply(const pe_rope *rope, const pe_positions *at, const pe_tensor *x,
                        const pe_tensor *y, pe_error *error)
{
    if (pe_rope_one_token(rope, at, x, y, NULL, NULL))
        return PE_OK;
    const pe_status status = check_one(rope, at, x, "x", y, "y", error);
    if (status != PE_OK)
        return status;
    rotation r = {.rope = rope,
                  .at = at,
                  .window =
                      window_of(rope, rope->pairs.pairing, rope->pairs.out_pairing)};
    run(&r, x, y, NULL, NULL);
    return PE_OK;
}

pe_status pe_rope_apply_qk(const pe_rope *rope, const pe_positions *at,
                           const pe_tensor *q, const pe_tensor *q_out,
                           const pe_tensor *k, const pe_tensor *k_out, pe_error *error)
{
    if (k != NULL && pe_rope_one_token(rope, at, q, q_out, k, k_out))
        return PE_OK;
    pe_status status = check_one(rope, at, q, "q", q_out, "q_out", error);
    if (status != PE_OK ||
        (status = pe_rotate_check(k, "k", k_out, "k_out", rope->info.head_dim,
                                  error)) != PE_OK)
        return status;
    const int is_alike = q->batch == k->batch && q->seq_len == k->seq_len;
    if ((!is_alike &&
         (status = pe_at_check(at, k->batch, k->seq_len, rope->info.num_axes, 1, "at",
                               error)) != PE_OK) ||
        (status = pe_tensor_check_overlap(q, "q", k_out, "k_out", error)) != PE_OK)
        return status;
    /* In place, the checks that are left are that one again. */
    const int in_place = pe_tensor_same(q, q_out) && pe_tensor_same(k, k_out);
    if (!in_place &&
        (status = pe_tensor_check_overlap(k, "k", q_out, "q_out", error)) != PE_OK)
        return status;
    if (!is_alike)
        return pe_fail(error, PE_E_SHAPE,
                       "k has batch %lld and seq_len %lld, must be as q (%lld, %lld)",
                       (long long)k->batch, (long long)k->seq_len, (long long)q->batch,
                       (long long)q->seq_len);
    if (pe_tensor_same(q_out, k_out))
        return pe_fail(error, PE_E_ARGUMENT, "k_out is q_out, must be another tensor");
    if (!in_place && (status = pe_tensor_check_overlap(q_out, "q_out", k_out, "k_out",
                                                       error)) != PE_OK)
        return status;
    rotation r = {.rope = rope,
                  .at = at,
                  .window =
                      window_of(rope, rope->pairs.pairing, rope->pairs.out_pairing)};
    run(&r, q, q_out, k, k_out);
    return PE_OK;
}

static pe_status turn_back(const pe_rope *rope, const pe_positions *at,
                           pe_row_scale scale, const pe_tensor *y, const char *y_name,
                           const pe_tensor *x, const char *x_name, pe_error *error)
{
    const pe_status status = check_one(rope, at, y, y_name, x, x_name, error);
    if (status != PE_OK)
        return status;
    rotation r = {.rope = rope,
                  .at = at,
                  .scale = scale,
                  .backwards = 1,
                  .window =
                      window_of(rope, rope->pairs.out_pairing, rope->pairs.pairing)};
    run(&r, y, x, NULL, NULL);
    return PE_OK;
}

pe_status pe_rope_transpose(const pe_rope *rope, const pe_positions *at,
                            const pe_tensor *dy, const pe_tensor *dx, pe_error *error)
{
    return turn_back(rope, at, PE_SCALE_FULL, dy, "dy", dx, "dx", error);
}

pe_status pe_rope_inverse(const pe_rope *rope, const pe_positions *at,
                          const pe_tensor *y, const pe_tensor *x, pe_error *error)
{
    return turn_back(rope, at, PE_SCALE_INVERSE, y, "y", x, "x", error);
}

pe_status pe_rope_shift(const pe_rope *rope, int64_t delta, const pe_tensor *x,
                        const pe_tensor *y, pe_error *error)
{
    const pe_positions origin = {0};
    const pe_status status = check_one(rope, &origin, x, "x", y, "y", error);
    if (status != PE_OK)
        return status;
    rotation r = {
        .rope = rope,
        .delta = delta,
        .scale = PE_SCALE_NONE,
        .window = window_of(rope, rope->pairs.out_pairing, rope->pairs.out_pairing)};
    run(&r, x, y, NULL, NULL);
    return PE_OK;
}
