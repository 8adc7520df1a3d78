/* SPDX-License-Identifier: MIT
 *
 * diff_models.c - two models compared, attention site by attention site
 *
 * Angles are compared as frequencies: they part by |f - g| for each position, so the
 * first position past a tolerance is known without walking there. */
#include "diff.h"

#include "layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 2048 };

const int64_t cli_diff_lengths[CLI_DIFF_LENGTHS] = {4096, 32768, 131072};

/* One model's rotation of a site, signed: a reversed one turns the other way. */
typedef struct rotation {
    pe_rope_spec spec;
    double freqs[MAX_PAIRS];
    uint8_t axes[MAX_PAIRS];
    int32_t num_pairs, depends_on_len;
    double attention_factor, softmax_factor;
} rotation;

static int read_rotation(rotation *out, const cli_model *model, int32_t index)
{
    pe_rope *plan;
    pe_error error;
    out->spec = (pe_rope_spec){.struct_size = sizeof out->spec};
    if (pe_model_rope_spec(model->model, index, &out->spec, &error) != PE_OK ||
        pe_rope_create(&plan, &out->spec, NULL, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    const pe_rope_info *info = pe_rope_get_info(plan);
    out->num_pairs = info->num_pairs;
    out->depends_on_len = info->seq_len_max < INT64_MAX;
    out->attention_factor = info->attention_factor;
    out->softmax_factor = info->softmax_factor;
    for (int32_t i = 0; i < info->num_pairs; i++) {
        out->freqs[i] =
            out->spec.pairs.reversed ? -info->inv_freq[i] : info->inv_freq[i];
        out->axes[i] = info->pair_axis[i];
    }
    pe_rope_destroy(plan);
    return CLI_DONE;
}

static int is_gguf(const cli_model *model)
{
    return model->checkpoint != NULL &&
           pe_checkpoint_find_setting(model->checkpoint, "general.architecture") !=
               NULL;
}

/* The steepest difference; ties go to the lower pair. */
static cli_diff_gap widest(const rotation *a, const rotation *b)
{
    cli_diff_gap gap = {0};
    for (int32_t i = 0; i < a->num_pairs && i < b->num_pairs; i++) {
        const double step = fabs(a->freqs[i] - b->freqs[i]);
        if (step > gap.radians)
            gap = (cli_diff_gap){step, i};
    }
    return gap;
}

static void compare_axes(cli_diff_lines *lines, const rotation *a, const rotation *b)
{
    for (int32_t i = 0; i < a->num_pairs && i < b->num_pairs; i++) {
        char texts[2][32];
        if (a->axes[i] == b->axes[i])
            continue;
        (void)snprintf(texts[0], sizeof texts[0], "%d for pair %d", a->axes[i], (int)i);
        (void)snprintf(texts[1], sizeof texts[1], "%d for pair %d", b->axes[i], (int)i);
        cli_diff_text(lines, "axis", texts[0], texts[1], NULL);
        return;
    }
}

/* Frequencies that the total length decides are read again for every length. */
static int compare_at(cli_diff_gap *gap, cli_model *a, cli_model *b,
                      const cli_diff_site *site, rotation *scratch, int64_t length)
{
    int status = CLI_DONE;
    if (scratch[0].depends_on_len || scratch[1].depends_on_len) {
        status = cli_model_set_len(a, length);
        if (status == CLI_DONE)
            status = cli_model_set_len(b, length);
        if (status == CLI_DONE)
            status = read_rotation(&scratch[0], a, site->a_rope);
        if (status == CLI_DONE)
            status = read_rotation(&scratch[1], b, site->b_rope);
    }
    *gap = widest(&scratch[0], &scratch[1]);
    gap->radians *= (double)length;
    return status;
}

static int compare_rotations(cli_diff *diff, cli_diff_site *site, cli_model *a,
                             cli_model *b, rotation *scratch, int64_t seq_len)
{
    int status = read_rotation(&scratch[0], a, site->a_rope);
    if (status == CLI_DONE)
        status = read_rotation(&scratch[1], b, site->b_rope);
    if (status != CLI_DONE)
        return status;
    site->rotates = 1;
    site->first_position = -1;
    const cli_diff_gap step = widest(&scratch[0], &scratch[1]);
    const double position =
        step.radians > 0 ? floor(diff->tolerance / step.radians) + 1 : INFINITY;
    if (position <= (double)diff->limit) {
        site->first_position = (int64_t)position;
        site->first_pair = step.pair;
    }
    for (int i = 0; i < 2; i++) {
        site->attention_factor[i] = scratch[i].attention_factor;
        site->softmax_factor[i] = scratch[i].softmax_factor;
    }
    cli_diff_ropes(&site->lines, &scratch[0].spec, &scratch[1].spec,
                   is_gguf(a) != is_gguf(b)
                       ? "a GGUF file may hold its q and k rows in another order"
                       : NULL);
    compare_axes(&site->lines, &scratch[0], &scratch[1]);
    cli_diff_number(&site->lines, "attention_factor", scratch[0].attention_factor,
                    scratch[1].attention_factor, NULL);
    cli_diff_number(&site->lines, "softmax_factor", scratch[0].softmax_factor,
                    scratch[1].softmax_factor, NULL);
    for (int i = 0; i < CLI_DIFF_LENGTHS && status == CLI_DONE; i++) {
        status = compare_at(&site->gaps[i], a, b, site, scratch, cli_diff_lengths[i]);
        diff->differs |= site->gaps[i].radians > diff->tolerance &&
                         cli_diff_lengths[i] <= diff->limit;
    }
    if (status == CLI_DONE &&
        (scratch[0].depends_on_len || scratch[1].depends_on_len)) {
        status = cli_model_set_len(a, seq_len);
        if (status == CLI_DONE)
            status = cli_model_set_len(b, seq_len);
    }
    diff->differs |= site->first_position >= 0;
    return status;
}

static int compare_site(cli_diff *diff, cli_diff_site *site, cli_model *a, cli_model *b,
                        rotation *scratch, int64_t seq_len)
{
    if (site->a_rope == CLI_DIFF_ABSENT || site->b_rope == CLI_DIFF_ABSENT) {
        cli_diff_text(&site->lines, "attention",
                      site->a_rope == CLI_DIFF_ABSENT ? "none" : "yes",
                      site->b_rope == CLI_DIFF_ABSENT ? "none" : "yes", NULL);
        diff->differs = 1;
        return CLI_DONE;
    }
    cli_diff_text(&site->lines, "rotation", site->a_rope >= 0 ? "yes" : "none (NoPE)",
                  site->b_rope >= 0 ? "yes" : "none (NoPE)", NULL);
    int status = CLI_DONE;
    if (site->a_rope >= 0 && site->b_rope >= 0)
        status = compare_rotations(diff, site, a, b, scratch, seq_len);
    if (status == CLI_DONE && (site->a_bias >= 0 || site->b_bias >= 0))
        status = cli_diff_biases(&site->lines, a, site->a_bias, b, site->b_bias);
    diff->differs |= cli_diff_counts(&site->lines);
    return status;
}

/* Files that do not say how many layers there are have one site for all. */
static const pe_site *site_of(const pe_model *model, int32_t layer, pe_site_role role)
{
    if (pe_model_get_info(model)->num_layers == 0)
        layer = 0;
    return pe_model_find_site(model, layer, role);
}

static int add_layer(cli_diff *diff, int32_t layer, pe_site_role role, const pe_site *a,
                     const pe_site *b)
{
    const cli_diff_site key = {.role = role,
                               .a_rope = a != NULL ? a->rope : CLI_DIFF_ABSENT,
                               .b_rope = b != NULL ? b->rope : CLI_DIFF_ABSENT,
                               .a_bias = a != NULL ? a->bias : CLI_DIFF_ABSENT,
                               .b_bias = b != NULL ? b->bias : CLI_DIFF_ABSENT};
    cli_diff_site *site = NULL;
    for (size_t i = 0; i < diff->num_sites && site == NULL; i++) {
        cli_diff_site *s = &diff->sites[i];
        if (s->role == role && s->a_rope == key.a_rope && s->b_rope == key.b_rope &&
            s->a_bias == key.a_bias && s->b_bias == key.b_bias)
            site = s;
    }
    if (site == NULL) {
        cli_diff_site *moved =
            realloc(diff->sites, (diff->num_sites + 1) * sizeof *moved);
        if (moved == NULL)
            return cli_fail(CLI_FAILED, "out of memory");
        diff->sites = moved;
        site = &moved[diff->num_sites++];
        *site = key;
    }
    return cli_layers_add(&site->layers, layer);
}

static int pair_up(cli_diff *diff, const pe_model *a, const pe_model *b)
{
    const pe_site *site;
    int status = CLI_DONE;
    const int32_t a_layers = pe_model_get_info(a)->num_layers;
    for (int32_t i = 0; (site = pe_model_site(a, i)) != NULL && status == CLI_DONE; i++)
        if (a_layers != 0 || pe_model_get_info(b)->num_layers == 0)
            status = add_layer(diff, site->layer, site->role, site,
                               site_of(b, site->layer, site->role));
    for (int32_t i = 0; (site = pe_model_site(b, i)) != NULL && status == CLI_DONE; i++)
        if (a_layers == 0 && pe_model_get_info(b)->num_layers != 0)
            status = add_layer(diff, site->layer, site->role,
                               site_of(a, site->layer, site->role), site);
        else if (site_of(a, site->layer, site->role) == NULL)
            status = add_layer(diff, site->layer, site->role, NULL, site);
    return status;
}

static void compare_info(cli_diff *diff, const cli_model *a, const cli_model *b)
{
    const pe_model_info *x = pe_model_get_info(a->model);
    const pe_model_info *y = pe_model_get_info(b->model);
    const char *unknown = "one of the two does not say";
    cli_diff_lines *lines = &diff->lines;
    cli_diff_text(lines, "method", x->method, y->method, NULL);
    cli_diff_integer(lines, "trained_len", x->trained_len, y->trained_len,
                     x->trained_len == 0 || y->trained_len == 0 ? unknown
                     : is_gguf(a) != is_gguf(b) ? "GGUF seldom holds the trained length"
                                                : NULL);
    cli_diff_integer(lines, "extended_len", x->extended_len, y->extended_len,
                     x->extended_len == 0 || y->extended_len == 0 ? unknown : NULL);
    cli_diff_integer(lines, "num_layers", x->num_layers, y->num_layers,
                     x->num_layers == 0 || y->num_layers == 0 ? unknown : NULL);
    cli_diff_integer(lines, "num_heads", x->num_heads, y->num_heads,
                     x->num_heads == 0 || y->num_heads == 0 ? unknown : NULL);
    cli_diff_integer(lines, "num_kv_heads", x->num_kv_heads, y->num_kv_heads,
                     x->num_kv_heads == 0 || y->num_kv_heads == 0 ? unknown : NULL);
    cli_diff_absolute(lines, a->model, b->model);
    diff->differs |= cli_diff_counts(lines);
    diff->limit = cli_diff_lengths[CLI_DIFF_LENGTHS - 1];
    diff->limit = x->extended_len > diff->limit ? x->extended_len : diff->limit;
    diff->limit = y->extended_len > diff->limit ? y->extended_len : diff->limit;
}

int cli_diff_models(cli_diff *out, cli_model *a, cli_model *b, double tolerance,
                    int64_t seq_len)
{
    *out = (cli_diff){.tolerance = tolerance};
    rotation *scratch = calloc(2, sizeof *scratch);
    if (scratch == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    compare_info(out, a, b);
    int status = pair_up(out, a->model, b->model);
    for (size_t i = 0; i < out->num_sites && status == CLI_DONE; i++)
        status = compare_site(out, &out->sites[i], a, b, scratch, seq_len);
    free(scratch);
    if (status != CLI_DONE)
        cli_diff_release(out);
    return status;
}

void cli_diff_release(cli_diff *diff)
{
    for (size_t i = 0; i < diff->num_sites; i++)
        free(diff->sites[i].layers);
    free(diff->sites);
    *diff = (cli_diff){0};
}
