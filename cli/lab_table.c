/* SPDX-License-Identifier: MIT
 *
 * lab_table.c - results of the lab as tables on a terminal, and as CSV
 *
 * Means over seeds, with the standard deviation of the sample where there are several. */
#include "lab_report.h"

#include "canvas.h"
#include "print.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cli_lab_row *cli_lab_rows(const lab_results *results, int slide, int64_t *count)
{
    cli_lab_row *rows = calloc((size_t)results->count + 1, sizeof *rows);
    *count = 0;
    const char *method;
    for (int64_t m = 0;
         rows != NULL && (method = lab_results_method(results, m)) != NULL; m++)
        for (int64_t i = 0; i < results->count; i++) {
            const lab_result *r = &results->items[i];
            int is_known = strcmp(r->method, method) != 0 || r->slide != slide;
            for (int64_t k = 0; k < *count && !is_known; k++)
                is_known = strcmp(rows[k].method, method) == 0 &&
                           strcmp(rows[k].mode, r->mode) == 0;
            if (is_known)
                continue;
            (void)snprintf(rows[*count].method, sizeof rows->method, "%s", method);
            (void)snprintf(rows[(*count)++].mode, sizeof rows->mode, "%s", r->mode);
        }
    if (*count > 0)
        return rows;
    free(rows);
    return NULL;
}

static int64_t count_seeds(const lab_results *results)
{
    int64_t most = 0;
    for (int64_t i = 0; i < results->count; i++) {
        const lab_result *r = &results->items[i];
        lab_mean mean;
        lab_results_mean(results, r->method, r->mode, r->multiple, r->slide, &mean);
        most = mean.count > most ? mean.count : most;
    }
    return most;
}

static int wide_name(const cli_lab_row *rows, int64_t count)
{
    size_t wide = 6;
    for (int64_t i = 0; i < count; i++)
        wide = strlen(rows[i].method) > wide ? strlen(rows[i].method) : wide;
    return (int)wide;
}

/* "1.320 .004", so that five lengths fit the page; of one seed "1.3195". */
static void print_cell(const lab_mean *mean, int with_sd)
{
    char cell[48] = "-", sd[24] = "    ";
    if (with_sd && mean->count > 1)
        (void)snprintf(sd, sizeof sd, mean->sd < 0.9995 ? "%.3f" : "%#.3g", mean->sd);
    if (with_sd && mean->count > 0)
        (void)snprintf(cell, sizeof cell, "%.3f %s", mean->mean,
                       sd[0] == '0' ? sd + 1 : sd);
    else if (mean->count > 0)
        (void)snprintf(cell, sizeof cell, "%.4f", mean->mean);
    cli_print("  %*s", with_sd ? 10 : 8, cell);
}

static void print_losses(const lab_results *results, int slide)
{
    int64_t count;
    cli_lab_row *rows = cli_lab_rows(results, slide, &count);
    const int with_sd = count_seeds(results) > 1;
    const int wide = wide_name(rows, count);
    if (rows == NULL)
        return;
    cli_print("\n%-*s  %-8s", wide, "method", "mode");
    double multiple;
    for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++)
        cli_print("  %*.0f", with_sd ? 10 : 8,
                  multiple * (double)results->settings.length);
    cli_print("\n");
    for (int64_t i = 0; i < count; i++) {
        cli_print("%-*s  %-8s", wide, rows[i].method, rows[i].mode);
        for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++) {
            lab_mean mean;
            lab_results_mean(results, rows[i].method, rows[i].mode, multiple, slide,
                             &mean);
            print_cell(&mean, with_sd);
        }
        cli_print("\n");
    }
    free(rows);
}

cli_lab_speed cli_lab_speed_of(const lab_results *results, const char *method,
                               const char *what, double multiple)
{
    cli_lab_speed out = {0, 0};
    for (int64_t i = 0; i < results->num_timings; i++) {
        const lab_timing *t = &results->timings[i];
        if (t->multiple != multiple || strcmp(t->method, method) != 0 ||
            strcmp(t->what, what) != 0)
            continue;
        if (t->seconds > 0 && (double)t->tokens / t->seconds > out.rate)
            out.rate = (double)t->tokens / t->seconds;
        out.memory = t->memory > out.memory ? t->memory : out.memory;
    }
    return out;
}

static void print_speeds(const lab_results *results)
{
    static const char *const names[] = {"train L", "train 2 L", "read L", "read 2 L"};
    const char *method;
    if (results->num_timings == 0)
        return;
    cli_print("\nthousands of bytes a second, of the fastest seed, and MiB at work: "
              "training on rows of L "
              "tokens and of twice as many, and reading windows of both\n");
    cli_print("\n%-12s", "method");
    for (int i = 0; i < 4; i++)
        cli_print("  %9s %5s", names[i], "MiB");
    cli_print("\n");
    for (int64_t m = 0; (method = lab_results_method(results, m)) != NULL; m++) {
        cli_print("%-12s", method);
        for (int i = 0; i < 4; i++) {
            const cli_lab_speed s =
                cli_lab_speed_of(results, method, i < 2 ? "step" : "eval", 1 + i % 2);
            if (s.rate > 0)
                cli_print("  %9.1f %5.1f", s.rate / 1000, (double)s.memory / 1048576);
            else
                cli_print("  %9s %5s", "-", "-");
        }
        cli_print("\n");
    }
}

int cli_lab_print(const lab_results *results)
{
    const lab_settings *s = &results->settings;
    cli_print(
        "%lld layer%s of width %lld, %lld heads; trained on %lld tokens at a time "
        "of %s (%.12s), %lld steps of %lld rows\n",
        (long long)s->layers, s->layers == 1 ? "" : "s", (long long)s->width,
        (long long)s->heads, (long long)s->length, s->text, s->text_sha256,
        (long long)s->steps, (long long)s->batch);
    cli_print("loss in nats a byte, %lld bytes in windows that do not overlap%s\n",
              (long long)s->eval_tokens,
              count_seeds(results) > 1 ? "; mean and sd over seeds" : "");
    print_losses(results, 0);
    int64_t count;
    cli_lab_row *rows = cli_lab_rows(results, 1, &count);
    if (rows != NULL)
        cli_print("\nsliding windows: the same %lld bytes at every length, each "
                  "after at least length - %lld others\n",
                  (long long)s->slide_tokens, (long long)s->length);
    free(rows);
    print_losses(results, 1);
    print_speeds(results);
    return CLI_DONE;
}

static void put_name(FILE *out, const cli_lab_row *row)
{
    cli_csv_text(out, row->method);
    (void)fputc(',', out);
    cli_csv_text(out, row->mode);
}

static void csv_losses(const lab_results *results, int slide, FILE *out)
{
    int64_t count;
    cli_lab_row *rows = cli_lab_rows(results, slide, &count);
    for (int64_t i = 0; i < count; i++) {
        double multiple;
        for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++) {
            lab_mean mean;
            cli_number n[5];
            lab_results_mean(results, rows[i].method, rows[i].mode, multiple, slide,
                             &mean);
            if (mean.count == 0)
                continue;
            put_name(out, &rows[i]);
            (void)fprintf(
                out, ",%s,%s,,%lld,%s,%s,%s,%s\n", slide ? "slide" : "nonoverlap",
                cli_double(&n[0], multiple * (double)results->settings.length),
                (long long)mean.count, cli_double(&n[1], mean.mean),
                cli_double(&n[2], mean.sd), cli_double(&n[3], mean.min),
                cli_double(&n[4], mean.max));
        }
    }
    free(rows);
}

static void csv_positions(const lab_results *results, FILE *out)
{
    int64_t count;
    cli_lab_row *rows = cli_lab_rows(results, 0, &count);
    for (int64_t i = 0; i < count; i++) {
        double multiple;
        for (int64_t k = 0; (multiple = lab_results_multiple(results, k)) > 0; k++) {
            const int64_t blocks = (int64_t)multiple;
            double *values = calloc((size_t)blocks + 1, sizeof *values);
            const int64_t seeds =
                values == NULL
                    ? 0
                    : lab_results_by_position(results, rows[i].method, rows[i].mode,
                                              multiple, blocks, values);
            for (int64_t b = 0; b < blocks && seeds > 0; b++) {
                cli_number n;
                put_name(out, &rows[i]);
                (void)fprintf(out, ",nonoverlap,%lld,%lld,%lld,%s,,,\n",
                              (long long)(blocks * results->settings.length),
                              (long long)(b * results->settings.length),
                              (long long)seeds, cli_double(&n, values[b]));
            }
            free(values);
        }
    }
    free(rows);
}

void cli_lab_csv(const lab_results *results, FILE *out)
{
    (void)fputs("method,mode,windows,tokens,position,seeds,nll,sd,min,max\n", out);
    csv_losses(results, 0, out);
    csv_losses(results, 1, out);
    csv_positions(results, out);
}
