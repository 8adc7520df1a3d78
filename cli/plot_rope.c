/* SPDX-License-Identifier: MIT
 *
 * plot_rope.c - posenc plot dials and decay: a rotation turning, and its scores
 */
#include "plot.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>

static const double two_pi = 6.283185307179586;

static int open_default(cli_plot_rope *out, const cli_plot_args *args, int64_t dim)
{
    pe_error error;
    cli_number base;
    cli_rope *rope = &out->rope;
    if (args->rope.layer >= 0 || args->rope.role >= 0)
        return cli_fail(CLI_USAGE, "--layer and --role go with --model");
    rope->spec =
        (pe_rope_spec){.struct_size = sizeof rope->spec,
                       .head_dim = (int32_t)dim,
                       .angles = args->rope.angles,
                       .pairs = {.pairing = PE_HALF_SPLIT},
                       .freqs = {.rope_theta = args->base != 0 ? args->base : 1e4}};
    if (pe_rope_create(&rope->plan, &rope->spec, NULL, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    rope->info = pe_rope_get_info(rope->plan);
    (void)snprintf(out->name, sizeof out->name, "head_dim %d, rope_theta %s",
                   (int)rope->spec.head_dim,
                   cli_double(&base, rope->spec.freqs.rope_theta));
    return CLI_DONE;
}

int cli_plot_rope_open(cli_plot_rope *out, const cli_plot_args *args,
                       int64_t default_dim, int64_t last)
{
    *out = (cli_plot_rope){.name = ""};
    if (args->model == NULL)
        return open_default(out, args, args->dim ? args->dim : default_dim);
    int status = cli_model_open(&out->model, args->model, args->rope.seq_len);
    if (status != CLI_DONE)
        return status;
    (void)snprintf(out->name, sizeof out->name, "%s", out->model.name);
    status = cli_rope_open(&out->rope, &out->model, &args->rope, last, 0);
    if (status != CLI_DONE)
        cli_model_close(&out->model);
    return status;
}

void cli_plot_rope_close(cli_plot_rope *rope)
{
    cli_rope_close(&rope->rope);
    cli_model_close(&rope->model);
}

int cli_plot_range(cli_range *out, const cli_plot_args *args, cli_range otherwise,
                   int64_t lowest, int64_t most)
{
    *out = args->positions.end > args->positions.begin ? args->positions : otherwise;
    if (out->begin < lowest)
        return cli_fail(CLI_USAGE, "--positions begins at %lld, must be at least %lld",
                        (long long)out->begin, (long long)lowest);
    if (out->end > INT64_C(1) << 40 || out->begin < -(INT64_C(1) << 40) ||
        out->end - out->begin > most)
        return cli_fail(CLI_USAGE,
                        "--positions is %lld:%lld, must span at most %lld here, within "
                        "2^40 of 0",
                        (long long)out->begin, (long long)out->end, (long long)most);
    return CLI_DONE;
}

/* ------------------------------------------------------------------ dials --- */

enum { MAX_DIAL_ROWS = 12, MAX_DIAL_COLS = 8 };

/* Short: "2: 62.8", "5: 1987", "7: 19869", "63: 5.4e6". */
static void name_turn(char *out, int64_t pair, double tokens)
{
    const int exponent = (int)floor(log10(tokens));
    if (tokens < 99999)
        (void)snprintf(out, CLI_NAME_SIZE, "%lld: %.*f", (long long)pair,
                       tokens < 10    ? 2
                       : tokens < 100 ? 1
                                      : 0,
                       tokens);
    else if (tokens < 1e300)
        (void)snprintf(out, CLI_NAME_SIZE, "%lld: %.1fe%d", (long long)pair,
                       tokens / pow(10, exponent), exponent);
    else
        (void)snprintf(out, CLI_NAME_SIZE, "%lld: still", (long long)pair);
}

static int fill_dials(cli_figure *figure, const pe_rope_info *info, cli_range range)
{
    const int64_t pairs = info->num_pairs;
    const int64_t cols = pairs < MAX_DIAL_COLS ? pairs : MAX_DIAL_COLS;
    cli_panel *panel = cli_figure_panel(figure, CLI_DIALS);
    panel->x = (cli_axis){.label = "pair: tokens per turn", .column = "pair"};
    panel->y = (cli_axis){.label = "position", .column = "position"};
    panel->value = (cli_axis){.label = "angle (radians)", .column = "angle"};
    const int status = cli_panel_cells(panel, range.end - range.begin, cols, 1, 1);
    for (int64_t c = 0; c < cols && status == CLI_DONE; c++) {
        const int64_t pair = cols > 1 ? c * (pairs - 1) / (cols - 1) : 0;
        name_turn(panel->col_names[c], pair, two_pi / fabs(info->inv_freq[pair]));
        for (int64_t r = 0; r < panel->rows; r++) {
            (void)snprintf(panel->row_names[r], CLI_NAME_SIZE, "position %lld",
                           (long long)(range.begin + r));
            panel->values[r * cols + c] =
                (double)(range.begin + r) * info->inv_freq[pair];
        }
    }
    return status;
}

int cli_plot_dials(const cli_plot_args *args, cli_figure *figure)
{
    cli_plot_rope rope;
    cli_range range;
    int status =
        cli_plot_range(&range, args, (cli_range){0, 6}, INT64_MIN, MAX_DIAL_ROWS);
    if (status == CLI_DONE)
        status = cli_plot_rope_open(&rope, args, 16, range.end - 1);
    if (status != CLI_DONE)
        return status;
    status = fill_dials(figure, rope.rope.info, range);
    (void)snprintf(figure->title, sizeof figure->title, "RoPE pairs turning: %s",
                   rope.name);
    (void)snprintf(figure->note, sizeof figure->note,
                   "Each dial is the direction that a pair (1, 0) is turned to.%s",
                   rope.rope.info->num_pairs > MAX_DIAL_COLS
                       ? "  Eight of the pairs are shown."
                       : "");
    cli_plot_rope_close(&rope);
    return status;
}

/* ------------------------------------------------------------------ decay --- */

enum { MAX_DISTANCES = 1 << 17, BLOCK = 256 };

/* q . k for q = k = 1 at each distance: 2 cos(distance * inv_freq) for a pair, 1 for
 * an element outside the window; divided by its value at distance 0. */
static int fill_scores(const cli_rope *rope, cli_range range, cli_series *series)
{
    const pe_rope_info *info = rope->info;
    const int64_t pairs = info->num_pairs;
    const double factor = info->attention_factor;
    const double still = (double)(info->head_dim - info->rotary_dim);
    const double top = 2 * (double)pairs * factor * factor + still;
    float *cells = malloc((size_t)(2 * BLOCK * pairs) * sizeof *cells);
    if (cells == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    int status = CLI_DONE;
    for (int64_t d = range.begin; d < range.end && status == CLI_DONE; d += BLOCK) {
        pe_tensor cos, sin;
        pe_error error;
        const pe_positions at = {.start = d};
        const int64_t rows = range.end - d < BLOCK ? range.end - d : BLOCK;
        pe_tensor_bshd(&cos, PE_F32, cells, 1, rows, 1, pairs);
        pe_tensor_bshd(&sin, PE_F32, cells + BLOCK * pairs, 1, rows, 1, pairs);
        if (pe_rope_table(rope->plan, &at, &cos, &sin, &error) != PE_OK)
            status = cli_fail_with("--positions", &error);
        for (int64_t r = 0; r < rows && status == CLI_DONE; r++) {
            double sum = 0;
            for (int64_t i = 0; i < pairs; i++)
                sum += (double)cells[r * pairs + i];
            series->x[d - range.begin + r] = (double)(d + r);
            series->y[d - range.begin + r] = (2 * factor * sum + still) / top;
        }
    }
    free(cells);
    return status;
}

int cli_plot_decay(const cli_plot_args *args, cli_figure *figure)
{
    cli_plot_rope rope;
    cli_range range;
    int status =
        cli_plot_range(&range, args, (cli_range){0, 2048}, INT64_MIN, MAX_DISTANCES);
    if (status == CLI_DONE)
        status = cli_plot_rope_open(&rope, args, 128, range.end - 1);
    if (status != CLI_DONE)
        return status;
    cli_panel *panel = cli_figure_panel(figure, CLI_LINES);
    panel->x = (cli_axis){.label = "distance (tokens)",
                          .column = "distance",
                          .is_whole = 1,
                          .min = (double)range.begin,
                          .max = (double)range.end - 1};
    panel->y = (cli_axis){.label = "score, 1 at distance 0", .column = "score"};
    cli_series *series = cli_panel_series(panel, range.end - range.begin);
    status = series ? fill_scores(&rope.rope, range, series) : CLI_FAILED;
    if (status == CLI_DONE) {
        panel->y.max = 1;
        for (int64_t i = 0; i < series->count; i++) {
            panel->y.min = fmin(panel->y.min, series->y[i]);
            series->y[i] = round(series->y[i] * 1e9) / 1e9;
        }
        panel->y.min = floor(panel->y.min * 10) / 10;
        (void)snprintf(series->name, sizeof series->name, "q . k, q = k = 1");
    }
    (void)snprintf(figure->title, sizeof figure->title,
                   "RoPE score against distance: %s", rope.name);
    (void)snprintf(figure->note, sizeof figure->note,
                   "For q = k = 1 in every element, at every whole distance: an "
                   "example, not a law.  Other q and k give other curves, which need "
                   "not fall.");
    cli_plot_rope_close(&rope);
    return status;
}
