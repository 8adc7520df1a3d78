/* SPDX-License-Identifier: MIT
 *
 * diff_specs.c - the numbers of two specs that are no angles
 *
 * How a rotation got its frequencies (rule, base, factor) explains a difference but is
 * none: GGUF holds a rule's result where config.json holds the rule. */
#include "diff.h"

#include "names.h"

#include <math.h>
#include <string.h>

static const char explains[] = "only the angles count";

static const char *out_pairing_of(const pe_pairs *pairs)
{
    return cli_choice_name(cli_pairing_names, pairs->out_pairing != 0
                                                  ? pairs->out_pairing
                                                  : pairs->pairing);
}

void cli_diff_ropes(cli_diff_lines *lines, const pe_rope_spec *a, const pe_rope_spec *b,
                    const char *pairing_excuse)
{
    const pe_pairs *p = &a->pairs, *q = &b->pairs;
    const pe_freqs *f = &a->freqs, *g = &b->freqs;
    cli_diff_text(lines, "pairing", cli_choice_name(cli_pairing_names, p->pairing),
                  cli_choice_name(cli_pairing_names, q->pairing), pairing_excuse);
    if (p->out_pairing != 0 || q->out_pairing != 0)
        cli_diff_text(lines, "out_pairing", out_pairing_of(p), out_pairing_of(q),
                      pairing_excuse);
    cli_diff_integer(lines, "head_dim", a->head_dim, b->head_dim, NULL);
    cli_diff_integer(lines, "rotary_dim",
                     p->rotary_dim != 0 ? p->rotary_dim : a->head_dim,
                     q->rotary_dim != 0 ? q->rotary_dim : b->head_dim, NULL);
    cli_diff_integer(lines, "rotary_start", p->rotary_start, q->rotary_start, NULL);
    cli_diff_integer(lines, "reversed", p->reversed, q->reversed, NULL);
    cli_diff_text(lines, "rope_type",
                  cli_choice_name(cli_rope_type_names, f->rope_type),
                  cli_choice_name(cli_rope_type_names, g->rope_type), explains);
    cli_diff_number(lines, "rope_theta", f->rope_theta, g->rope_theta, explains);
    cli_diff_number(lines, "factor", f->factor, g->factor, explains);
    cli_diff_integer(lines, "original_max_position_embeddings",
                     f->original_max_position_embeddings,
                     g->original_max_position_embeddings, explains);
}

static void compare_slopes(cli_diff_lines *lines, const pe_bias_spec *a,
                           const pe_bias_spec *b)
{
    pe_bias *left = NULL, *right = NULL;
    const double scale_a = a->scale != 0 ? a->scale : 1;
    const double scale_b = b->scale != 0 ? b->scale : 1;
    double worst[2] = {0};
    if (pe_bias_create(&left, a, NULL, NULL) == PE_OK &&
        pe_bias_create(&right, b, NULL, NULL) == PE_OK) {
        for (int32_t h = 0; h < a->num_heads && h < b->num_heads; h++) {
            const double m = scale_a * (double)pe_bias_slopes(left)[h];
            const double n = scale_b * (double)pe_bias_slopes(right)[h];
            if (fabs(m - n) > fabs(worst[0] - worst[1])) {
                worst[0] = m;
                worst[1] = n;
            }
        }
    }
    cli_diff_number(lines, "slope", worst[0], worst[1], NULL);
    pe_bias_destroy(left);
    pe_bias_destroy(right);
}

static int is_one_sided(pe_bias_form form)
{
    return form == PE_BIAS_CAUSAL || form == PE_BIAS_KEY_ONLY;
}

int cli_diff_biases(cli_diff_lines *lines, const cli_model *a, int32_t a_bias,
                    const cli_model *b, int32_t b_bias)
{
    pe_bias_spec left = {.struct_size = sizeof left};
    pe_bias_spec right = {.struct_size = sizeof right};
    pe_error error;
    cli_diff_text(lines, "bias", a_bias >= 0 ? "yes" : "none",
                  b_bias >= 0 ? "yes" : "none", NULL);
    if (a_bias < 0 || b_bias < 0)
        return CLI_DONE;
    if (pe_model_bias_spec(a->model, a_bias, &left, &error) != PE_OK)
        return cli_fail_with(a->name, &error);
    if (pe_model_bias_spec(b->model, b_bias, &right, &error) != PE_OK)
        return cli_fail_with(b->name, &error);
    cli_diff_text(lines, "bias.type", cli_choice_name(cli_bias_names, left.type),
                  cli_choice_name(cli_bias_names, right.type), NULL);
    cli_diff_text(lines, "bias.form", cli_choice_name(cli_form_names, left.form),
                  cli_choice_name(cli_form_names, right.form),
                  left.type == PE_BIAS_ALIBI && is_one_sided(left.form) &&
                          is_one_sided(right.form)
                      ? "equal after softmax"
                      : NULL);
    cli_diff_integer(lines, "bias.num_heads", left.num_heads, right.num_heads, NULL);
    if (left.type == PE_BIAS_ALIBI && right.type == PE_BIAS_ALIBI)
        compare_slopes(lines, &left, &right);
    cli_diff_integer(lines, "bias.num_buckets", left.num_buckets, right.num_buckets,
                     NULL);
    cli_diff_integer(lines, "bias.max_distance", left.max_distance, right.max_distance,
                     NULL);
    return CLI_DONE;
}

static double or_else(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

static void compare_sinusoidal(cli_diff_lines *lines, const pe_sinusoidal_spec *a,
                               const pe_sinusoidal_spec *b)
{
    cli_diff_text(lines, "sinusoidal.order", cli_choice_name(cli_order_names, a->order),
                  cli_choice_name(cli_order_names, b->order), NULL);
    cli_diff_integer(lines, "sinusoidal.model_dim", a->model_dim, b->model_dim, NULL);
    cli_diff_number(lines, "sinusoidal.base", or_else(a->base, 10000),
                    or_else(b->base, 10000), NULL);
    cli_diff_number(lines, "sinusoidal.downscale_freq_shift", a->downscale_freq_shift,
                    b->downscale_freq_shift, NULL);
    cli_diff_number(lines, "sinusoidal.position_scale", or_else(a->position_scale, 1),
                    or_else(b->position_scale, 1), NULL);
    cli_diff_number(lines, "sinusoidal.value_scale", or_else(a->value_scale, 1),
                    or_else(b->value_scale, 1), NULL);
    cli_diff_number(lines, "sinusoidal.embed_scale", or_else(a->embed_scale, 1),
                    or_else(b->embed_scale, 1), NULL);
    cli_diff_integer(lines, "sinusoidal.num_axes", a->num_axes > 1 ? a->num_axes : 1,
                     b->num_axes > 1 ? b->num_axes : 1, NULL);
    cli_diff_integer(lines, "sinusoidal.padding_position",
                     a->has_padding ? a->padding_position : 0,
                     b->has_padding ? b->padding_position : 0, NULL);
}

static const char *value_of(const pe_model *model, const char *name)
{
    const pe_field *field = pe_model_find_field(model, name);
    return field == NULL ? "-" : field->value;
}

static void compare_fields(cli_diff_lines *lines, const char *name, const pe_model *a,
                           const pe_model *b)
{
    const char *left = value_of(a, name), *right = value_of(b, name);
    if (strcmp(left, "-") != 0 || strcmp(right, "-") != 0)
        cli_diff_text(lines, name, left, right, NULL);
}

void cli_diff_absolute(cli_diff_lines *lines, const pe_model *a, const pe_model *b)
{
    pe_sinusoidal_spec s = {.struct_size = sizeof s}, t = {.struct_size = sizeof t};
    pe_learned_spec l = {.struct_size = sizeof l}, m = {.struct_size = sizeof m};
    const int has_s = pe_model_sinusoidal_spec(a, &s, NULL) == PE_OK;
    const int has_t = pe_model_sinusoidal_spec(b, &t, NULL) == PE_OK;
    const int has_l = pe_model_learned_spec(a, &l, NULL) == PE_OK;
    const int has_m = pe_model_learned_spec(b, &m, NULL) == PE_OK;
    cli_diff_text(lines, "sinusoidal", has_s ? "yes" : "none", has_t ? "yes" : "none",
                  NULL);
    cli_diff_text(lines, "learned", has_l ? "yes" : "none", has_m ? "yes" : "none",
                  NULL);
    if (has_s && has_t)
        compare_sinusoidal(lines, &s, &t);
    if (has_l && has_m) {
        cli_diff_integer(lines, "learned.position_offset", l.position_offset,
                         m.position_offset, NULL);
        compare_fields(lines, "learned.rows", a, b);
        compare_fields(lines, "learned.model_dim", a, b);
        cli_diff_number(lines, "learned.embed_scale", or_else(l.embed_scale, 1),
                        or_else(m.embed_scale, 1), NULL);
    }
}
