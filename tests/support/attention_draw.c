/* SPDX-License-Identifier: MIT
 *
 * attention_draw.c - drawing a random attention problem
 */
#include "attention_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *case_array(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);

    if (p == NULL)
        abort();
    return p;
}

int case_chance(test_rng *r, int percent)
{
    return test_rng_int(r, 0, 99) < percent;
}

void case_note(attention_case *c, const char *what)
{
    const size_t used = strlen(c->about);

    snprintf(c->about + used, sizeof c->about - used, " %s", what);
}

void case_must(pe_status status, const pe_error *error)
{
    if (status != PE_OK) {
        fprintf(stderr, "attention_case: %s\n", error->message);
        abort();
    }
}

static void draw_shape(attention_case *c, int flags)
{
    static const int32_t dims[] = {1, 2, 5, 8, 16, 24, 32, 40, 63, 64, 80, 128};
    static const int32_t coded[] = {8, 16, 24, 64, 128};
    test_rng *r = &c->rng;
    pe_attention_spec *s = &c->spec;

    s->struct_size = sizeof *s;
    s->num_kv_heads = (int32_t)test_rng_int(r, 1, 3);
    s->num_heads = s->num_kv_heads * (int32_t)test_rng_int(r, 1, 4);
    s->head_dim = flags & CASE_PLAIN_DTYPES ? dims[test_rng_int(r, 0, 11)]
                                            : coded[test_rng_int(r, 0, 4)];
    if (case_chance(r, 40))
        s->v_head_dim = flags & CASE_PLAIN_DTYPES ? dims[test_rng_int(r, 0, 11)]
                                                  : coded[test_rng_int(r, 0, 4)];
    c->ref.batch = test_rng_int(r, 1, 2);
    c->ref.q_len = case_chance(r, 40) ? test_rng_int(r, 0, 4) : test_rng_int(r, 1, 90);
    c->ref.k_len = case_chance(r, 60) ? c->ref.q_len + test_rng_int(r, 0, 80)
                                      : test_rng_int(r, 0, 150);
    if (flags & CASE_MANY_KEYS) {
        c->ref.q_len = test_rng_int(r, 1, 8 / (s->num_heads / s->num_kv_heads));
        c->ref.k_len = test_rng_int(r, 1, 3500);
    }
    s->visible.mask = case_chance(r, 60) ? PE_MASK_CAUSAL : PE_MASK_NONE;
    if (case_chance(r, 30))
        s->visible.window = test_rng_int(r, 1, 100);
    if (case_chance(r, 15))
        s->visible.chunk = test_rng_int(r, 1, 70);
    if (case_chance(r, 30))
        s->visible.num_sinks = (int32_t)test_rng_int(r, 0, 9);
    if (case_chance(r, 20)) {
        s->softcap = 0.5 + 4 * fabs((double)test_rng_float(r));
        case_note(c, "cap");
    }
    if (case_chance(r, 30))
        s->scale = 0.7 * (double)test_rng_float(r);
    if (case_chance(r, 20)) {
        s->temperature =
            (pe_temperature){.type = (pe_temperature_type)test_rng_int(r, 1, 3),
                             .length = 10,
                             .scale = 0.5};
        case_note(c, "hot");
    }
}

static void draw_packing(attention_case *c)
{
    test_rng *r = &c->rng;
    ref_attention *ref = &c->ref;

    if (case_chance(r, 25)) {
        ref->batch = 1;
        ref->num_seqs = (int32_t)test_rng_int(r, 1, 4);
        c->q_cu = case_array(ref->num_seqs + 1, sizeof *c->q_cu);
        c->k_cu = case_array(ref->num_seqs + 1, sizeof *c->k_cu);
        for (int32_t s = 0; s < ref->num_seqs; s++) {
            c->q_cu[s + 1] = (int32_t)test_rng_int(r, c->q_cu[s], ref->q_len);
            c->k_cu[s + 1] = (int32_t)test_rng_int(r, c->k_cu[s], ref->k_len);
        }
        /* Queries outside every document are not computed. */
        c->q_cu[ref->num_seqs] = (int32_t)ref->q_len;
        ref->q_cu = c->q_cu;
        ref->k_cu = c->k_cu;
        case_note(c, "packed");
    } else if (case_chance(r, 30)) {
        c->k_lens = case_array(ref->batch, sizeof *c->k_lens);
        for (int64_t b = 0; b < ref->batch; b++)
            c->k_lens[b] = test_rng_int(r, 0, ref->k_len);
        ref->k_lens = c->k_lens;
        case_note(c, "lens");
    }
}

static void draw_positions(attention_case *c)
{
    test_rng *r = &c->rng;
    const ref_attention *ref = &c->ref;
    const int64_t base = case_chance(r, 30) ? 100000 : 0;
    const int64_t step = case_chance(r, 80) ? 1 : 3;

    c->q_ids = case_array(ref->batch * ref->q_len, sizeof *c->q_ids);
    c->k_ids = case_array(ref->batch * ref->k_len, sizeof *c->k_ids);
    for (int f = 0; f < CASE_FAR_RULES; f++) {
        c->far_q[f] = case_array(ref->batch * ref->q_len, sizeof(int64_t));
        c->far_k[f] = case_array(ref->batch * ref->k_len, sizeof(int64_t));
        c->far_q_at[f] = (pe_positions){.ids = c->far_q[f], .batch_stride = ref->q_len};
        c->far_k_at[f] = (pe_positions){.ids = c->far_k[f], .batch_stride = ref->k_len};
    }
    for (int64_t b = 0; b < ref->batch; b++) {
        for (int64_t i = 0; i < ref->q_len; i++) {
            int64_t place = ref->k_len - ref->q_len + i;
            place = (place < 0 ? 0 : place) * step + base + b;
            c->q_ids[b * ref->q_len + i] = place;
            c->far_q[0][b * ref->q_len + i] = place / 4 + 7;
            c->far_q[1][b * ref->q_len + i] = place / 9 + 30;
        }
        for (int64_t j = 0; j < ref->k_len; j++) {
            c->k_ids[b * ref->k_len + j] = j * step + base;
            c->far_k[0][b * ref->k_len + j] = (j * step + base) / 4;
            c->far_k[1][b * ref->k_len + j] = (j * step + base) / 9;
        }
    }
    c->q_at = (pe_positions){.ids = c->q_ids, .batch_stride = ref->q_len};
    c->k_at = (pe_positions){.ids = c->k_ids, .batch_stride = ref->k_len};
}

static void draw_ropes(attention_case *c, int flags)
{
    test_rng *r = &c->rng;
    pe_attention_spec *s = &c->spec;
    pe_error error;
    pe_rope_spec rope = {.struct_size = sizeof rope,
                         .head_dim = s->head_dim,
                         .pairs = {.pairing = (pe_pairing)test_rng_int(r, 1, 2)},
                         .freqs = {.rope_theta = 10000}};

    if (s->head_dim % 2 != 0 || (!(flags & CASE_FAR) && case_chance(r, 40)))
        return;
    if (case_chance(r, 30) && s->head_dim >= 8)
        rope.pairs = (pe_pairs){.pairing = PE_INTERLEAVED,
                                .out_pairing = PE_HALF_SPLIT,
                                .rotary_dim = 4,
                                .rotary_start = 2,
                                .reversed = case_chance(r, 50)};
    if (case_chance(r, 30))
        rope.freqs.attention_factor = 1.25;
    if (case_chance(r, 30))
        rope.table_len = 64;
    if (rope.freqs.attention_factor > 0) {
        rope.freqs.rope_type = PE_ROPE_YARN;
        rope.freqs.factor = 4;
        rope.freqs.original_max_position_embeddings = 256;
    }
    case_must(pe_rope_create(&c->q_rope, &rope, NULL, &error), &error);
    s->q_rope = c->q_rope;
    case_note(c, "q_rope");
    if (!(flags & CASE_FAR) && case_chance(r, 30))
        return;
    case_must(pe_rope_create(&c->k_rope, &rope, NULL, &error), &error);
    s->k_rope = c->k_rope;
    case_note(c, "k_rope");
    if (!(flags & CASE_NO_FAR) && case_chance(r, flags & CASE_FAR ? 100 : 30)) {
        c->args.far_rules = c->far_rules;
        c->args.num_far_rules = test_rng_int(r, 1, CASE_FAR_RULES);
        for (int f = 0; f < CASE_FAR_RULES; f++)
            c->far_rules[f] = (pe_far){.unit = test_rng_int(r, 1, 9),
                                       .from = test_rng_int(r, 0, 40),
                                       .q_at = &c->far_q_at[f],
                                       .k_at = &c->far_k_at[f]};
        case_note(c, c->args.num_far_rules > 1 ? "far far" : "far");
    }
}

static void draw_biases(attention_case *c)
{
    static float table[32 * 64], p[64], a[64];
    test_rng *r = &c->rng;
    pe_error error;

    for (int i = 0; i < 2; i++) {
        pe_bias_spec spec = {.struct_size = sizeof spec,
                             .type = (pe_bias_type)test_rng_int(r, 1, 4),
                             .form = (pe_bias_form)test_rng_int(r, 1, 2),
                             .head_start = 1,
                             .num_heads = c->spec.num_heads + 2};
        if (case_chance(r, 55))
            continue;
        if (spec.type == PE_BIAS_ALIBI && case_chance(r, 30))
            spec.form = PE_BIAS_KEY_ONLY;
        if (case_chance(r, 30))
            spec.scale = 0.5;
        for (int j = 0; j < 32 * 64; j++)
            table[j] = test_rng_float(r);
        for (int j = 0; j < 64; j++) {
            p[j] = 0.3f + 0.2f * test_rng_float(r);
            a[j] = 0.5f + 0.2f * test_rng_float(r);
        }
        spec.table = spec.type == PE_BIAS_T5 ? table : NULL;
        if (spec.type == PE_BIAS_KERPLE_LOG || spec.type == PE_BIAS_KERPLE_POWER) {
            spec.kerple_p = p;
            spec.kerple_a = a;
        }
        case_must(pe_bias_create(&c->bias[i], &spec, NULL, &error), &error);
        c->spec.bias[i] = c->bias[i];
        c->bias_spec[i] = spec;
        case_note(c, spec.type == PE_BIAS_ALIBI ? "alibi"
                     : spec.type == PE_BIAS_T5  ? "t5"
                                                : "kerple");
    }
}

static test_layout draw_layout(test_rng *r, int plain, int may_page)
{
    if (plain)
        return case_chance(r, 50) ? TEST_BSHD : TEST_BHSD;
    const test_layout layout =
        (test_layout)test_rng_int(r, 0, may_page ? TEST_PAGED : TEST_BACKWARDS);
    return layout;
}

static pe_dtype draw_dtype(test_rng *r, int plain, pe_dtype last)
{
    return plain ? PE_F32 : (pe_dtype)test_rng_int(r, PE_F32, last);
}

/* Grouped dtypes refuse negative strides. */
static void init_box(test_box *box, test_rng *r, int plain, pe_dtype last, int may_page,
                     int64_t batch, int64_t len, int64_t heads, int64_t dim)
{
    const pe_dtype dtype = draw_dtype(r, plain, last);
    test_layout layout = draw_layout(r, plain, may_page);

    if (layout == TEST_BACKWARDS && dtype > PE_BF16)
        layout = TEST_BSHD;
    test_box_init(box, r, dtype, layout, batch, len, heads, dim);
    test_box_fill(box, r);
}

static void draw_tensors(attention_case *c, int flags)
{
    test_rng *r = &c->rng;
    const pe_attention_spec *s = &c->spec;
    const ref_attention *ref = &c->ref;
    const int plain = flags & CASE_PLAIN_DTYPES;

    init_box(&c->q, r, plain, PE_BF16, 0, ref->batch, ref->q_len, s->num_heads,
             s->head_dim);
    init_box(&c->k, r, plain, PE_CODED, 1, ref->batch, ref->k_len, s->num_kv_heads,
             s->head_dim);
    init_box(&c->v, r, plain, PE_CODED, 1, ref->batch, ref->k_len, s->num_kv_heads,
             ref->v_dim);
    init_box(&c->out, r, plain, PE_BF16, 0, ref->batch, ref->q_len, s->num_heads,
             ref->v_dim);
    if (case_chance(r, 25) && ref->k_len > 0) {
        c->has_mask = 1;
        test_box_init(&c->mask, r, draw_dtype(r, plain, PE_BF16), TEST_BHSD,
                      case_chance(r, 50) ? 1 : ref->batch, ref->q_len,
                      case_chance(r, 50) ? 1 : s->num_heads, ref->k_len);
        test_box_fill(&c->mask, r);
        for (int64_t b = 0; b < c->mask.t.batch; b++)
            for (int64_t i = 0; i < ref->q_len; i++)
                for (int64_t h = 0; h < c->mask.t.num_heads; h++)
                    for (int64_t j = 0; j < ref->k_len; j++)
                        if (case_chance(r, 20))
                            test_box_set(&c->mask, b, i, h, j, -INFINITY);
        c->args.mask = &c->mask.t;
        case_note(c, "mask");
    }
    if (case_chance(r, 25)) {
        c->sinks = case_array(s->num_heads, sizeof *c->sinks);
        for (int32_t h = 0; h < s->num_heads; h++)
            c->sinks[h] = 2 * test_rng_float(r);
        case_note(c, "sinks");
    }
}

void case_draw(attention_case *c, int flags)
{
    ref_attention *ref = &c->ref;

    draw_shape(c, flags);
    ref->heads = c->spec.num_heads;
    ref->kv_heads = c->spec.num_kv_heads;
    ref->v_dim = c->spec.v_head_dim > 0 ? c->spec.v_head_dim : c->spec.head_dim;
    draw_packing(c);
    draw_positions(c);
    draw_ropes(c, flags);
    draw_biases(c);
    draw_tensors(c, flags);
}
