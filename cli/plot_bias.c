/* SPDX-License-Identifier: MIT
 *
 * plot_bias.c - posenc plot alibi and slopes: ALiBi head by head
 */
#include "plot.h"

#include "bias_arg.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_HEADS = 8, MAX_LEN = 1 << 14, MAX_CELLS = 1 << 22 };

static const double least_weight = 1e-6;

static int open_alibi(cli_bias *out, const cli_plot_args *args, int64_t default_heads)
{
    const cli_bias_args none = CLI_BIAS_DEFAULTS;
    char count[24];
    (void)snprintf(count, sizeof count, "%lld",
                   (long long)(args->heads ? args->heads : default_heads));
    const int status = cli_bias_open(out, args->model ? args->model : count, &none);
    if (status != CLI_DONE || out->spec.type == PE_BIAS_ALIBI)
        return status;
    const char *type = cli_choice_name(cli_bias_names, out->spec.type);
    cli_bias_close(out);
    return cli_fail(CLI_FAILED, "the bias of %s is %s, must be alibi", args->model,
                    type);
}

static void name_source(char *out, size_t size, const cli_bias *bias)
{
    if (bias->name != NULL)
        (void)snprintf(out, size, "%s, %d heads", bias->name,
                       (int)bias->spec.num_heads);
    else
        (void)snprintf(out, size, "%d heads", (int)bias->spec.num_heads);
}

/* Minus the bias, relative to distance 0, for heads spread over all. */
static int fill_bias(cli_panel *panel, const float *bias, int64_t heads, int64_t len)
{
    const int64_t lines = heads < CLI_MAX_SERIES ? heads : CLI_MAX_SERIES;
    panel->x = (cli_axis){
        .label = "distance (tokens)", .min = 1, .max = (double)len - 1, .log_base = 10};
    panel->y = (cli_axis){
        .label = "minus bias (score units)", .min = 1, .max = 1, .log_base = 10};
    for (int64_t s = 0; s < lines; s++) {
        const int64_t head = lines > 1 ? s * (heads - 1) / (lines - 1) : 0;
        const float *row = bias + head * len;
        cli_series *series = cli_panel_series(panel, len - 1);
        if (series == NULL)
            return CLI_FAILED;
        (void)snprintf(series->name, sizeof series->name, "head %lld", (long long)head);
        for (int64_t d = 1; d < len; d++) {
            const double cost = (double)row[len - 1] - (double)row[len - 1 - d];
            series->x[d - 1] = (double)d;
            series->y[d - 1] = cost;
            panel->y.min = fmin(panel->y.min, cost);
            panel->y.max = fmax(panel->y.max, cost);
        }
    }
    return CLI_DONE;
}

static int fill_softmax(cli_panel *panel, const float *weights, int64_t heads,
                        int64_t len)
{
    panel->x =
        (cli_axis){.label = "distance (tokens)", .is_whole = 1, .max = (double)len - 1};
    panel->y = (cli_axis){.label = "head", .is_whole = 1, .max = (double)heads - 1};
    panel->value = (cli_axis){.label = "attention weight, log scale",
                              .min = least_weight,
                              .max = 1,
                              .log_base = 10,
                              .digits = 5};
    const int status = cli_panel_cells(panel, heads, len, 0, 0);
    for (int64_t h = 0; h < heads && status == CLI_DONE; h++)
        for (int64_t d = 0; d < len; d++)
            panel->values[h * len + d] = (double)weights[h * len + len - 1 - d];
    return status;
}

/* One query at the end of len keys, all scores zero. */
static int fill_alibi(cli_figure *figure, const cli_bias *bias, int64_t len)
{
    const int64_t heads = bias->spec.num_heads;
    const pe_positions q_at = {.start = len - 1}, k_at = {.start = 0};
    pe_tensor x, y;
    pe_error error;
    float *cells = calloc((size_t)(2 * heads * len), sizeof *cells);
    if (cells == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    pe_tensor_bhsd(&x, PE_F32, cells, 1, heads, 1, len);
    pe_tensor_bhsd(&y, PE_F32, cells + heads * len, 1, heads, 1, len);
    cli_panel *costs = cli_figure_panel(figure, CLI_LINES);
    cli_panel *softmax = cli_figure_panel(figure, CLI_HEAT);
    costs->title = "bias";
    softmax->title = "softmax";
    int status = CLI_DONE;
    if (pe_bias_softmax(bias->plan, 1, PE_MASK_CAUSAL, &q_at, &k_at, &x, &y, &error) !=
            PE_OK ||
        pe_bias_fill(bias->plan, &q_at, &k_at, &x, &error) != PE_OK)
        status = cli_fail(CLI_FAILED, "%s", error.message);
    if (status == CLI_DONE)
        status = fill_bias(costs, cells, heads, len);
    if (status == CLI_DONE)
        status = fill_softmax(softmax, cells + heads * len, heads, len);
    free(cells);
    return status;
}

int cli_plot_alibi(const cli_plot_args *args, cli_figure *figure)
{
    cli_bias bias;
    cli_range range;
    char source[CLI_NAME_SIZE];
    int status = cli_plot_range(&range, args, (cli_range){0, 128}, 0, MAX_LEN);
    if (status == CLI_DONE && (range.begin != 0 || range.end < 3))
        status = cli_fail(CLI_USAGE,
                          "--positions is %lld:%lld, must be 0:N with N at "
                          "least 3: all distances of one query",
                          (long long)range.begin, (long long)range.end);
    if (status == CLI_DONE)
        status = open_alibi(&bias, args, DEFAULT_HEADS);
    if (status != CLI_DONE)
        return status;
    if (range.end > MAX_CELLS / bias.spec.num_heads)
        status = cli_fail(CLI_USAGE,
                          "--positions spans %lld for %d heads, at most %d "
                          "cells",
                          (long long)range.end, (int)bias.spec.num_heads, MAX_CELLS);
    if (status == CLI_DONE)
        status = fill_alibi(figure, &bias, range.end);
    name_source(source, sizeof source, &bias);
    (void)snprintf(figure->title, sizeof figure->title,
                   "ALiBi: bias and attention of one query: %s", source);
    (void)snprintf(figure->note, sizeof figure->note,
                   "The query is the last of %lld tokens and all scores are 0, so that "
                   "the softmax shows the bias alone.  Weights below 1e-6 are drawn as "
                   "1e-6.",
                   (long long)range.end);
    cli_bias_close(&bias);
    return status;
}

/* ----------------------------------------------------------------- slopes --- */

static int add_slopes(cli_panel *panel, const cli_bias *bias, const char *name)
{
    const float *slopes = pe_bias_slopes(bias->plan);
    cli_series *series = cli_panel_series(panel, bias->spec.num_heads);
    if (series == NULL)
        return CLI_FAILED;
    series->is_dotted = 1;
    (void)snprintf(series->name, sizeof series->name, "%s", name);
    for (int64_t h = 0; h < series->count; h++) {
        series->x[h] = (double)h;
        series->y[h] = (double)slopes[h];
        panel->y.min = fmin(panel->y.min, series->y[h]);
    }
    return CLI_DONE;
}

int cli_plot_slopes(const cli_plot_args *args, cli_figure *figure)
{
    cli_bias bias, geometric;
    cli_bias_args recipe = CLI_BIAS_DEFAULTS;
    char source[CLI_NAME_SIZE], count[24];
    int status = open_alibi(&bias, args, 12);
    if (status != CLI_DONE)
        return status;
    cli_panel *panel = cli_figure_panel(figure, CLI_LINES);
    panel->x = (cli_axis){.label = "head",
                          .column = "head",
                          .is_whole = 1,
                          .min = -0.5,
                          .max = bias.spec.num_heads - 0.5};
    panel->y = (cli_axis){.label = "slope (score per token)",
                          .column = "slope",
                          .min = 1,
                          .max = 1,
                          .log_base = 2,
                          .digits = 9};
    status = add_slopes(panel, &bias, "published recipe");
    if (status == CLI_DONE && args->model == NULL) {
        recipe.recipe = PE_SLOPES_GEOMETRIC;
        (void)snprintf(count, sizeof count, "%d", (int)bias.spec.num_heads);
        status = cli_bias_open(&geometric, count, &recipe);
        if (status == CLI_DONE) {
            status = add_slopes(panel, &geometric, "geometric recipe");
            cli_bias_close(&geometric);
        }
    } else if (status == CLI_DONE) {
        (void)snprintf(panel->series[0].name, CLI_NAME_SIZE, "slopes");
    }
    panel->y.min = pow(2, floor(log2(panel->y.min)));
    name_source(source, sizeof source, &bias);
    (void)snprintf(figure->title, sizeof figure->title, "ALiBi slopes: %s", source);
    (void)snprintf(figure->note, sizeof figure->note,
                   "A key loses slope times distance from its score.  The two recipes "
                   "agree when the number of heads is a power of two.");
    if (args->model != NULL)
        (void)snprintf(figure->note, sizeof figure->note,
                       "A key loses slope times distance from its score.");
    cli_bias_close(&bias);
    return status;
}
