/* SPDX-License-Identifier: MIT
 *
 * fuzz_attention.c - bytes -> attention spec -> plan -> workspace, forward, backward
 *
 * Fields mostly take usual values, sometimes any.  No crash; a refused call has written
 * nothing; probabilities of a row are NaN, nothing, or sum to at most 1; leaving blocks
 * out by own norms changes no output. */
#include "bytes.h"
#include "plans.h"
#include "posenc/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 4, DIM = 24, TOKENS = 80, ROOM = 2 * HEADS * TOKENS * DIM };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes input;
static float x[ROOM], out[ROOM], before[ROOM], grads_data[3][ROOM];
static float probs[2 * HEADS * TOKENS * TOKENS], lse[2 * HEADS * TOKENS];
static float dmask[2 * HEADS * TOKENS * TOKENS];
static int64_t ids[2][2 * TOKENS];
static float seen[ROOM], seen_lse[2 * HEADS * TOKENS], scales[ROOM];
static uint16_t narrow[ROOM]; /* f16 or bf16 below 1, or int8 two by two */

static int64_t whole(int64_t low, int64_t high)
{
    return take_whole(&input, 248, low, high);
}

static int chance(unsigned percent)
{
    return take(&input, 1) % 100 < percent;
}

static double real(double usual)
{
    double value;
    if (take(&input, 1) < 240)
        return usual;
    const uint64_t bits = take(&input, 8);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void positions(pe_positions *at, int which)
{
    *at = (pe_positions){.start = whole(-8, 60)};
    if (chance(40))
        return;
    for (int i = 0; i < 2 * TOKENS; i++)
        ids[which][i] = input.size > 0 ? (int64_t)(take(&input, 1) % 220) - 20 : i;
    /* One may be any: far turns take as long as all the rest. */
    ids[which][take(&input, 1) % (2 * TOKENS)] = whole(-20, 200);
    *at = (pe_positions){.ids = ids[which], .batch_stride = chance(50) ? TOKENS : 0};
}

static pe_attention *plan(pe_attention_spec *spec, pe_bias **bias)
{
    pe_attention *made = NULL;
    pe_error error;
    *spec = (pe_attention_spec){
        .struct_size = sizeof *spec,
        .num_heads = (int32_t)(take(&input, 1) % HEADS) + 1,
        .num_kv_heads = (int32_t)whole(1, 2),
        .head_dim = (int32_t)(take(&input, 1) % DIM) + 1,
        .v_head_dim = (int32_t)(take(&input, 1) % (DIM + 1)),
        .no_skip = (int32_t)whole(0, 1),
        .scale = real(0),
        .softcap = real(chance(30) ? 2.5 : 0),
        .visible = {.mask = (pe_mask)whole(1, 2),
                    .num_sinks = (int32_t)whole(0, 5),
                    .window = whole(0, 90),
                    .chunk = whole(0, 20) / 5},
        .temperature = {.type = (pe_temperature_type)whole(0, 3) / 3,
                        .length = 8,
                        .scale = real(0.25)}};
    const int64_t pairing = 1 + (int64_t)(take(&input, 1) % 2);
    const pe_bias_spec bias_spec = {.struct_size = sizeof bias_spec,
                                    .type = PE_BIAS_ALIBI,
                                    .form = (pe_bias_form)whole(1, 3),
                                    .num_heads = HEADS,
                                    .scale = real(chance(50) ? 1 : 30)};
    if (chance(50)) {
        spec->q_rope = rope_of(spec->head_dim, pairing);
        spec->k_rope = chance(60) ? spec->q_rope : NULL;
    }
    if (chance(50) && pe_bias_create(bias, &bias_spec, NULL, NULL) == PE_OK)
        spec->bias[chance(20)] = *bias;
    if (pe_attention_create(&made, spec, NULL, &error) != PE_OK &&
        (made != NULL || error.message[0] == 0))
        abort();
    return made;
}

typedef struct call {
    pe_attention_args args;
    pe_tensor q, k, v, out, mask, scores;
    pe_positions q_at, k_at;
    pe_far far_rules[2];
    int64_t k_lens[2], blocks[2];
    int32_t cu[2][4];
    float norms[2 * HEADS * 2], sinks[HEADS];
} call;

/* Keys and values may be narrower. */
static void narrow_some(pe_tensor *t)
{
    static const pe_dtype dtypes[] = {PE_F32, PE_F32, PE_F16, PE_BF16, PE_I8};
    t->dtype = dtypes[take(&input, 1) % 5];
    if (t->dtype != PE_F32)
        t->data = narrow;
    if (t->dtype == PE_I8)
        t->scales = scales;
}

static void fill(call *c, const pe_attention_spec *spec)
{
    const int64_t batch = 1 + chance(30),
                  v_dim = spec->v_head_dim > 0 ? spec->v_head_dim : spec->head_dim;
    const int64_t most = chance(60) ? 10 : TOKENS; /* one block of keys, or two */
    const int64_t q_len = whole(0, most) % (TOKENS + 1);
    const int64_t k_len = whole(0, most) % (TOKENS + 1);
    const int64_t q = q_len < 0 ? 0 : q_len, k = k_len < 0 ? 0 : k_len;
    const int64_t kv = spec->num_kv_heads;
    pe_tensor_bshd(&c->q, PE_F32, x, batch, q, spec->num_heads, spec->head_dim);
    pe_tensor_bhsd(&c->k, PE_F32, x, batch, kv, k, spec->head_dim);
    pe_tensor_bshd(&c->v, PE_F32, x, batch, k, kv, v_dim);
    narrow_some(&c->k);
    narrow_some(&c->v);
    pe_tensor_bshd(&c->out, PE_F32, out, batch, q, spec->num_heads, v_dim);
    pe_tensor_bhsd(&c->mask, PE_F32, x, 1, 1, q, k);
    pe_tensor_bhsd(&c->scores, PE_F32, probs, batch, spec->num_heads, q, k);
    positions(&c->q_at, 0);
    positions(&c->k_at, 1);
    for (int i = 0; i < 2; i++)
        c->far_rules[i] = (pe_far){.unit = whole(1, 9),
                                   .from = whole(0, 40),
                                   .q_at = i ? &c->q_at : &c->k_at,
                                   .k_at = i ? &c->k_at : &c->q_at};
    for (int i = 0; i < 2; i++) {
        c->k_lens[i] = (int64_t)((uint64_t)k - (uint64_t)whole(0, 3)); /* any */
        for (int s = 1; s < 4; s++)
            c->cu[i][s] = (int32_t)((uint32_t)c->cu[i][s - 1] + (uint32_t)whole(0, 27));
    }
    for (int i = 0; i < 4 * HEADS; i++)
        c->norms[i] = (float)real(30);
    for (int i = 0; i < HEADS; i++)
        c->sinks[i] = (float)real(0.5);
    c->args = (pe_attention_args){.struct_size = sizeof c->args,
                                  .q = &c->q,
                                  .k = &c->k,
                                  .v = &c->v,
                                  .out = &c->out,
                                  .q_at = &c->q_at,
                                  .k_at = &c->k_at,
                                  .lse = lse,
                                  .num_blocks = c->blocks};
    if (chance(20))
        c->args.k_lens = c->k_lens;
    if (chance(20)) {
        c->args.num_seqs = 3;
        c->args.q_cu_seqlens = c->cu[0];
        c->args.k_cu_seqlens = chance(70) ? c->cu[1] : NULL;
    }
    c->args.mask = chance(20) && k > 0 ? &c->mask : NULL;
    c->args.sinks = chance(20) ? c->sinks : NULL;
    c->args.k_norms = chance(30) ? c->norms : NULL;
    if (chance(20)) {
        c->args.far_rules = c->far_rules;
        c->args.num_far_rules = whole(1, 2);
    }
    if (chance(30) && k > 0) {
        c->args.scores = &c->scores;
        c->args.scores_start = whole(0, 2) / 2;
        c->scores.seq_len -= c->args.scores_start;
    }
}

static void judge(const call *c)
{
    const pe_tensor *p = c->args.scores;
    for (int64_t r = 0;
         p != NULL && c->args.num_seqs == 0 && r < p->batch * p->num_heads * p->seq_len;
         r++) {
        const int64_t t = r % p->seq_len, h = r / p->seq_len % p->num_heads;
        const float *row = probs + t * p->seq_stride + h * p->head_stride +
                           r / p->seq_len / p->num_heads * p->batch_stride;
        double sum = 0;
        for (int64_t j = 0; j < p->dim; j++)
            sum += (double)row[j];
        if (!isnan(sum) && sum > 1 + 1e-5)
            abort();
    }
}

static int are_same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The same call, visiting all blocks if it did not, and the other way round. */
static void judge_skipping(const pe_attention_spec *spec, const call *c, void *work,
                           size_t size)
{
    pe_attention_spec other = *spec;
    pe_attention *plan = NULL;
    size_t wanted;
    if (spec->bias[0] == NULL && spec->bias[1] == NULL)
        return;
    if (c->args.k_norms != NULL)
        return; /* norms that are given may be too small */
    other.no_skip = !spec->no_skip;
    memcpy(seen, out, sizeof out);
    memcpy(seen_lse, lse, sizeof lse);
    if (pe_attention_create(&plan, &other, NULL, NULL) != PE_OK ||
        pe_attention_workspace(plan, &c->args, &wanted, NULL, NULL) != PE_OK ||
        wanted > size ||
        pe_attention_forward(plan, &c->args, work, size, NULL) != PE_OK)
        abort();
    for (int i = 0; i < ROOM; i++)
        if (!are_same(seen[i], out[i]))
            abort();
    for (size_t i = 0; i < sizeof lse / sizeof *lse; i++)
        if (!are_same(seen_lse[i], lse[i]))
            abort();
    pe_attention_destroy(plan);
}

static void run(const pe_attention *made, const pe_attention_spec *spec, call *c)
{
    pe_tensor dq = c->q, dk = c->k, dv = c->v, dm = c->mask;
    size_t forward = 0, backward = 0;
    if (pe_attention_workspace(made, &c->args, &forward, &backward, NULL) != PE_OK)
        forward = backward = 64;
    if (forward > (size_t)64 << 20 || backward > (size_t)64 << 20)
        abort();
    /* Room for norms, which a call that skips makes. */
    const size_t size =
        ((forward > backward ? forward : backward) + 63) / 64 * 64 + 4096;
    void *work = aligned_alloc(64, size);
    dq.data = grads_data[0];
    dk.data = grads_data[1];
    dv.data = grads_data[2];
    dm.data = dmask;
    dk.dtype = dv.dtype = PE_F32;
    const pe_attention_grads grads = {.struct_size = sizeof grads,
                                      .dout = &c->out,
                                      .dq = chance(60) ? &dq : NULL,
                                      .dk = chance(60) ? &dk : NULL,
                                      .dv = chance(60) ? &dv : NULL,
                                      .dmask = c->args.mask ? &dm : NULL};
    if (pe_attention_forward(made, &c->args, work, size, NULL) == PE_OK) {
        judge(c);
        judge_skipping(spec, c, work, size);
        (void)pe_attention_backward(made, &c->args, &grads, work, size, NULL);
    } else if (memcmp(out, before, sizeof out) != 0) {
        abort();
    }
    free(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_attention_spec spec;
    pe_bias *bias = NULL;
    input = (struct bytes){data, size};
    for (int i = 0; i < ROOM; i++) {
        x[i] = (float)(i * 7919 % 997) / 499 - 1;
        out[i] = before[i] = 7;
        narrow[i] = (uint16_t)(i * 7919 % 0x3c00 | i % 2 << 15);
        scales[i] = 1.0f / 256;
    }
    pe_attention *made = plan(&spec, &bias);
    if (chance(20))
        x[take(&input, 2) % ROOM] = chance(50) ? NAN : INFINITY;
    if (made != NULL) {
        static call c;
        memset(&c, 0, sizeof c);
        fill(&c, &spec);
        run(made, &spec, &c);
    }
    pe_attention_destroy(made);
    pe_bias_destroy(bias);
    return 0;
}
