/* SPDX-License-Identifier: MIT
 *
 * canvas_svg.c - figures as SVG: the page, axes, lines and points
 *
 * Lines and text are vectors, heat maps PNG inside.  Colours are classes, so that the
 * reader's preference for light or dark holds.  Coordinates have one decimal. */
#include "canvas_svg.h"

#include "canvas.h"
#include "palette.h"
#include "terminal.h"

#include <string.h>

enum {
    WIDTH = 900,
    LEFT = 96,
    RIGHT = 216,
    TOP = 44,
    NOTE_CHARS = 128,
    NOTE_LINE = 17,
    PANEL_HEAD = 26,
    PANEL_FOOT = 62,
    LINES_HEIGHT = 300,
    KEY_LINE = 20,
    CHAR_WIDTH = 7
};

static const char style[] =
    "<style>\n"
    "svg{background:#ffffff}\n"
    "text{font:12px system-ui,-apple-system,'DejaVu Sans',sans-serif;fill:#24292f}\n"
    ".title{font-size:16px;font-weight:600}\n"
    ".head{font-size:13px;font-weight:600}\n"
    ".note{fill:#57606a}\n"
    ".axis{stroke:#57606a;fill:none}\n"
    ".grid{stroke:#d8dee4;fill:none}\n"
    ".mark{stroke:#24292f;stroke-dasharray:5 4;fill:none}\n"
    ".line{fill:none;stroke-width:1.5;stroke-linejoin:round}\n"
    ".dial{stroke:#8c959f;fill:none}\n"
    ".hand{stroke-width:2.5;stroke-linecap:round}\n"
    "image{image-rendering:optimizeSpeed;image-rendering:pixelated}\n";

static const char dark_style[] = "@media (prefers-color-scheme:dark){\n"
                                 "svg{background:#0d1117}\n"
                                 "text{fill:#e6edf3}\n"
                                 ".note{fill:#9da7b1}\n"
                                 ".axis{stroke:#9da7b1}\n"
                                 ".grid{stroke:#2b323b}\n"
                                 ".mark{stroke:#e6edf3}\n"
                                 ".dial{stroke:#6e7681}\n";

/* XML has neither control characters nor U+FFFE and U+FFFF, however they are written:
 * '?' stands for them. */
static void put_escaped(FILE *out, const char *text)
{
    size_t bytes;
    for (const char *end = text + strlen(text); text < end; text += bytes) {
        uint32_t code;
        if (cli_is_unsafe(text, (size_t)(end - text), &code, &bytes) ||
            code == 0xfffe || code == 0xffff)
            (void)fputc('?', out);
        else if (*text == '&')
            (void)fputs("&amp;", out);
        else if (*text == '<')
            (void)fputs("&lt;", out);
        else if (*text == '>')
            (void)fputs("&gt;", out);
        else
            (void)fwrite(text, 1, bytes, out);
    }
}

void cli_svg_text(FILE *out, double x, double y, const char *style_name,
                  const char *anchor, const char *text)
{
    (void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">",
                  x, y, style_name, anchor);
    put_escaped(out, text);
    (void)fputs("</text>\n", out);
}

void cli_svg_line(FILE *out, double x1, double y1, double x2, double y2,
                  const char *style_name)
{
    (void)fprintf(out,
                  "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                  "class=\"%s\"/>\n",
                  x1, y1, x2, y2, style_name);
}

static void put_style(FILE *out)
{
    (void)fputs(style, out);
    for (int i = 0; i < CLI_MAX_SERIES; i++)
        (void)fprintf(out, ".s%d{stroke:#%06x}.d%d{fill:#%06x}\n", i,
                      (unsigned)cli_series_light[i], i, (unsigned)cli_series_light[i]);
    (void)fputs(dark_style, out);
    for (int i = 0; i < CLI_MAX_SERIES; i++)
        (void)fprintf(out, ".s%d{stroke:#%06x}.d%d{fill:#%06x}\n", i,
                      (unsigned)cli_series_dark[i], i, (unsigned)cli_series_dark[i]);
    (void)fputs("}\n</style>\n", out);
}

/* Breaks the note between words; out NULL: only counts its lines. */
static int put_note(FILE *out, const char *note)
{
    int lines = 0;
    while (*note != '\0') {
        size_t length = strlen(note);
        if (length > NOTE_CHARS) {
            length = NOTE_CHARS;
            while (length > 1 && note[length] != ' ')
                length--;
        }
        char line[NOTE_CHARS + 1];
        (void)snprintf(line, sizeof line, "%.*s", (int)length, note);
        if (out != NULL)
            cli_svg_text(out, 16, TOP + 4 + NOTE_LINE * lines, "note", "start", line);
        lines++;
        note += length + (note[length] == ' ');
    }
    return lines;
}

static cli_box panel_box(const cli_panel *panel, double top)
{
    cli_box box = {.left = LEFT, .top = top + PANEL_HEAD, .height = LINES_HEIGHT};
    for (int64_t r = 0; panel->row_names != NULL && r < panel->rows; r++) {
        const double wide = (double)strlen(panel->row_names[r]) * CHAR_WIDTH + 24;
        box.left = wide > box.left ? wide : box.left;
    }
    box.width = WIDTH - RIGHT - box.left;
    if (panel->type == CLI_DIALS)
        box.height = box.width / (double)panel->cols * (double)panel->rows;
    else if (panel->type == CLI_HEAT && panel->row_names != NULL)
        box.height = 34 * (double)panel->rows;
    return box;
}

static void put_x_axis(FILE *out, const cli_panel *panel, const cli_box *box)
{
    cli_tick ticks[CLI_MAX_TICKS];
    const double bottom = box->top + box->height;
    const int count = cli_axis_ticks(&panel->x, 9, ticks);
    for (int i = 0; i < count; i++) {
        double place = cli_axis_place(&panel->x, ticks[i].at);
        if (panel->type == CLI_HEAT)
            place = (ticks[i].at - panel->x.min + 0.5) / (double)panel->cols;
        const double x = box->left + place * box->width;
        if (panel->type == CLI_LINES)
            cli_svg_line(out, x, box->top, x, bottom, "grid");
        cli_svg_line(out, x, bottom, x, bottom + 5, "axis");
        cli_svg_text(out, x, bottom + 19, "tick", "middle", ticks[i].text);
    }
    cli_svg_text(out, box->left + box->width / 2, bottom + 40, "label", "middle",
                 panel->x.label);
}

static void put_y_axis(FILE *out, const cli_panel *panel, const cli_box *box)
{
    cli_tick ticks[CLI_MAX_TICKS];
    const int count =
        panel->row_names != NULL ? 0 : cli_axis_ticks(&panel->y, 7, ticks);
    for (int i = 0; i < count; i++) {
        double place = 1 - cli_axis_place(&panel->y, ticks[i].at);
        if (panel->type == CLI_HEAT)
            place = (ticks[i].at - panel->y.min + 0.5) / (double)panel->rows;
        const double y = box->top + place * box->height;
        if (panel->type == CLI_LINES)
            cli_svg_line(out, box->left, y, box->left + box->width, y, "grid");
        cli_svg_line(out, box->left - 5, y, box->left, y, "axis");
        cli_svg_text(out, box->left - 9, y + 4, "tick", "end", ticks[i].text);
    }
    for (int64_t r = 0; panel->row_names != NULL && r < panel->rows; r++)
        cli_svg_text(out, box->left - 10,
                     box->top + ((double)r + 0.5) * box->height / (double)panel->rows +
                         4,
                     "tick", "end", panel->row_names[r]);
    if (panel->row_names != NULL)
        return;
    (void)fprintf(out, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">\n", 26.0,
                  box->top + box->height / 2);
    cli_svg_text(out, 0, 0, "label", "middle", panel->y.label);
    (void)fputs("</g>\n", out);
}

static void put_frame(FILE *out, const cli_box *box)
{
    (void)fprintf(out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "class=\"axis\"/>\n",
                  box->left, box->top, box->width, box->height);
}

static double place_x(const cli_panel *panel, const cli_box *box, double x)
{
    return box->left + cli_axis_place(&panel->x, x) * box->width;
}

/* Values off the panel stand at its edge. */
static double place_y(const cli_panel *panel, const cli_box *box, double y)
{
    const double place = cli_axis_place(&panel->y, y);
    return box->top + (1 - (place < 0 ? 0 : place > 1 ? 1 : place)) * box->height;
}

static void put_spread(FILE *out, const cli_panel *panel, const cli_box *box, int s)
{
    const cli_series *series = &panel->series[s];
    if (series->low == NULL)
        return;
    (void)fprintf(out, "<polygon class=\"d%d\" fill-opacity=\"0.18\" points=\"", s);
    for (int64_t i = 0; i < 2 * series->count; i++) {
        const int is_back = i >= series->count;
        const int64_t at = is_back ? 2 * series->count - 1 - i : i;
        const double y = is_back ? series->high[at] : series->low[at];
        (void)fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "",
                      place_x(panel, box, series->x[at]), place_y(panel, box, y));
    }
    (void)fputs("\"/>\n", out);
}

static void put_series(FILE *out, const cli_panel *panel, const cli_box *box, int s)
{
    const cli_series *series = &panel->series[s];
    if (!series->is_dotted)
        (void)fprintf(out, "<polyline class=\"line s%d\" points=\"", s);
    for (int64_t i = 0; i < series->count; i++) {
        const double x = place_x(panel, box, series->x[i]);
        const double y = place_y(panel, box, series->y[i]);
        if (series->is_dotted)
            (void)fprintf(out,
                          "<circle class=\"d%d\" cx=\"%.1f\" cy=\"%.1f\" "
                          "r=\"%d\"/>\n",
                          s, x, y, s == 0 ? 5 : 3);
        else
            (void)fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "", x, y);
    }
    if (!series->is_dotted)
        (void)fputs("\"/>\n", out);
}

static void put_key(FILE *out, const cli_panel *panel, const cli_box *box)
{
    const double x = box->left + box->width + 16;
    for (int s = 0; s < panel->num_series; s++) {
        const double y = box->top + 10 + KEY_LINE * s;
        char name[16];
        (void)snprintf(name, sizeof name, "line s%d", s);
        if (panel->series[s].is_dotted)
            (void)fprintf(out,
                          "<circle class=\"d%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                          s, x + 9, y);
        else
            cli_svg_line(out, x, y, x + 18, y, name);
        cli_svg_text(out, x + 25, y + 4, "key", "start", panel->series[s].name);
    }
}

static void put_mark(FILE *out, const cli_panel *panel, const cli_box *box)
{
    const double place = cli_axis_place(&panel->x, panel->mark);
    const double x = box->left + place * box->width;
    const double key = box->left + box->width + 16;
    const double y = box->top + 10 + KEY_LINE * panel->num_series;
    if (panel->mark == 0 || place < 0 || place > 1)
        return;
    cli_svg_line(out, x, box->top, x, box->top + box->height, "mark");
    cli_svg_line(out, key, y, key + 18, y, "mark");
    cli_svg_text(out, key + 25, y + 4, "key", "start", panel->mark_name);
}

static int put_panel(FILE *out, const cli_panel *panel, const cli_box *box)
{
    if (panel->title != NULL)
        cli_svg_text(out, box->left, box->top - 8, "head", "start", panel->title);
    if (panel->type == CLI_DIALS) {
        cli_svg_dials(out, panel, box);
        put_y_axis(out, panel, box);
        return CLI_DONE;
    }
    put_x_axis(out, panel, box);
    put_y_axis(out, panel, box);
    int status = CLI_DONE;
    if (panel->type == CLI_HEAT)
        status = cli_svg_heat(out, panel, box);
    for (int s = 0; s < panel->num_series; s++)
        put_spread(out, panel, box, s);
    for (int s = 0; s < panel->num_series; s++)
        put_series(out, panel, box, s);
    put_frame(out, box);
    put_key(out, panel, box);
    put_mark(out, panel, box);
    return status;
}

int cli_figure_svg(const cli_figure *figure, FILE *out)
{
    cli_box boxes[CLI_MAX_PANELS];
    double top = TOP + NOTE_LINE * put_note(NULL, figure->note);
    for (int32_t p = 0; p < figure->num_panels; p++) {
        boxes[p] = panel_box(&figure->panels[p], top);
        top = boxes[p].top + boxes[p].height + PANEL_FOOT;
    }
    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 %d %.0f\" "
        "width=\"%d\" height=\"%.0f\" role=\"img\">\n<title>",
        WIDTH, top, WIDTH, top);
    put_escaped(out, figure->title);
    (void)fputs("</title>\n", out);
    put_style(out);
    cli_svg_text(out, 16, 26, "title", "start", figure->title);
    (void)put_note(out, figure->note);
    int status = CLI_DONE;
    for (int32_t p = 0; p < figure->num_panels && status == CLI_DONE; p++)
        status = put_panel(out, &figure->panels[p], &boxes[p]);
    (void)fputs("</svg>\n", out);
    return status;
}
