/* SPDX-License-Identifier: MIT
 *
 * figure.c - the panels and series of a picture
 */
#include "figure.h"

#include "terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cli_panel *cli_figure_panel(cli_figure *figure, cli_panel_type type)
{
    cli_panel *panel = &figure->panels[figure->num_panels++];
    *panel = (cli_panel){.type = type};
    return panel;
}

cli_series *cli_panel_series(cli_panel *panel, int64_t count)
{
    cli_series *series = &panel->series[panel->num_series++];
    *series = (cli_series){.count = count};
    series->x = calloc((size_t)count, sizeof *series->x);
    series->y = calloc((size_t)count, sizeof *series->y);
    if (series->x != NULL && series->y != NULL)
        return series;
    (void)cli_fail(CLI_FAILED, "out of memory");
    return NULL;
}

int cli_series_spread(cli_series *series)
{
    series->low = calloc((size_t)series->count, sizeof *series->low);
    series->high = calloc((size_t)series->count, sizeof *series->high);
    if (series->low != NULL && series->high != NULL)
        return CLI_DONE;
    return cli_fail(CLI_FAILED, "out of memory");
}

int cli_panel_cells(cli_panel *panel, int64_t rows, int64_t cols, int has_row_names,
                    int has_col_names)
{
    panel->rows = rows;
    panel->cols = cols;
    panel->values = calloc((size_t)(rows * cols), sizeof *panel->values);
    if (has_row_names)
        panel->row_names = calloc((size_t)rows, sizeof *panel->row_names);
    if (has_col_names)
        panel->col_names = calloc((size_t)cols, sizeof *panel->col_names);
    if (panel->values == NULL || (has_row_names && panel->row_names == NULL) ||
        (has_col_names && panel->col_names == NULL))
        return cli_fail(CLI_FAILED, "out of memory");
    return CLI_DONE;
}

void cli_figure_release(cli_figure *figure)
{
    for (int32_t p = 0; p < figure->num_panels; p++) {
        cli_panel *panel = &figure->panels[p];
        for (int32_t s = 0; s < panel->num_series; s++) {
            free(panel->series[s].x);
            free(panel->series[s].y);
            free(panel->series[s].low);
            free(panel->series[s].high);
        }
        free(panel->values);
        free(panel->row_names);
        free(panel->col_names);
    }
    *figure = (cli_figure){.num_panels = 0};
}

void cli_clean_text(char *text)
{
    char *to = text;
    size_t bytes;
    for (const char *end = text + strlen(text); text < end; text += bytes) {
        uint32_t code;
        if (cli_is_unsafe(text, (size_t)(end - text), &code, &bytes)) {
            *to++ = '?';
        } else {
            memmove(to, text, bytes);
            to += bytes;
        }
    }
    *to = '\0';
}

double cli_axis_place(const cli_axis *axis, double value)
{
    if (axis->log_base == 0)
        return axis->max > axis->min ? (value - axis->min) / (axis->max - axis->min)
                                     : 0.5;
    if (value <= 0)
        return -1e9;
    return axis->max > axis->min ? log(value / axis->min) / log(axis->max / axis->min)
                                 : 0.5;
}
