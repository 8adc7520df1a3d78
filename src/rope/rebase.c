/* SPDX-License-Identifier: MIT
 *
 * rebase.c - keys of one plan and position become keys of another
 *
 * With exact angles the phases of both are subtracted before any cosine is taken, so the
 * difference is as exact as each; imitated angles are undone and redone as they are. */
#include "base/at.h"
#include "base/error.h"
#include "rope/plan.h"
#include "rope/rotate.h"

#include <string.h>

/* Turns of one plan less those of another: made once a call that has many tokens, for the
 * head sizes that models have. */
enum { GAP_PAIRS = 256, GAP_TOKENS = 64 };

typedef struct {
    uint64_t hi[GAP_PAIRS], lo[GAP_PAIRS];
    double head[GAP_PAIRS], tail[GAP_PAIRS];
    pe_wide exact[GAP_PAIRS];
    pe_turns turns;
    int sign; /* of to's turns less from's; 0: there is no gap */
} plan_gap;

typedef struct {
    const pe_rope *from, *to;
    const pe_positions *from_at, *to_at;
    const pe_tensor *x, *y;
    pe_window window;
    pe_rotor rotor;
    pe_factor factor; /* of to over that of from */
    int exact;
    const plan_gap *gap;
} rebasing;

static pe_angle_term term_of(const pe_rope *rope, const pe_place *place, int negative)
{
    return (pe_angle_term){
        .turns = &rope->turns,
        .pair_axis = rope->info.num_axes > 1 ? rope->axes.pair_axis : NULL,
        .ids = place->whole ? place->ids : NULL,
        .values = place->whole ? NULL : place->values,
        .negative = negative != rope->pairs.reversed,
    };
}

/* Both phases are subtracted. */
static void difference_row(const rebasing *r, const pe_place *from, const pe_place *to,
                           pe_row_buffer *out)
{
    const pe_angle_term terms[2] = {term_of(r->to, to, 0), term_of(r->from, from, 1)};
    pe_angle_row(r->to->kernels, terms, 2, &r->factor, out->cos, out->sin);
}

static int is_same_place(const rebasing *r, const pe_place *a, const pe_place *b)
{
    return memcmp(a->ids, b->ids, (size_t)r->to->info.num_axes * sizeof *a->ids) == 0;
}

/* At one place only the plans' difference counts.  Returns 0 where that is not known. */
static int gap_row(const rebasing *r, const pe_place *from, const pe_place *to,
                   pe_row_buffer *out)
{
    const int64_t n = r->to->turns.n;
    pe_angle_term term = term_of(r->to, to, 0);
    if (r->gap->sign == 0 || term.ids == NULL || !from->whole ||
        !is_same_place(r, from, to))
        return 0;
    const int negative = (r->gap->sign < 0) != term.negative;
    term.turns = &r->gap->turns;
    term.negative = 0;
    pe_angle_row(r->to->kernels, &term, 1, &r->factor, out->cos, out->sin);
    for (int64_t i = 0; negative && i < n; i++)
        out->sin[i] = 0 - out->sin[i]; /* of 0 no negative zero */
    return 1;
}

/* Within one plan only the way from position to position counts.  Returns 0 where that
 * is no whole number. */
static int way_between(const rebasing *r, const pe_place *from, const pe_place *to,
                       pe_place *way)
{
    const int64_t far = INT64_MAX / 2;
    *way = (pe_place){from->whole && to->whole && r->from == r->to, {0}, {0}};
    for (int32_t a = 0; a < r->to->info.num_axes && way->whole; a++) {
        const int64_t p = from->ids[a], q = to->ids[a];
        way->whole = p >= -far && p <= far && q >= -far && q <= far;
        way->ids[a] = way->whole ? q - p : 0;
    }
    return way->whole;
}

/* (c, s) of to times the inverse of (c, s) of from, in double. */
static void quotient_row(const rebasing *r, const pe_place *from, const pe_place *to,
                         pe_row_buffer *out)
{
    pe_row_buffer from_buffer, to_buffer;
    const pe_row f = pe_rope_row(r->from, from, PE_SCALE_FULL, &from_buffer);
    const pe_row t = pe_rope_row(r->to, to, PE_SCALE_FULL, &to_buffer);
    for (int64_t i = 0; i < r->from->turns.n; i++) {
        const double fc = f.cos[i], tc = t.cos[i];
        const double fs = r->from->pairs.reversed ? -f.sin[i] : f.sin[i];
        const double ts = r->to->pairs.reversed ? -t.sin[i] : t.sin[i];
        const double norm = fc * fc + fs * fs;
        out->cos[i] = (float)((tc * fc + ts * fs) / norm);
        out->sin[i] = (float)((ts * fc - tc * fs) / norm);
    }
}

static void rebase_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const rebasing *r = arg;
    pe_row_buffer row;
    pe_place way = {0}, last = {0};
    (void)worker;
    end = pe_tensor_cut(&r->y, 1, end);
    for (int64_t i = pe_tensor_cut(&r->y, 1, begin); i < end; i++) {
        const int64_t b = i / r->x->seq_len, t = i % r->x->seq_len;
        const pe_place from = pe_place_read(r->from, r->from_at, b, t);
        const pe_place to = pe_place_read(r->to, r->to_at, b, t);
        if (!r->exact) {
            quotient_row(r, &from, &to, &row);
        } else if (!way_between(r, &from, &to, &way)) {
            if (!gap_row(r, &from, &to, &row))
                difference_row(r, &from, &to, &row);
        } else if (!last.whole || !is_same_place(r, &way, &last)) {
            const pe_angle_term term = term_of(r->to, &way, 0);
            pe_angle_row(r->to->kernels, &term, 1, &r->factor, row.cos, row.sin);
        }
        last = way;
        const pe_turn turn = {row.cos, row.sin, NULL, NULL};
        pe_rotate_token(&r->rotor, &turn, b, t);
    }
}

static int have_one_axis_map(const rebasing *r)
{
    return r->from->info.num_axes == r->to->info.num_axes &&
           memcmp(r->from->axes.pair_axis, r->to->axes.pair_axis,
                  (size_t)r->to->turns.n) == 0;
}

static void measure_gap(const rebasing *r, plan_gap *gap)
{
    gap->sign = 0;
    if (r->from == r->to || !r->exact || r->to->turns.n > GAP_PAIRS ||
        r->x->batch * r->x->seq_len < GAP_TOKENS ||
        r->from->pairs.reversed != r->to->pairs.reversed || !have_one_axis_map(r))
        return;
    gap->turns = (pe_turns){.n = r->to->turns.n,
                            .hi = gap->hi,
                            .lo = gap->lo,
                            .exact = gap->exact,
                            .head = gap->head,
                            .tail = gap->tail};
    gap->sign = pe_turns_subtract(&gap->turns, &r->to->turns, &r->from->turns);
}

static pe_status check_compatible(const pe_rope *from, const pe_rope *to,
                                  pe_error *error)
{
    const struct {
        const char *name;
        int32_t from, to;
    } fields[] = {
        {"head_dim", from->info.head_dim, to->info.head_dim},
        {"rotary_dim", from->pairs.rotary_dim, to->pairs.rotary_dim},
        {"rotary_start", from->pairs.rotary_start, to->pairs.rotary_start},
        {"out_pairing", from->pairs.out_pairing, to->pairs.out_pairing},
    };
    for (size_t i = 0; i < PE_COUNT(fields); i++)
        if (fields[i].from != fields[i].to)
            return pe_fail(error, PE_E_INCOMPATIBLE,
                           "%s is %d in from and %d in to, must be equal",
                           fields[i].name, fields[i].from, fields[i].to);
    return PE_OK;
}

pe_status pe_rope_rebase(const pe_rope *from, const pe_positions *from_at,
                         const pe_rope *to, const pe_positions *to_at,
                         const pe_tensor *x, const pe_tensor *y, pe_error *error)
{
    pe_status status;
    if (from == NULL || to == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL",
                       from == NULL ? "from" : "to");
    if ((status = check_compatible(from, to, error)) != PE_OK ||
        (status = pe_rotate_check(x, "x", y, "y", from->info.head_dim, error)) !=
            PE_OK ||
        (status = pe_at_check(from_at, x->batch, x->seq_len, from->info.num_axes, 1,
                              "from_at", error)) != PE_OK ||
        (status = pe_at_check(to_at, x->batch, x->seq_len, to->info.num_axes, 1,
                              "to_at", error)) != PE_OK)
        return status;
    const pe_pairing out = from->pairs.out_pairing;
    rebasing r = {
        .from = from,
        .to = to,
        .from_at = from_at,
        .to_at = to_at,
        .x = x,
        .y = y,
        .window = {to->kernels, from->pairs.rotary_start, from->turns.n, out, out},
        .factor = pe_factor_make(pe_wide_div(to->factors[PE_SCALE_FULL].exact,
                                             from->factors[PE_SCALE_FULL].exact)),
        .exact = from->angles == PE_ANGLES_EXACT && to->angles == PE_ANGLES_EXACT,
    };
    r.rotor = pe_rotor_of(&r.window, x, y);
    plan_gap gap;
    measure_gap(&r, &gap);
    r.gap = &gap;
    pe_run(&to->env, x->batch * x->seq_len, pe_rotate_grain(x->num_heads, x->dim),
           rebase_tokens, &r);
    return PE_OK;
}
