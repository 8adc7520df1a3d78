/* SPDX-License-Identifier: MIT
 *
 * ticks.c - the round numbers along an axis
 */
#include "figure.h"

#include <math.h>
#include <string.h>

void cli_tidy_number(char *text)
{
    char *e = strchr(text, 'e');
    if (e == NULL)
        return;
    char *digits = e[1] == '-' ? e + 2 : e + 1, *first = digits;
    while (*first == '+' || *first == '0')
        first++;
    memmove(digits, first, strlen(first) + 1);
}

static void name_power(cli_tick *tick, const cli_axis *axis, int exponent)
{
    if (axis->log_base == 2 && axis->is_whole)
        (void)snprintf(tick->text, sizeof tick->text, "%.0f", tick->at);
    else if (axis->log_base == 2)
        (void)snprintf(tick->text, sizeof tick->text, "2^%d", exponent);
    else if (exponent >= -2 && exponent <= 3)
        (void)snprintf(tick->text, sizeof tick->text, "%g", tick->at);
    else
        (void)snprintf(tick->text, sizeof tick->text, "1e%d", exponent);
}

static int log_ticks(const cli_axis *axis, int wanted, cli_tick *out)
{
    const double base = axis->log_base, slack = 1e-9;
    const int first = (int)ceil(log(axis->min) / log(base) - slack);
    const int last = (int)floor(log(axis->max) / log(base) + slack);
    const int step = (last - first) / wanted + 1;
    int count = 0;
    for (int e = first; e <= last && count < CLI_MAX_TICKS; e += step) {
        out[count].at = pow(base, e);
        name_power(&out[count++], axis, e);
    }
    return count;
}

int cli_axis_ticks(const cli_axis *axis, int wanted, cli_tick out[CLI_MAX_TICKS])
{
    const double span = axis->max - axis->min;
    wanted = wanted < 1 ? 1 : wanted;
    if (axis->log_base != 0)
        return log_ticks(axis, wanted, out);
    if (!(span > 0)) {
        out[0].at = axis->min;
        (void)snprintf(out[0].text, sizeof out[0].text, "%.6g", axis->min);
        return 1;
    }
    double step = pow(10, floor(log10(span / wanted)));
    const double rough = span / wanted / step;
    step *= rough > 5 ? 10 : rough > 2 ? 5 : rough > 1 ? 2 : 1;
    step = axis->is_whole && step < 1 ? 1 : step;
    int count = 0;
    for (double k = ceil(axis->min / step - 1e-9);
         k * step <= axis->max + 1e-9 * span && count < CLI_MAX_TICKS; k++) {
        out[count].at = k * step;
        (void)snprintf(out[count].text, sizeof out[count].text, "%.7g",
                       k == 0 ? 0 : k * step);
        cli_tidy_number(out[count++].text);
    }
    return count;
}
