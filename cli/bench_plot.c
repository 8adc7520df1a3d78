/* SPDX-License-Identifier: MIT
 *
 * bench_plot.c - speed against size as SVG: a panel per kernel, the limits drawn in
 *
 * The rows of a kernel are those whose names differ in the number at their end.  Both
 * axes are logarithmic. */
#include "bench.h"

#include "file_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PANEL_WIDTH = 300,
    PANEL_HEIGHT = 220,
    LEFT = 46,
    TOP = 30,
    RIGHT = 12,
    BOTTOM = 36,
    COLUMNS = 3,
    MAX_PANELS = 48
};

typedef struct point {
    double size, speed; /* bytes; bytes per ns */
} point;

typedef struct panel {
    char name[64];
    point ours[16], limit[16], convert[16];
    int count;
    int has_convert;
} panel;

/* What stands before the size: a number, or where the memory lies. */
static int stem_length(const char *id)
{
    const char *dot = strrchr(id, '.');
    const int is_size =
        dot != NULL && ((dot[1] >= '0' && dot[1] <= '9') || strcmp(dot, ".l1") == 0 ||
                        strcmp(dot, ".l2") == 0 || strcmp(dot, ".l3") == 0 ||
                        strcmp(dot, ".dram") == 0);
    return is_size ? (int)(dot - id) : 0;
}

static panel *panel_for(panel *panels, int *count, const char *id, int length)
{
    for (int i = 0; i < *count; i++)
        if ((int)strlen(panels[i].name) == length &&
            strncmp(panels[i].name, id, (size_t)length) == 0)
            return &panels[i];
    if (*count == MAX_PANELS)
        return NULL;
    panel *p = &panels[(*count)++];
    (void)snprintf(p->name, sizeof p->name, "%.*s", length, id);
    return p;
}

static int collect(const bench *b, panel *panels)
{
    int count = 0;
    for (size_t i = 0; i < b->num_rows; i++) {
        const bench_row *row = &b->rows[i];
        const int length = stem_length(row->id);
        panel *p =
            length == 0 || row->limit_fraction <= 0 || !strncmp(row->id, "shape", 5)
                ? NULL
                : panel_for(panels, &count, row->id, length);
        if (p == NULL || p->count == (int)CLI_COUNT(p->ours))
            continue;
        const double speed = row->bytes / row->ns;
        const double convert = bench_ratio(b, row->id, "convert");
        p->ours[p->count] = (point){row->working_set, speed};
        p->limit[p->count] = (point){row->working_set, speed / row->limit_fraction};
        if (convert > 0) {
            p->convert[p->count] = (point){row->working_set, speed / convert};
            p->has_convert = 1;
        }
        p->count++;
    }
    return count;
}

/* 4 KiB to 1 GiB; 1 to 1000 GB/s. */
static double x_of(double size)
{
    return LEFT + (log2(size) - 12) / 18 * (PANEL_WIDTH - LEFT - RIGHT);
}
static double y_of(double speed)
{
    const double s = speed < 1 ? 1 : speed > 1000 ? 1000 : speed;
    return TOP + (1 - log10(s) / 3) * (PANEL_HEIGHT - TOP - BOTTOM);
}

static void draw_line(FILE *f, const point *points, int count, const char *style)
{
    (void)fputs("<polyline points=\"", f);
    for (int i = 0; i < count; i++)
        (void)fprintf(f, "%s%.1f,%.1f", i ? " " : "", x_of(points[i].size),
                      y_of(points[i].speed));
    (void)fprintf(f, "\" class=\"%s\"/>\n", style);
}

static void draw_axes(FILE *f, const char *name)
{
    static const char *const sizes[] = {"4K", "64K", "1M", "16M", "256M"};
    (void)fprintf(f, "<text x=\"%d\" y=\"18\" class=\"name\">%s</text>\n", LEFT, name);
    for (int i = 0; i <= 3; i++) {
        const double y = y_of(pow(10, i));
        (void)fprintf(f,
                      "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" "
                      "y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n",
                      LEFT, y, PANEL_WIDTH - RIGHT, LEFT - 4, y + 4, pow(10, i));
    }
    for (int i = 0; i < (int)CLI_COUNT(sizes); i++) {
        const double x = x_of(exp2(12 + 4 * i));
        (void)fprintf(
            f,
            "<path d=\"M%.1f %dV%d\" class=\"grid\"/><text x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">%s</text>\n",
            x, TOP, PANEL_HEIGHT - BOTTOM, x, PANEL_HEIGHT - BOTTOM + 14, sizes[i]);
    }
}

static void draw_panel(FILE *f, const panel *p, int index)
{
    (void)fprintf(f, "<g transform=\"translate(%d %d)\">\n",
                  index % COLUMNS * PANEL_WIDTH, index / COLUMNS * PANEL_HEIGHT + 24);
    draw_axes(f, p->name);
    draw_line(f, p->limit, p->count, "limit");
    if (p->has_convert)
        draw_line(f, p->convert, p->count, "convert");
    draw_line(f, p->ours, p->count, "ours");
    for (int i = 0; i < p->count; i++)
        (void)fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n",
                      x_of(p->ours[i].size), y_of(p->ours[i].speed));
    (void)fputs("</g>\n", f);
}

int bench_write_svg(const bench *b, const char *path)
{
    static panel panels[MAX_PANELS];
    const int count = collect(b, panels);
    cli_file_out out;
    const int status = cli_file_create(&out, path, 0);
    if (status != CLI_DONE)
        return status;
    FILE *f = out.file;
    (void)fprintf(
        f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n<style>"
        "text{font:11px sans-serif;fill:#444}.name{font-weight:bold;fill:#000}"
        "polyline{fill:none;stroke-width:1.5}.ours{stroke:#06c}circle{fill:#06c}"
        ".limit{stroke:#000;stroke-dasharray:5 3}"
        ".convert{stroke:#c60;stroke-dasharray:2 2}.grid{stroke:#ddd}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" "
        "y=\"16\">GB/s against bytes touched, %s; dashed: the same bytes scaled in "
        "place; dotted: by way of floats</text>\n",
        COLUMNS * PANEL_WIDTH, (count + COLUMNS - 1) / COLUMNS * PANEL_HEIGHT + 24,
        LEFT, pe_isa_name(b->isa));
    for (int i = 0; i < count; i++)
        draw_panel(f, &panels[i], i);
    (void)fputs("</svg>\n", f);
    return cli_file_commit(&out);
}
