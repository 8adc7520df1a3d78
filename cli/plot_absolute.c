/* SPDX-License-Identifier: MIT
 *
 * plot_absolute.c - posenc plot table and waves: sinusoids over positions
 */
#include "plot.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_CELLS = 1 << 22, NUM_WAVES = 4 };

static const double two_pi = 6.283185307179586;

typedef struct sinusoids {
    pe_sinusoidal_spec spec;
    cli_model model;
    cli_range range;
    float *rows; /* [range][model_dim] */
    char name[CLI_NAME_SIZE];
} sinusoids;

static int read_spec(sinusoids *out, const cli_plot_args *args)
{
    pe_error error;
    cli_number base;
    out->spec = (pe_sinusoidal_spec){.struct_size = sizeof out->spec};
    if (args->model == NULL) {
        out->spec.order = PE_SIN_COS_INTERLEAVED;
        out->spec.model_dim = args->dim ? (int32_t)args->dim : 64;
        out->spec.base = args->base != 0 ? args->base : 1e4;
        (void)snprintf(out->name, sizeof out->name, "model_dim %d, base %s",
                       (int)out->spec.model_dim, cli_double(&base, out->spec.base));
        return CLI_DONE;
    }
    const int status = cli_model_open(&out->model, args->model, 0);
    if (status != CLI_DONE)
        return status;
    (void)snprintf(out->name, sizeof out->name, "%s", out->model.name);
    if (pe_model_sinusoidal_spec(out->model.model, &out->spec, &error) != PE_OK)
        return cli_fail_with(out->model.name, &error);
    if (out->spec.num_axes > 1)
        return cli_fail(CLI_FAILED, "%s has %d position axes, must have one here",
                        out->model.name, (int)out->spec.num_axes);
    return CLI_DONE;
}

static void close_sinusoids(sinusoids *s)
{
    cli_model_close(&s->model);
    free(s->rows);
}

static int open_sinusoids(sinusoids *out, const cli_plot_args *args)
{
    pe_absolute *plan = NULL;
    pe_tensor y;
    pe_error error;
    *out = (sinusoids){.rows = NULL};
    int status =
        cli_plot_range(&out->range, args, (cli_range){0, 64}, INT64_MIN, 1 << 16);
    if (status == CLI_DONE)
        status = read_spec(out, args);
    const int64_t rows = out->range.end - out->range.begin;
    const int64_t dim = out->spec.model_dim;
    if (args->deinterleave)
        out->spec.order = PE_SIN_COS_HALVES;
    out->spec.angles = args->rope.angles;
    if (status == CLI_DONE && dim > 0 && rows > MAX_CELLS / dim)
        status = cli_fail(CLI_USAGE,
                          "--positions spans %lld rows of %lld channels, at most %d "
                          "cells",
                          (long long)rows, (long long)dim, MAX_CELLS);
    if (status == CLI_DONE &&
        pe_sinusoidal_create(&plan, &out->spec, NULL, &error) != PE_OK)
        status = cli_fail(CLI_USAGE, "%s", error.message);
    if (status == CLI_DONE &&
        (out->rows = malloc((size_t)(rows * dim) * sizeof *out->rows)) == NULL)
        status = cli_fail(CLI_FAILED, "out of memory");
    if (status == CLI_DONE) {
        const pe_positions at = {.start = out->range.begin};
        pe_tensor_bshd(&y, PE_F32, out->rows, 1, rows, 1, dim);
        if (pe_absolute_fill(plan, &at, &y, &error) != PE_OK)
            status = cli_fail_with("--positions", &error);
    }
    pe_absolute_destroy(plan);
    return status;
}

static const char *order_name(pe_sinusoid_order order)
{
    return order == PE_SIN_COS_INTERLEAVED ? "sines and cosines in turns"
           : order == PE_SIN_COS_HALVES    ? "sines, then cosines"
                                           : "cosines, then sines";
}

int cli_plot_table(const cli_plot_args *args, cli_figure *figure)
{
    sinusoids s;
    int status = open_sinusoids(&s, args);
    if (status == CLI_DONE) {
        const int64_t rows = s.range.end - s.range.begin, dim = s.spec.model_dim;
        cli_panel *panel = cli_figure_panel(figure, CLI_HEAT);
        panel->x = (cli_axis){.label = "channel",
                              .column = "channel",
                              .is_whole = 1,
                              .max = (double)dim - 1};
        panel->y = (cli_axis){.label = "position (tokens)",
                              .column = "position",
                              .is_whole = 1,
                              .min = (double)s.range.begin,
                              .max = (double)s.range.end - 1};
        double largest = 0;
        for (int64_t i = 0; i < rows * dim; i++)
            largest = fmax(largest, fabs((double)s.rows[i]));
        largest = largest <= 1 ? 1 : largest;
        panel->value = (cli_axis){.label = "value",
                                  .column = "value",
                                  .min = -largest,
                                  .max = largest,
                                  .digits = 9};
        panel->colours = CLI_DIVERGING;
        status = cli_panel_cells(panel, rows, dim, 0, 0);
        for (int64_t i = 0; i < rows * dim && status == CLI_DONE; i++)
            panel->values[i] = (double)s.rows[i];
        (void)snprintf(figure->title, sizeof figure->title,
                       "Sinusoidal position table: %s", s.name);
        (void)snprintf(figure->note, sizeof figure->note,
                       "One row is what is added to the token at that position.  "
                       "Channels: %s.",
                       order_name(s.spec.order));
    }
    close_sinusoids(&s);
    return status;
}

/* The channel of the sine of a pair. */
static int64_t sine_channel(const pe_sinusoidal_spec *spec, int64_t pair)
{
    const int64_t half = spec->model_dim / 2;
    return spec->order == PE_SIN_COS_INTERLEAVED ? 2 * pair
           : spec->order == PE_SIN_COS_HALVES    ? pair
                                                 : half + pair;
}

static int fill_wave(const sinusoids *s, cli_panel *panel, int64_t pair)
{
    const int64_t channel = sine_channel(&s->spec, pair), dim = s->spec.model_dim;
    const double half = (double)(dim / 2) - s->spec.downscale_freq_shift;
    const double base = s->spec.base != 0 ? s->spec.base : 1e4;
    const double scale = s->spec.position_scale != 0 ? s->spec.position_scale : 1;
    cli_series *series = cli_panel_series(panel, s->range.end - s->range.begin);
    if (series == NULL)
        return CLI_FAILED;
    (void)snprintf(series->name, sizeof series->name, "channel %lld (%.3g a turn)",
                   (long long)channel, two_pi / scale * pow(base, (double)pair / half));
    for (int64_t i = 0; i < series->count; i++) {
        series->x[i] = (double)(s->range.begin + i);
        series->y[i] = (double)s->rows[i * dim + channel];
        panel->y.max = fmax(panel->y.max, fabs(series->y[i]));
    }
    return CLI_DONE;
}

int cli_plot_waves(const cli_plot_args *args, cli_figure *figure)
{
    sinusoids s;
    int status = open_sinusoids(&s, args);
    if (status == CLI_DONE) {
        const int64_t half = s.spec.model_dim / 2;
        const int64_t count = half < NUM_WAVES ? half : NUM_WAVES;
        cli_panel *panel = cli_figure_panel(figure, CLI_LINES);
        panel->x = (cli_axis){.label = "position (tokens)",
                              .column = "position",
                              .is_whole = 1,
                              .min = (double)s.range.begin,
                              .max = (double)s.range.end - 1};
        panel->y =
            (cli_axis){.label = "value", .column = "value", .max = 1, .digits = 9};
        const int64_t step = half < 4 * count ? 1 : half / (2 * count);
        for (int64_t i = 0; i < count && status == CLI_DONE; i++)
            status = fill_wave(&s, panel, i * step);
        panel->y.min = -panel->y.max;
        (void)snprintf(figure->title, sizeof figure->title,
                       "Sinusoidal channels over positions: %s", s.name);
        (void)snprintf(figure->note, sizeof figure->note,
                       "Values at whole positions, joined by straight lines.  A turn "
                       "is counted in tokens.");
    }
    close_sinusoids(&s);
    return status;
}
