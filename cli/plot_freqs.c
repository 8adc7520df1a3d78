/* SPDX-License-Identifier: MIT
 *
 * plot_freqs.c - posenc plot freqs: what scaling rules do to frequencies
 *
 * Over the wavelength that a pair has without scaling, so that rules for different
 * dimensions and bases can be laid over each other. */
#include "plot.h"

#include "report.h"

#include <math.h>
#include <string.h>

static const double two_pi = 6.283185307179586;
static const double default_factor = 8;

enum { DEFAULT_TRAINED = 4096 };

static const char longrope_model[] = "phi-3-mini-128k";

/* The panels of the figure: inv_freq, and its ratio to the one without scaling. */
static int add_rule(cli_figure *figure, const pe_rope_info *info, double theta,
                    const char *name)
{
    cli_panel *absolute = &figure->panels[0], *ratio = &figure->panels[1];
    cli_series *a = cli_panel_series(absolute, info->num_pairs);
    cli_series *r = cli_panel_series(ratio, info->num_pairs);
    if (a == NULL || r == NULL)
        return CLI_FAILED;
    (void)snprintf(a->name, sizeof a->name, "%s", name);
    (void)snprintf(r->name, sizeof r->name, "%s", name);
    for (int32_t i = 0; i < info->num_pairs; i++) {
        const double plain = pow(theta, -2.0 * i / info->rotary_dim);
        a->x[i] = r->x[i] = two_pi / plain;
        a->y[i] = info->inv_freq[i];
        r->y[i] = info->inv_freq[i] / plain;
        absolute->x.max = fmax(absolute->x.max, a->x[i]);
        if (a->y[i] > 0)
            absolute->y.min = fmin(absolute->y.min, a->y[i]);
        ratio->y.min = fmin(ratio->y.min, r->y[i]);
        ratio->y.max = fmax(ratio->y.max, r->y[i]);
    }
    return CLI_DONE;
}

static int add_spec(cli_figure *figure, const pe_freqs *freqs, int32_t dim,
                    const char *name)
{
    pe_rope *plan;
    pe_error error;
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = dim,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = *freqs};
    if (pe_rope_create(&plan, &spec, NULL, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s: %s", name, error.message);
    const int status =
        add_rule(figure, pe_rope_get_info(plan), freqs->rope_theta, name);
    pe_rope_destroy(plan);
    return status;
}

static int add_longrope(cli_figure *figure)
{
    cli_model model;
    cli_rope rope;
    const cli_rope_args long_args = {.layer = -1, .role = -1};
    int status = cli_model_open(&model, longrope_model, 131072);
    if (status != CLI_DONE)
        return status;
    status = cli_rope_open(&rope, &model, &long_args, -1, 0);
    if (status == CLI_DONE) {
        status = add_rule(figure, rope.info, rope.spec.freqs.rope_theta,
                          "longrope (Phi-3 128k)");
        cli_rope_close(&rope);
    }
    cli_model_close(&model);
    return status;
}

static int add_rules(cli_figure *figure, const cli_plot_args *args)
{
    const double factor = args->factor != 0 ? args->factor : default_factor;
    const int64_t trained = args->trained_len ? args->trained_len : DEFAULT_TRAINED;
    const struct {
        const char *name;
        pe_rope_type type;
    } rules[] = {{"none", PE_ROPE_DEFAULT},
                 {"linear", PE_ROPE_LINEAR},
                 {"ntk", PE_ROPE_NTK},
                 {"yarn", PE_ROPE_YARN},
                 {"llama3", PE_ROPE_LLAMA3}};
    int status = CLI_DONE;
    for (size_t i = 0; i < CLI_COUNT(rules) && status == CLI_DONE; i++) {
        const int is_llama3 = rules[i].type == PE_ROPE_LLAMA3;
        const int has_length = is_llama3 || rules[i].type == PE_ROPE_YARN;
        const pe_freqs freqs = {.rope_type = rules[i].type,
                                .rope_theta = args->base != 0 ? args->base : 1e4,
                                .factor = rules[i].type == PE_ROPE_DEFAULT ? 0 : factor,
                                .original_max_position_embeddings =
                                    has_length ? trained : 0,
                                .low_freq_factor = is_llama3 ? 1 : 0,
                                .high_freq_factor = is_llama3 ? 4 : 0};
        status = add_spec(figure, &freqs, args->dim ? (int32_t)args->dim : 128,
                          rules[i].name);
    }
    (void)snprintf(figure->title, sizeof figure->title,
                   "Frequencies under scaling by %g, trained on %lld tokens", factor,
                   (long long)trained);
    (void)snprintf(figure->panels[0].mark_name, CLI_NAME_SIZE, "trained length %lld",
                   (long long)trained);
    figure->panels[0].mark = (double)trained;
    return status == CLI_DONE ? add_longrope(figure) : status;
}

static int add_model(cli_figure *figure, const cli_plot_args *args)
{
    cli_plot_rope rope;
    int status = cli_plot_rope_open(&rope, args, 0, -1);
    if (status != CLI_DONE)
        return status;
    const pe_rope_spec *spec = &rope.rope.spec;
    int64_t trained = pe_model_get_info(rope.model.model)->trained_len;
    if (spec->freqs.original_max_position_embeddings > 0)
        trained = spec->freqs.original_max_position_embeddings;
    if (args->trained_len)
        trained = args->trained_len;
    if (spec->freqs.rope_theta > 0) {
        const pe_freqs plain = {.rope_theta = spec->freqs.rope_theta};
        status = add_spec(figure, &plain, rope.rope.info->rotary_dim, "none");
        if (status == CLI_DONE)
            status =
                add_rule(figure, rope.rope.info, plain.rope_theta,
                         cli_choice_name(cli_rope_type_names, spec->freqs.rope_type));
    } else {
        status = cli_fail(CLI_FAILED, "%s has frequencies of its own, no rope_theta",
                          rope.name);
    }
    (void)snprintf(figure->title, sizeof figure->title,
                   "Frequencies of %s, layers %.60s", rope.name, rope.rope.layers);
    figure->panels[0].mark = (double)trained;
    (void)snprintf(figure->panels[0].mark_name, CLI_NAME_SIZE, "trained length %lld",
                   (long long)trained);
    cli_plot_rope_close(&rope);
    return status;
}

int cli_plot_freqs(const cli_plot_args *args, cli_figure *figure)
{
    static const char wavelength[] = "wavelength without scaling (tokens per turn)";
    cli_panel *absolute = cli_figure_panel(figure, CLI_LINES);
    cli_panel *ratio = cli_figure_panel(figure, CLI_LINES);
    absolute->title = "inv_freq";
    absolute->x =
        (cli_axis){.label = wavelength, .min = two_pi, .log_base = 10, .digits = 12};
    absolute->y = (cli_axis){
        .label = "inv_freq (radians per token)", .min = 1, .max = 1, .log_base = 10};
    ratio->title = "ratio";
    ratio->y = (cli_axis){
        .label = "inv_freq / that without scaling", .min = 1, .max = 1, .digits = 12};
    const int status =
        args->model != NULL ? add_model(figure, args) : add_rules(figure, args);
    ratio->x = absolute->x;
    ratio->mark = absolute->mark;
    (void)memcpy(ratio->mark_name, absolute->mark_name, sizeof ratio->mark_name);
    ratio->y.min = ratio->y.min > 0 ? 0 : ratio->y.min;
    ratio->y.max = ratio->y.max <= 1.05 ? 1.05 : ratio->y.max;
    (void)snprintf(figure->note, sizeof figure->note,
                   "Each point of a line is one pair.  Pairs right of the trained "
                   "length never finished a turn in training.%s",
                   args->model != NULL
                       ? ""
                       : "  longrope has factors found by search; those of Phi-3 mini "
                         "128k are shown, for its own head_dim 96 and factor 32.");
    return status;
}
