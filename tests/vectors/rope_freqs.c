/* SPDX-License-Identifier: MIT
 *
 * rope_freqs.c - frequencies and attention factor of every scaling rule
 *
 * Doubles in, doubles out: no allowance for float.  A case with an odd rotary_dim has
 * ceil(rotary_dim / 2) frequencies in Hugging Face's code, which then fails on a shape;
 * posenc refuses such a spec, and the refusal is what is checked. */
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void check_odd(const vec_case *c, const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;

    pe_status status = pe_rope_create(&rope, spec, NULL, &error);
    pe_rope_destroy(rope);
    if (status != PE_E_ARGUMENT || strstr(error.message, "rotary_dim") == NULL)
        vec_fail(c, "expected rotary_dim %d to be refused, got %s",
                 spec->pairs.rotary_dim, pe_status_name(status));
    printf("note %s: rotary_dim is odd, passed because it is refused: %s\n", c->id,
           error.message);
}

static void check_freqs(vec_case *c)
{
    const double rel = vec_number(c, c->tolerance, "exact_rel");
    const double factor_rel = vec_number(c, c->tolerance, "attention_factor_rel");
    const double factor = vec_number(c, c->expect, "exact_attention_factor");
    pe_rope_spec spec;

    vec_rope_spec(c, &spec);
    if (spec.pairs.rotary_dim % 2 != 0) {
        check_odd(c, &spec);
        return;
    }
    const pe_rope_info *info = pe_rope_get_info(vec_rope(c, &spec));
    const double *exact = vec_expected(c, "exact_inv_freq", info->num_pairs);
    for (int32_t i = 0; i < info->num_pairs; i++)
        vec_near(c, "inv_freq", i, info->inv_freq[i], exact[i], rel * fabs(exact[i]));
    vec_near(c, "attention_factor", 0, info->attention_factor, factor,
             factor_rel * fabs(factor));

    /* A lone mscale or mscale_all_dim: DeepSeek's code takes 1 and 0 for the other one,
     * which says the same as writing mscale out. */
    const char *name = "alternative_attention_factor_deepseek_rule";
    if (json_object_object_get_ex(c->expect, name, NULL)) {
        const double other = vec_number(c, c->expect, name);
        if (spec.freqs.mscale == 0)
            spec.freqs.mscale = 1;
        info = pe_rope_get_info(vec_rope(c, &spec));
        vec_near(c, "attention_factor with mscale 1", 0, info->attention_factor, other,
                 factor_rel * fabs(other));
    }
}

const vec_kind vec_rope_freqs_kinds[] = {
    {"model", check_freqs},
    {"synthetic-default", check_freqs},
    {"synthetic-linear", check_freqs},
    {"synthetic-dynamic", check_freqs},
    {"synthetic-yarn", check_freqs},
    {"synthetic-llama3", check_freqs},
    {"synthetic-longrope", check_freqs},
    {"synthetic-proportional", check_freqs},
    {NULL, NULL},
};
