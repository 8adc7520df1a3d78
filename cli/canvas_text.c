/* SPDX-License-Identifier: MIT
 *
 * canvas_text.c - figures as lines of a terminal
 *
 * A column of tick labels, a raster, the labels of x below, then the key.  Labels are
 * ASCII; only half blocks need UTF-8. */
#include "canvas.h"
#include "palette.h"
#include "raster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 9, /* columns of tick labels, and a space */
    MAX_LINES = 24,
    LINE_PANEL_LINES = 16,
    MAX_COLUMNS = 400,
    SCALE_CELLS = 20,
    FEW_ROWS = 12 /* a line each, also where two would fit */
};

static const uint32_t mark_colour = 0x909090;
static const char ramp[] = " .:-=+*#%@";

typedef struct text_panel {
    const cli_panel *panel;
    const cli_screen *screen;
    cli_raster raster;
    int32_t margin, columns, lines;
} text_panel;

/* Breaks between words at the width of the terminal. */
static void put_wrapped(const char *text, int32_t width, FILE *out)
{
    int32_t column = 0;
    while (*text != '\0') {
        const int32_t length = (int32_t)strcspn(text, " ");
        if (column > 0 && column + 1 + length > width) {
            (void)fputc('\n', out);
            column = 0;
        }
        column += fprintf(out, "%s%.*s", column > 0 ? " " : "", (int)length, text);
        text += length + (text[length] == ' ');
    }
    (void)fputc('\n', out);
}

static char series_letter(const cli_panel *panel, int s)
{
    return panel->num_series == 1 ? '*' : (char)('a' + s);
}

static void draw_lines(text_panel *t)
{
    const cli_panel *panel = t->panel;
    const int32_t right = t->raster.width - 1, bottom = t->raster.height - 1;
    const double mark = cli_axis_place(&panel->x, panel->mark);
    if (panel->mark != 0 && mark >= 0 && mark <= 1)
        cli_raster_line(&t->raster, mark * right, 0, mark * right, bottom,
                        (cli_pixel){mark_colour, '|'});
    for (int s = 0; s < panel->num_series; s++) {
        const cli_series *series = &panel->series[s];
        const cli_pixel ink = {cli_series_any[s], series_letter(panel, s)};
        double last_x = 0, last_y = 0;
        for (int64_t i = 0; i < series->count; i++) {
            const double x = cli_axis_place(&panel->x, series->x[i]) * right;
            double place = cli_axis_place(&panel->y, series->y[i]);
            place = place < 0 ? 0 : place > 1 ? 1 : place;
            const double y = (1 - place) * bottom;
            const int is_joined = i > 0 && !series->is_dotted;
            cli_raster_line(&t->raster, is_joined ? last_x : x, is_joined ? last_y : y,
                            x, y, ink);
            last_x = x;
            last_y = y;
        }
    }
}

/* The mean of the cells that a pixel covers, or for categories the first of them. */
static double cells_under(const text_panel *t, int32_t x, int32_t y)
{
    const cli_panel *p = t->panel;
    const int64_t c0 = x * p->cols / t->raster.width;
    const int64_t c1 = (x + 1) * p->cols / t->raster.width;
    const int64_t r0 = y * p->rows / t->raster.height;
    const int64_t r1 = (y + 1) * p->rows / t->raster.height;
    double sum = 0;
    int64_t count = 0;
    if (p->colours == CLI_CATEGORIES)
        return p->values[r0 * p->cols + c0];
    for (int64_t r = r0; r < (r1 > r0 ? r1 : r0 + 1); r++)
        for (int64_t c = c0; c < (c1 > c0 ? c1 : c0 + 1); c++, count++)
            sum += p->values[r * p->cols + c];
    return sum / (double)count;
}

static void draw_heat(text_panel *t)
{
    const cli_panel *panel = t->panel;
    for (int32_t y = 0; y < t->raster.height; y++)
        for (int32_t x = 0; x < t->raster.width; x++) {
            const int step = cli_colour_step(panel, cells_under(t, x, y));
            if (step < 0)
                continue;
            const char letter =
                panel->categories != NULL
                    ? panel->categories[step][0]
                    : ramp[step * (int)(sizeof ramp - 1) / CLI_NUM_COLOURS];
            cli_raster_set(
                &t->raster, x, y,
                (cli_pixel){cli_colour_of_step(panel->colours, step), letter});
        }
}

/* A pixel of a cell with two is about as high as wide, a whole cell twice as high. */
static void draw_dials(text_panel *t)
{
    const cli_panel *panel = t->panel;
    const double cell = (double)(t->columns / (int32_t)panel->cols);
    const double high = (double)t->raster.height / (double)panel->rows;
    const double radius = floor((cell - 2) / 2);
    const double squash = t->raster.per_cell == 2 ? 1 : 0.5;
    for (int64_t r = 0; r < panel->rows; r++)
        for (int64_t c = 0; c < panel->cols; c++) {
            const double angle = panel->values[r * panel->cols + c];
            const double x = (double)c * cell + radius;
            const double y = (double)r * high + radius * squash;
            for (int i = 0; i < 64; i++) {
                const double at = i * 6.283185307179586 / 64;
                const double dx = radius * cos(at), dy = radius * squash * sin(at);
                cli_raster_line(&t->raster, x + dx, y + dy, x + dx, y + dy,
                                (cli_pixel){0x808080, '.'});
            }
            cli_raster_line(&t->raster, x, y, x + radius * cos(angle),
                            y - radius * squash * sin(angle),
                            (cli_pixel){cli_series_any[0], '#'});
        }
}

/* Tick labels of y, each in the line where it stands. */
static void name_lines(const text_panel *t, char (*names)[CLI_NAME_SIZE])
{
    const cli_panel *panel = t->panel;
    cli_tick ticks[CLI_MAX_TICKS];
    if (panel->row_names != NULL) {
        for (int64_t r = 0; r < panel->rows; r++) {
            const int64_t line = (2 * r + 1) * t->lines / (2 * panel->rows);
            (void)snprintf(names[line], CLI_NAME_SIZE, "%s", panel->row_names[r]);
        }
        return;
    }
    const int count =
        cli_axis_ticks(&panel->y, t->lines / (panel->type == CLI_HEAT ? 2 : 3), ticks);
    for (int i = 0; i < count; i++) {
        const double place = cli_axis_place(&panel->y, ticks[i].at);
        long line = lround((1 - place) * (t->lines - 1));
        if (panel->type == CLI_HEAT)
            line =
                (long)((ticks[i].at - panel->y.min) * t->lines / (double)panel->rows);
        if (line >= 0 && line < t->lines)
            (void)snprintf(names[line], CLI_NAME_SIZE, "%s", ticks[i].text);
    }
}

/* Into a line of spaces; a label that would touch its neighbour is left out. */
static void place_label(char *line, int32_t columns, double at, const char *text)
{
    const int32_t length = (int32_t)strlen(text);
    int32_t begin = (int32_t)lround(at) - length / 2;
    begin = begin < 0 ? 0 : begin > columns - length ? columns - length : begin;
    for (int32_t i = begin - 1; i <= begin + length; i++)
        if (i >= 0 && i < columns && line[i] != ' ')
            return;
    if (begin >= 0)
        memcpy(line + begin, text, (size_t)length);
}

static void put_x_labels(const text_panel *t, FILE *out)
{
    const cli_panel *panel = t->panel;
    char line[MAX_COLUMNS + 1];
    cli_tick ticks[CLI_MAX_TICKS];
    memset(line, ' ', sizeof line);
    const int count = cli_axis_ticks(&panel->x, t->columns / 9, ticks);
    for (int i = 0; i < count; i++) {
        double at = cli_axis_place(&panel->x, ticks[i].at) * (t->columns - 1);
        if (panel->type == CLI_HEAT)
            at = (ticks[i].at - panel->x.min + 0.5) / (double)panel->cols * t->columns;
        place_label(line, t->columns, at, ticks[i].text);
    }
    (void)fprintf(out, "%*s%.*s\n", (int)t->margin, "", (int)t->columns, line);
    memset(line, ' ', sizeof line);
    place_label(line, t->columns, t->columns / 2.0, panel->x.label);
    (void)fprintf(out, "%*s%.*s\n", (int)t->margin, "", (int)t->columns, line);
}

static void put_key(const text_panel *t, FILE *out)
{
    const cli_panel *panel = t->panel;
    char letter[8];
    for (int s = 0; s < panel->num_series; s++) {
        (void)snprintf(letter, sizeof letter, "%c", series_letter(panel, s));
        cli_print_swatch(t->screen, cli_series_any[s],
                         t->raster.per_cell == 2 ? "\u2584\u2584" : letter, 2, out);
        (void)fprintf(out, " %s\n", panel->series[s].name);
    }
    if (panel->mark != 0) {
        cli_print_swatch(t->screen, mark_colour, "|", 2, out);
        (void)fprintf(out, " %s\n", panel->mark_name);
    }
    if (panel->type != CLI_HEAT)
        return;
    const int is_plain = t->screen->color == CLI_COLOR_NEVER;
    for (int i = 0; panel->categories != NULL && panel->categories[i] != NULL; i++) {
        (void)snprintf(letter, sizeof letter, "%c", panel->categories[i][0]);
        cli_print_swatch(t->screen, cli_colour_of_step(panel->colours, i), letter, 2,
                         out);
        (void)fprintf(out, " %s\n", panel->categories[i]);
    }
    if (panel->categories != NULL && panel->cols > t->columns)
        (void)fprintf(out, "(%lld columns do not fit: some are left out)\n",
                      (long long)panel->cols);
    if (panel->categories != NULL)
        return;
    char low[24], high[24];
    (void)snprintf(low, sizeof low, "%.6g", panel->value.min);
    (void)snprintf(high, sizeof high, "%.6g", panel->value.max);
    cli_tidy_number(low);
    (void)fprintf(out, "%s: %s ", panel->value.label, low);
    if (is_plain)
        (void)fputs(ramp, out);
    for (int i = 0; !is_plain && i < SCALE_CELLS; i++) {
        const int step = i * (CLI_NUM_COLOURS - 1) / (SCALE_CELLS - 1);
        cli_print_swatch(t->screen, cli_colour_of_step(panel->colours, step), "", 1,
                         out);
    }
    (void)fprintf(out, " %s\n", high);
}

/* "5: 1987" in two lines. */
static void put_dial_heads(const text_panel *t, FILE *out)
{
    const int32_t cell = t->columns / (int32_t)t->panel->cols;
    for (int line = 0; line < 2; line++) {
        (void)fprintf(out, "%*s ", (int)t->margin - 1, line == 0 ? "pair" : "turn");
        for (int64_t c = 0; c < t->panel->cols; c++) {
            const char *name = t->panel->col_names[c], *colon = strchr(name, ':');
            (void)fprintf(out, "%-*.*s", (int)cell,
                          line == 0 ? (int)(colon - name) : (int)cell - 1,
                          line == 0 ? name : colon + 2);
        }
        (void)fputc('\n', out);
    }
}

static void measure(text_panel *t)
{
    const cli_panel *panel = t->panel;
    t->margin = MARGIN;
    for (int64_t r = 0; panel->row_names != NULL && r < panel->rows; r++) {
        const int32_t wide = (int32_t)strlen(panel->row_names[r]) + 1;
        t->margin = wide > t->margin ? wide : t->margin;
    }
    t->columns = t->screen->width - t->margin - 1;
    t->lines = LINE_PANEL_LINES;
    if (panel->type == CLI_DIALS) {
        t->lines = (int32_t)panel->rows * (t->columns / (int32_t)panel->cols / 2);
        return;
    }
    if (panel->type != CLI_HEAT)
        return;
    if (panel->cols < t->columns)
        t->columns = t->columns / (int32_t)panel->cols * (int32_t)panel->cols;
    const int64_t per_line =
        t->screen->color != CLI_COLOR_NEVER && t->screen->has_blocks ? 2 : 1;
    t->lines = (int32_t)(panel->rows < MAX_LINES * per_line
                             ? (panel->rows + per_line - 1) / per_line
                             : MAX_LINES);
    if (panel->rows <= FEW_ROWS)
        t->lines = (int32_t)panel->rows;
}

/* Letters where colours are needed to tell things apart, and there are none. */
static int needs_letters(const text_panel *t)
{
    return t->screen->color == CLI_COLOR_NEVER &&
           (t->panel->type != CLI_LINES || t->panel->num_series > 1);
}

static int put_panel(const cli_panel *panel, const cli_screen *screen, FILE *out)
{
    char names[MAX_COLUMNS][CLI_NAME_SIZE] = {""};
    text_panel t = {.panel = panel, .screen = screen};
    measure(&t);
    t.raster = cli_raster_create(screen, t.columns, t.lines, needs_letters(&t));
    if (t.raster.pixels == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    name_lines(&t, names);
    if (panel->title != NULL)
        (void)fprintf(out, "\n%s\n", panel->title);
    if (panel->type == CLI_LINES) {
        draw_lines(&t);
    } else if (panel->type == CLI_HEAT) {
        draw_heat(&t);
    } else {
        draw_dials(&t);
        put_dial_heads(&t, out);
    }
    if (panel->row_names == NULL)
        (void)fprintf(out, "%s\n", panel->y.label);
    for (int32_t line = 0; line < t.lines; line++) {
        (void)fprintf(out, "%*s ", (int)t.margin - 1, names[line]);
        cli_raster_print(&t.raster, screen, line, out);
        (void)fputc('\n', out);
    }
    if (panel->type == CLI_DIALS)
        (void)fprintf(out, "%*s%s\n", (int)t.margin, "", panel->x.label);
    else
        put_x_labels(&t, out);
    put_key(&t, out);
    cli_raster_release(&t.raster);
    return CLI_DONE;
}

int cli_figure_text(const cli_figure *figure, const cli_screen *screen, FILE *out)
{
    int status = CLI_DONE;
    put_wrapped(figure->title, screen->width - 1, out);
    put_wrapped(figure->note, screen->width - 1, out);
    for (int32_t p = 0; p < figure->num_panels && status == CLI_DONE; p++)
        status = put_panel(&figure->panels[p], screen, out);
    return status;
}
