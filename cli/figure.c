/* SPDX-License-Identifier: MIT
 *
 * figure.c - the panels and series of a picture
 */
#include "figure.h"

#include <math.h>
#include <stdlib.h>

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

/* Bytes of the well-formed sequence that text begins with (RFC 3629); 0: none. */
static size_t sequence_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80                      ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                    : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                    : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                        : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    const int is_overlong =
        (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    const int is_outside =
        (text[0] == 0xed && text[1] >= 0xa0) || (text[0] == 0xf4 && text[1] >= 0x90);
    return length > 1 && (is_overlong || is_outside) ? 0 : length;
}

void cli_clean_text(char *text)
{
    unsigned char *c = (unsigned char *)text;
    while (*c != '\0') {
        size_t length = sequence_length(c);
        const int is_control =
            *c < 0x20 || *c == 0x7f || (*c == 0xc2 && length == 2 && c[1] < 0xa0);
        if (length == 0 || is_control)
            *c++ = '?';
        else
            c += length;
    }
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
