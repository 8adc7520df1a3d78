/* SPDX-License-Identifier: MIT
 *
 * compare_out.c - compare's report
 *
 * Text shows three digits, JSON all that a float holds. */
#include "compare_out.h"

#include "file_out.h"
#include "print.h"
#include "report.h"

#include <math.h>
#include <stdio.h>

/* Float arithmetic: changes below this are rounding. */
static const double nothing = 1e-5;

static const float *row(const cmp_report *r, const float *x, int64_t i)
{
    return x + (r->head * r->problem->tokens + i) * r->problem->tokens;
}

static void print_matrices(const cmp_report *r, int m)
{
    const int64_t n = r->problem->tokens;
    (void)printf("  %-*s  probabilities\n", (int)(7 * n) - 2, "scores");
    for (int64_t i = 0; i < n; i++) {
        const float *scores = row(r, r->here[m].scores, i);
        const float *probs = row(r, r->here[m].probs, i);
        for (int64_t j = 0; j < n; j++)
            if (j <= i)
                (void)printf("%7.3f", (double)scores[j]);
            else
                (void)printf("%7s", ".");
        (void)printf("  ");
        for (int64_t j = 0; j < n; j++)
            if (j <= i)
                (void)printf("%6.3f", (double)probs[j]);
            else
                (void)printf("%6s", ".");
        (void)putchar('\n');
    }
    const int64_t dim = r->problem->dim;
    const float *out = r->here[m].out + ((n - 1) * r->problem->heads + r->head) * dim;
    cli_print("  output of the last token");
    for (int64_t d = 0; d < dim && d < 8; d++)
        cli_print(" %.3f", (double)out[d]);
    cli_print("%s\n\n", dim > 8 ? " ..." : "");
}

static const char *change_text(cli_number *out, double change)
{
    if (isnan(change))
        return "no: refused";
    if (change < nothing)
        return "yes";
    (void)snprintf(out->text, sizeof out->text, "no, by up to %.3f", change);
    return out->text;
}

static void print_past(const cmp_report *r, int m)
{
    if (r->past[m].is_refused)
        cli_print("refused: %s\n", r->past[m].message);
    else if (r->tests[m].pairs > 0)
        cli_print("computed; %lld of %lld pairs enter angles never seen\n",
                  (long long)r->tests[m].unseen, (long long)r->tests[m].pairs);
    else if (m == CMP_ALIBI)
        cli_print("computed; distances within reach stay as they were\n");
    else
        cli_print("computed; nothing depends on it\n");
}

int cmp_print_text(const cmp_report *r)
{
    const cmp_problem *p = r->problem;
    cli_number text;
    cli_print("%lld tokens, head %lld of %lld, %lld wide, causal\n\n",
              (long long)p->tokens, (long long)r->head, (long long)p->heads,
              (long long)p->dim);
    for (int m = 0; m < CMP_METHODS; m++) {
        cli_print("%s: %s\n", cmp_names[m], cmp_places[m]);
        print_matrices(r, m);
    }
    cli_print("%-12s%-20s%-20s%s\n", "", "scores survive", "the same where",
              "outputs only");
    cli_print("%-12s%-20s%-20s%s\n", "", "moving all by 3", "q and k are 0",
              "shuffle with tokens");
    for (int m = 0; m < CMP_METHODS; m++) {
        cli_print("%-12s", cmp_names[m]);
        cli_print("%-20s", change_text(&text, r->tests[m].shift));
        cli_print("%-20s", change_text(&text, r->tests[m].bare_shift));
        cli_print("%s\n", change_text(&text, r->tests[m].shuffle));
    }
    cli_print("\nat positions from %lld, the trained length\n", (long long)p->trained);
    for (int m = 0; m < CMP_METHODS; m++) {
        cli_print("%-12s", cmp_names[m]);
        print_past(r, m);
    }
    return CLI_DONE;
}

/* [heads][tokens][tokens], null where a query does not see the key. */
static json_object *scores_of(const cmp_report *r, int m)
{
    const int64_t n = r->problem->tokens, pairs = r->problem->heads * n * n;
    json_object *array = json_object_new_array();
    for (int64_t i = 0; i < pairs; i++)
        (void)json_object_array_add(
            array, i % n > i / n % n
                       ? NULL
                       : json_object_new_double((double)r->here[m].scores[i]));
    return array;
}

int cmp_print_json(const cmp_report *r)
{
    const cmp_problem *p = r->problem;
    const int64_t pairs = p->heads * p->tokens * p->tokens;
    json_object *report = cli_json_start("posenc.compare/1");
    json_object *methods = json_object_new_array();
    cli_json_integer(report, "tokens", p->tokens);
    cli_json_integer(report, "heads", p->heads);
    cli_json_integer(report, "dim", p->dim);
    cli_json_integer(report, "trained", p->trained);
    for (int m = 0; m < CMP_METHODS; m++) {
        json_object *method = json_object_new_object();
        cli_json_text(method, "method", cmp_names[m]);
        cli_json_text(method, "adds", cmp_places[m]);
        json_object_object_add(method, "scores", scores_of(r, m));
        json_object_object_add(method, "probabilities",
                               cli_json_floats(r->here[m].probs, pairs));
        json_object_object_add(
            method, "outputs",
            cli_json_floats(r->here[m].out, p->tokens * p->heads * p->dim));
        if (!isnan(r->tests[m].bare_shift))
            cli_json_set_number(method, "change_when_shifted_without_content",
                                r->tests[m].bare_shift);
        if (!isnan(r->tests[m].shift))
            cli_json_set_number(method, "change_when_shifted", r->tests[m].shift);
        cli_json_set_number(method, "change_when_shuffled", r->tests[m].shuffle);
        if (r->past[m].is_refused)
            cli_json_text(method, "past_trained_length", r->past[m].message);
        if (r->tests[m].pairs > 0)
            cli_json_set_integer(method, "pairs_with_unseen_angles",
                                 r->tests[m].unseen);
        json_object_array_add(methods, method);
    }
    json_object_object_add(report, "methods", methods);
    return cli_json_print(report);
}

/* One square for each method, dark where the probability is high. */
static void draw(const cmp_report *r, FILE *file)
{
    enum { CELL = 24, GAP = 40, TOP = 40 };
    const int n = (int)r->problem->tokens, step = n * CELL + GAP;
    (void)fprintf(file,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                  "height=\"%d\" font-family=\"sans-serif\" font-size=\"14\">\n",
                  CMP_METHODS * step, n * CELL + TOP + 10);
    for (int m = 0; m < CMP_METHODS; m++) {
        (void)fprintf(file, "<text x=\"%d\" y=\"24\">%s</text>\n", m * step + GAP / 2,
                      cmp_names[m]);
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++)
                (void)fprintf(file,
                              "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                              "fill=\"#14508c\" fill-opacity=\"%.3f\" "
                              "stroke=\"#ccc\"/>\n",
                              m * step + GAP / 2 + j * CELL, TOP + i * CELL, CELL, CELL,
                              (double)row(r, r->here[m].probs, i)[j]);
    }
    (void)fputs("</svg>\n", file);
}

int cmp_write_svg(const cmp_report *r, const char *path)
{
    cli_file_out out = {NULL, NULL, NULL};
    int status = cli_file_create(&out, path, 0);
    if (status == CLI_DONE) {
        draw(r, out.file);
        status = cli_file_commit(&out);
    }
    cli_file_discard(&out);
    return status;
}
