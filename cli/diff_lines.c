/* SPDX-License-Identifier: MIT
 *
 * diff_lines.c - what two models say differently, as lines of text
 */
#include "diff.h"

#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void cli_diff_text(cli_diff_lines *lines, const char *name, const char *a,
                   const char *b, const char *excuse)
{
    if (strcmp(a, b) == 0 || lines->count == CLI_COUNT(lines->items))
        return;
    cli_diff_line *line = &lines->items[lines->count++];
    line->name = name;
    line->excuse = excuse;
    (void)snprintf(line->a, sizeof line->a, "%s", a);
    (void)snprintf(line->b, sizeof line->b, "%s", b);
}

void cli_diff_integer(cli_diff_lines *lines, const char *name, int64_t a, int64_t b,
                      const char *excuse)
{
    char texts[2][32];
    (void)snprintf(texts[0], sizeof texts[0], "%lld", (long long)a);
    (void)snprintf(texts[1], sizeof texts[1], "%lld", (long long)b);
    cli_diff_text(lines, name, a == 0 ? "-" : texts[0], b == 0 ? "-" : texts[1],
                  excuse);
}

void cli_diff_number(cli_diff_lines *lines, const char *name, double a, double b,
                     const char *excuse)
{
    const double larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    cli_number left, right;
    if (fabs(a - b) <= 1e-6 * larger)
        return;
    cli_diff_text(lines, name, a == 0 ? "-" : cli_double(&left, a),
                  b == 0 ? "-" : cli_double(&right, b), excuse);
}

int cli_diff_counts(const cli_diff_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].excuse == NULL)
            return 1;
    return 0;
}
