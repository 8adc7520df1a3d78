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

typedef struct {
    const pe_rope *from, *to;
    const pe_positions *from_at, *to_at;
    const pe_tensor *x, *y;
    pe_window window;
    pe_rotor rotor;
    pe_factor factor; /* of to over that of from */
    int exact;
} rebasing;

static pe_angle_term term_of(const pe_rope *rope, const pe_place *place, int negative)
{
    return (pe_angle_term){
        .turns = &rope->turns,
        .pair_axis = rope->axes.pair_axis,
        .ids = place->whole ? place->ids : NULL,
        .values = place->whole ? NULL : place->values,
        .negative = negative != rope->pairs.reversed,
    };
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
    (void)worker;
    end = pe_tensor_cut(&r->y, 1, end);
    for (int64_t i = pe_tensor_cut(&r->y, 1, begin); i < end; i++) {
        const int64_t b = i / r->x->seq_len, t = i % r->x->seq_len;
        const pe_place from = pe_place_read(r->from, r->from_at, b, t);
        const pe_place to = pe_place_read(r->to, r->to_at, b, t);
        if (r->exact) {
            const pe_angle_term terms[2] = {term_of(r->to, &to, 0),
                                            term_of(r->from, &from, 1)};
            pe_angle_row(r->to->kernels, terms, 2, &r->factor, row.cos, row.sin);
        } else {
            quotient_row(r, &from, &to, &row);
        }
        const pe_turn turn = {row.cos, row.sin, NULL, NULL};
        pe_rotate_token(&r->rotor, &turn, b, t);
    }
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
    pe_run(&to->env, x->batch * x->seq_len, pe_rotate_grain(x->num_heads, x->dim),
           rebase_tokens, &r);
    return PE_OK;
}
