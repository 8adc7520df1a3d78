/* SPDX-License-Identifier: MIT
 *
 * lab_claim.c - trained short and read long, against trained long
 *
 * Press et al. 2022 compare ALiBi trained on L with sinusoids trained on 2 L, both read
 * at 2 L: as good, with less time and memory. */
#include "lab_report.h"

#include "print.h"

#include <string.h>

int cli_lab_check_claim(const lab_results *once, const lab_results *twice)
{
    pe_error error;
    lab_settings settings = twice->settings;
    if (once->count == 0 || twice->count == 0)
        return cli_fail(CLI_FAILED, "%s has no results",
                        once->count == 0 ? once->source : twice->source);
    if (settings.length != 2 * once->settings.length)
        return cli_fail(CLI_FAILED,
                        "length is %lld in %s, must be twice the %lld of %s",
                        (long long)settings.length, twice->source,
                        (long long)once->settings.length, once->source);
    settings.length = once->settings.length;
    settings.batch = once->settings.batch;
    if (lab_settings_match(&once->settings, once->source, &settings, twice->source,
                           &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    return CLI_DONE;
}

typedef struct side {
    const lab_results *results;
    const char *method;
    double multiple; /* at which 2 L is read */
    lab_mean plain, slide;
    cli_lab_speed step;
} side;

static void look(side *s, const lab_results *results, const char *wanted,
                 double multiple)
{
    const char *name;
    *s = (side){.results = results, .multiple = multiple};
    s->method = lab_results_method(results, 0);
    for (int64_t m = 0; (name = lab_results_method(results, m)) != NULL; m++)
        if (strcmp(name, wanted) == 0)
            s->method = name;
    lab_results_mean(results, s->method, "base", multiple, 0, &s->plain);
    lab_results_mean(results, s->method, "base", multiple, 1, &s->slide);
    s->step = cli_lab_speed_of(results, s->method, "step", 1);
}

static void print_side(const side *s)
{
    cli_print("%-8s %10lld  %.4f (%.4f)  %.4f (%.4f)  %10.1f  %6.1f\n", s->method,
              (long long)s->results->settings.length, s->plain.mean, s->plain.sd,
              s->slide.mean, s->slide.sd, s->step.rate / 1000,
              (double)s->step.memory / 1048576);
}

void cli_lab_print_claim(const lab_results *once, const lab_results *twice)
{
    side a, b;
    look(&a, once, "alibi", 2);
    look(&b, twice, "sin", 1);
    cli_print("\nread at %lld tokens, trained on half of them and on as many\n",
              (long long)twice->settings.length);
    cli_print("\n%-8s %10s  %15s  %15s  %10s  %6s\n", "method", "trained on",
              "nats a byte", "sliding", "train kB/s", "MiB");
    print_side(&a);
    print_side(&b);
    if (a.step.rate > 0 && b.step.rate > 0 && a.plain.count > 0 && b.plain.count > 0)
        cli_print("%s against %s: loss %+.4f, training time %+.1f%%, memory "
                  "%+.1f%%\n",
                  a.method, b.method, a.plain.mean - b.plain.mean,
                  100 * (b.step.rate / a.step.rate - 1),
                  100 * ((double)a.step.memory / (double)b.step.memory - 1));
}
