/* SPDX-License-Identifier: MIT
 *
 * canvas_csv.c - the numbers of a figure, a line each
 *
 * One panel has columns of its own names; several share panel, series, x and y. */
#include "canvas.h"

#include "report.h"

#include <string.h>

static const char *number(cli_number *out, double value, int32_t digits)
{
    if (digits == 0)
        return cli_double(out, value);
    (void)snprintf(out->text, sizeof out->text, "%.*g", (int)digits, value);
    return out->text;
}

void cli_csv_text(FILE *out, const char *text)
{
    const int is_quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (is_quoted)
        (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    if (is_quoted)
        (void)fputc('"', out);
}

static void put_series(const cli_panel *panel, const char *lead, FILE *out)
{
    cli_number x, y;
    for (int32_t s = 0; s < panel->num_series; s++)
        for (int64_t i = 0; i < panel->series[s].count; i++) {
            (void)fputs(lead, out);
            cli_csv_text(out, panel->series[s].name);
            (void)fprintf(out, ",%s,%s\n",
                          number(&x, panel->series[s].x[i], panel->x.digits),
                          number(&y, panel->series[s].y[i], panel->y.digits));
        }
}

static void put_index(FILE *out, char (*names)[CLI_NAME_SIZE], const cli_axis *axis,
                      int64_t i)
{
    cli_number place;
    if (names != NULL)
        cli_csv_text(out, names[i]);
    else
        (void)fputs(cli_double(&place, axis->min + (double)i), out);
}

static void put_cells(const cli_panel *panel, const char *lead, FILE *out)
{
    cli_number value;
    for (int64_t r = 0; r < panel->rows; r++)
        for (int64_t c = 0; c < panel->cols; c++) {
            const double v = panel->values[r * panel->cols + c];
            (void)fputs(lead, out);
            put_index(out, panel->row_names, &panel->y, r);
            (void)fputc(',', out);
            put_index(out, panel->col_names, &panel->x, c);
            (void)fputc(',', out);
            if (panel->categories == NULL)
                (void)fputs(number(&value, v, panel->value.digits), out);
            else if (v >= 0)
                cli_csv_text(out, panel->categories[(int)v]);
            (void)fputc('\n', out);
        }
}

void cli_figure_csv(const cli_figure *figure, FILE *out)
{
    const cli_panel *first = &figure->panels[0];
    if (figure->num_panels > 1)
        (void)fputs("panel,series,x,y\n", out);
    else if (first->type == CLI_LINES)
        (void)fprintf(out, "series,%s,%s\n", first->x.column, first->y.column);
    else
        (void)fprintf(out, "%s,%s,%s\n", first->y.column, first->x.column,
                      first->value.column);
    for (int32_t p = 0; p < figure->num_panels; p++) {
        const cli_panel *panel = &figure->panels[p];
        char lead[CLI_NAME_SIZE] = "";
        if (figure->num_panels > 1)
            (void)snprintf(lead, sizeof lead, "%s,", panel->title);
        if (panel->type == CLI_LINES)
            put_series(panel, lead, out);
        else
            put_cells(panel, lead, out);
    }
}
