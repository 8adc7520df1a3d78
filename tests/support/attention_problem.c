/* SPDX-License-Identifier: MIT
 *
 * attention_problem.c - one plain attention call in dense float arrays
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_case.h"
#include "attention_problem.h"

void attention_problem_init(attention_problem *p, test_rng *r, int64_t q_len,
                            int64_t k_len, int32_t heads, int32_t kv_heads, int32_t dim)
{
    *p = (attention_problem){.q_len = q_len, .k_len = k_len};
    p->spec = (pe_attention_spec){.struct_size = sizeof p->spec,
                                  .num_heads = heads,
                                  .num_kv_heads = kv_heads,
                                  .head_dim = dim,
                                  .visible = {.mask = PE_MASK_CAUSAL}};
    p->q = case_array(q_len * heads * dim, sizeof(float));
    p->k = case_array(k_len * kv_heads * dim, sizeof(float));
    p->v = case_array(k_len * kv_heads * dim, sizeof(float));
    p->out = case_array(q_len * heads * dim, sizeof(float));
    p->lse = case_array(q_len * heads, sizeof(float));
    p->norms = case_array(kv_heads * ((k_len + 63) / 64), sizeof(float));
    for (int64_t i = 0; i < q_len * heads * dim; i++)
        p->q[i] = test_rng_float(r);
    for (int64_t i = 0; i < k_len * kv_heads * dim; i++) {
        p->k[i] = test_rng_float(r);
        p->v[i] = test_rng_float(r);
    }
    pe_tensor_bshd(&p->q_t, PE_F32, p->q, 1, q_len, heads, dim);
    pe_tensor_bshd(&p->k_t, PE_F32, p->k, 1, k_len, kv_heads, dim);
    pe_tensor_bshd(&p->v_t, PE_F32, p->v, 1, k_len, kv_heads, dim);
    pe_tensor_bshd(&p->out_t, PE_F32, p->out, 1, q_len, heads, dim);
    p->q_at.start = k_len - q_len;
    p->args = (pe_attention_args){.struct_size = sizeof p->args,
                                  .q = &p->q_t,
                                  .k = &p->k_t,
                                  .v = &p->v_t,
                                  .out = &p->out_t,
                                  .q_at = &p->q_at,
                                  .k_at = &p->k_at,
                                  .lse = p->lse,
                                  .num_blocks = p->blocks};
}

void attention_problem_free(attention_problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->out);
    free(p->lse);
    free(p->norms);
}

void attention_problem_norms(attention_problem *p)
{
    const int64_t runs = (p->k_len + 63) / 64, dim = p->spec.head_dim;
    const int64_t heads = p->spec.num_kv_heads;

    for (int64_t h = 0; h < heads; h++)
        for (int64_t j = 0; j < p->k_len; j++) {
            double sum = 0;
            for (int64_t d = 0; d < dim; d++)
                sum += pow((double)p->k[(j * heads + h) * dim + d], 2);
            const float norm = nextafterf((float)sqrt(sum), INFINITY);
            float *run = p->norms + h * runs + j / 64;
            *run = norm > *run ? norm : *run;
        }
    p->args.k_norms = p->norms;
}

void attention_problem_run(attention_problem *p, const pe_env *env)
{
    pe_attention *plan = NULL;
    size_t size = 0;
    pe_error error;

    case_must(pe_attention_create(&plan, &p->spec, env, &error), &error);
    case_must(pe_attention_workspace(plan, &p->args, &size, NULL, &error), &error);
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(work, 0xff, size);
    case_must(pe_attention_forward(plan, &p->args, work, size, &error), &error);
    free(work);
    pe_attention_destroy(plan);
}

pe_bias *attention_problem_alibi(int32_t heads, pe_bias_form form, double scale)
{
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = form,
                               .num_heads = heads,
                               .scale = scale};
    pe_bias *bias;
    pe_error error;

    case_must(pe_bias_create(&bias, &spec, NULL, &error), &error);
    return bias;
}

pe_rope *attention_problem_rope(int32_t dim)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = dim,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    pe_rope *plan;
    pe_error error;

    case_must(pe_rope_create(&plan, &spec, NULL, &error), &error);
    return plan;
}
