/* SPDX-License-Identifier: MIT
 *
 * lab_picture.c - the lab's picture: loss against length, and by position
 */
#include "lab_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double longest(const lab_results *results)
{
    double multiple, last = 0;
    for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++)
        last = multiple;
    return last;
}

static int has_mode(const lab_results *results, const char *method, const char *mode)
{
    for (int64_t i = 0; i < results->count; i++)
        if (strcmp(results->items[i].method, method) == 0 &&
            strcmp(results->items[i].mode, mode) == 0)
            return 1;
    return 0;
}

/* Whether list, separated by commas, has the name. */
static int is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    }
    return 0;
}

/* " a, b": what the user may choose of instead; method NULL: methods, else its modes. */
static void list_names(const lab_results *results, const char *method, char *out,
                       size_t size)
{
    int64_t count;
    const char *last = "";
    cli_lab_row *rows = cli_lab_rows(results, 0, &count);
    out[0] = '\0';
    for (int64_t i = 0; rows != NULL && i < count; i++) {
        const char *name = method == NULL ? rows[i].method : rows[i].mode;
        const size_t used = strlen(out);
        if (method == NULL ? strcmp(name, last) == 0
                           : strcmp(rows[i].method, method) != 0)
            continue;
        (void)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
        last = name;
    }
    free(rows);
}

int cli_lab_check_names(const lab_results *results, const char *method,
                        const char *modes)
{
    char names[600];
    const char *name;
    int is_there = 0, count = 0;
    for (int64_t m = 0; (name = lab_results_method(results, m)) != NULL; m++)
        is_there |= strcmp(name, method) == 0;
    list_names(results, is_there ? method : NULL, names, sizeof names);
    if (!is_there)
        return cli_fail(CLI_USAGE, "--method is '%s', must be one that has results: %s",
                        method, names[0] != '\0' ? names : "there are none");
    for (const char *at = modes; at != NULL; count++) {
        char mode[40];
        const size_t length = strcspn(at, ",");
        (void)snprintf(mode, sizeof mode, "%.*s", (int)length, at);
        if (length >= sizeof mode || !has_mode(results, method, mode))
            return cli_fail(CLI_USAGE, "--mode has '%.*s', must be of those of %s: %s",
                            (int)length, at, method, names);
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    if (count > CLI_MAX_SERIES)
        return cli_fail(CLI_USAGE, "--mode lists %d, must be at most %d", count,
                        CLI_MAX_SERIES);
    return CLI_DONE;
}

/* The rows that become lines; how many. */
static int choose(const lab_results *results, const char *method, const char *modes,
                  cli_lab_row out[CLI_MAX_SERIES])
{
    int64_t count;
    int chosen = 0;
    cli_lab_row *rows = cli_lab_rows(results, 0, &count);
    for (int64_t i = 0; i < count && chosen < CLI_MAX_SERIES; i++) {
        const char *plain =
            has_mode(results, rows[i].method, "clamp") ? "clamp" : "base";
        const int is_wanted =
            method == NULL ? strcmp(rows[i].mode, plain) == 0
                           : strcmp(rows[i].method, method) == 0 &&
                                 (modes == NULL || is_listed(modes, rows[i].mode));
        if (is_wanted)
            out[chosen++] = rows[i];
    }
    free(rows);
    return chosen;
}

static int add_losses(const lab_results *results, const cli_lab_row *row,
                      cli_panel *panel)
{
    double multiple;
    int64_t count = 0, n = 0;
    lab_mean mean;
    for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++) {
        lab_results_mean(results, row->method, row->mode, multiple, 0, &mean);
        count += mean.count > 0;
    }
    cli_series *series = cli_panel_series(panel, count);
    if (series == NULL || cli_series_spread(series) != CLI_DONE)
        return CLI_FAILED;
    for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++) {
        lab_results_mean(results, row->method, row->mode, multiple, 0, &mean);
        if (mean.count == 0)
            continue;
        series->x[n] = multiple * (double)results->settings.length;
        series->low[n] = mean.min;
        series->high[n] = mean.max;
        series->y[n++] = mean.mean;
        panel->y.min = fmin(panel->y.min, mean.min);
        panel->y.max = fmax(panel->y.max, mean.max);
    }
    return CLI_DONE;
}

static int add_positions(const lab_results *results, const cli_lab_row *row,
                         double multiple, cli_panel *panel)
{
    const int64_t blocks = (int64_t)multiple;
    const double length = (double)results->settings.length;
    double *values = calloc((size_t)blocks + 1, sizeof *values);
    cli_series *series = values != NULL ? cli_panel_series(panel, blocks) : NULL;
    if (series == NULL) {
        const int is_told = values != NULL;
        free(values);
        return is_told ? CLI_FAILED : cli_fail(CLI_FAILED, "out of memory");
    }
    if (lab_results_by_position(results, row->method, row->mode, multiple, blocks,
                                values) == 0)
        series->count = 0;
    for (int64_t b = 0; b < series->count; b++) {
        series->x[b] = ((double)b + 0.5) * length;
        series->y[b] = values[b];
        panel->y.min = fmin(panel->y.min, values[b]);
        panel->y.max = fmax(panel->y.max, values[b]);
    }
    free(values);
    return CLI_DONE;
}

static void name_series(cli_panel *panel, const cli_lab_row *row, const char *method)
{
    cli_series *series = &panel->series[panel->num_series - 1];
    if (method != NULL)
        (void)snprintf(series->name, sizeof series->name, "%.40s", row->mode);
    else if (strcmp(row->mode, "base") == 0)
        (void)snprintf(series->name, sizeof series->name, "%.40s", row->method);
    else
        (void)snprintf(series->name, sizeof series->name, "%.40s, %.16s", row->method,
                       row->mode);
}

/* Room above and below. */
static void pad(cli_axis *axis)
{
    const double room = 0.05 * (axis->max - axis->min);
    axis->min -= room > 0 ? room : 0.1;
    axis->max += room > 0 ? room : 0.1;
}

static void put_words(const lab_results *results, const char *method,
                      cli_figure *figure)
{
    const lab_settings *s = &results->settings;
    if (method == NULL)
        (void)snprintf(figure->title, sizeof figure->title,
                       "Trained on %lld tokens, read at more", (long long)s->length);
    else
        (void)snprintf(figure->title, sizeof figure->title,
                       "%.60s trained on %lld tokens, read at more in other ways",
                       method, (long long)s->length);
    (void)snprintf(figure->note, sizeof figure->note,
                   "%lld layers, width %lld, %lld steps on bytes of %s.  Above: mean "
                   "over windows that do not overlap, so long windows have fewer early "
                   "tokens; shaded: from the best seed to the worst.  Below: the same "
                   "by place in the longest window, %lld bytes to a point.",
                   (long long)s->layers, (long long)s->width, (long long)s->steps,
                   s->text, (long long)s->length);
    cli_clean_text(figure->title);
    cli_clean_text(figure->note);
}

int cli_lab_figure(const lab_results *results, const char *method, const char *modes,
                   cli_figure *figure)
{
    static const cli_axis loss = {.label = "loss (nats per byte)",
                                  .column = "nll",
                                  .min = INFINITY,
                                  .max = -INFINITY};
    const double length = (double)results->settings.length;
    const double multiple = longest(results);
    cli_lab_row rows[CLI_MAX_SERIES];
    const int count = choose(results, method, modes, rows);
    if (count == 0)
        return cli_fail(CLI_FAILED, "there are no results of %s to draw",
                        method != NULL ? method : "any method");
    put_words(results, method, figure);
    cli_panel *above = cli_figure_panel(figure, CLI_LINES);
    cli_panel *below = cli_figure_panel(figure, CLI_LINES);
    above->title = "loss against length";
    above->x = (cli_axis){.label = "tokens in a window (logarithmic)",
                          .column = "tokens",
                          .min = length * lab_results_multiple(results, 0),
                          .max = length * multiple,
                          .log_base = 2,
                          .is_whole = 1};
    above->y = below->y = loss;
    below->title = "loss by position in the longest window";
    below->x = (cli_axis){
        .label = "position (tokens)", .column = "position", .max = length * multiple};
    below->mark = multiple > 1 ? length : 0;
    (void)snprintf(below->mark_name, sizeof below->mark_name, "trained length");
    int status = CLI_DONE;
    for (int i = 0; i < count && status == CLI_DONE; i++) {
        status = add_losses(results, &rows[i], above);
        if (status == CLI_DONE)
            name_series(above, &rows[i], method);
        if (status == CLI_DONE)
            status = add_positions(results, &rows[i], multiple, below);
        if (status == CLI_DONE)
            name_series(below, &rows[i], method);
    }
    pad(&above->y);
    pad(&below->y);
    return status;
}
