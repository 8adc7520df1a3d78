/* SPDX-License-Identifier: MIT
 *
 * identify_rotation.c - before and after, or a table of cos and sin, into a rule
 *
 * Every rule is run over every pairing.  Those whose error is within the noise of the
 * best are answers; a noise that no rounding to 8 bits explains is none. */
#include "identify.h"

#include "names.h"
#include "positions_arg.h"
#include "report.h"
#include "tensor_arg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative: rounding to bfloat16 once or twice leaves 0.0017 to 0.0025. */
#define NOISE_MAX 0.006
/* Rounding leaves some elements alone and moves others, so chi-square is not exact. */
#define NOISE_SLACK 1.6
/* Of the noise's variance: 5 standard deviations. */
#define TELLS_APART 25.0

typedef struct search {
    cli_rules rules;
    cli_sums *sums;
    size_t num_sums;
    cli_fit *fits;
    size_t num_fits, capacity;
    const int64_t *positions;
    int is_start_known, is_table, own_factor;
} search;

static const cli_sums *sums_of(search *s, const cli_rule *rule, pe_pairing in,
                               pe_pairing out, const double *x, const double *y,
                               int64_t tokens, int64_t heads, int64_t dim)
{
    for (size_t i = 0; i < s->num_sums; i++) {
        const cli_sums *have = &s->sums[i];
        if (s->is_table || (have->rotary_dim == rule->rotary_dim &&
                            have->rotary_start == rule->rotary_start &&
                            have->pairing == in && have->out_pairing == out))
            return have;
    }
    cli_sums window = {.rotary_dim = rule->rotary_dim,
                       .rotary_start = rule->rotary_start,
                       .pairing = in,
                       .out_pairing = out};
    if (s->is_table) {
        window.rotary_dim = (int32_t)dim;
        window.rotary_start = 0;
    }
    if (cli_sums_make(&s->sums[s->num_sums], x, y, tokens, heads, dim, &window) !=
        CLI_DONE)
        return NULL;
    return &s->sums[s->num_sums++];
}

/* No angles can be right where the sizes of pairs are not. */
static int can_turn(const cli_sums *s)
{
    return s->least <= NOISE_MAX * NOISE_MAX * s->power;
}

/* Within the noise that the sizes of pairs show, for they do not depend on angles. */
static int is_good(const cli_fit *fit)
{
    const cli_sums *s = fit->sums;
    const double free_angles = (double)(s->num_pairs * s->num_tokens);
    const double noise = s->least / ((double)s->count - free_angles);
    return fit->residual <= NOISE_MAX &&
           fit->error <=
               NOISE_SLACK * noise * (double)s->count + fit->slack + s->power * 1e-13;
}

static int add_fit(search *s, const cli_rule *rule, const cli_sums *sums, int times,
                   int rounding)
{
    if (s->num_fits == s->capacity) {
        const size_t wider = 2 * s->capacity + 256;
        cli_fit *moved = realloc(s->fits, wider * sizeof *moved);
        if (moved == NULL)
            return cli_fail(CLI_FAILED, "out of memory");
        s->fits = moved;
        s->capacity = wider;
    }
    cli_fit *fit = &s->fits[s->num_fits];
    *fit = (cli_fit){.rule = rule,
                     .sums = sums,
                     .times = times,
                     .rounding = rounding,
                     .own_factor = s->own_factor};
    cli_fit_run(fit, s->positions, s->is_start_known);
    if (is_good(fit))
        s->num_fits++;
    return CLI_DONE;
}

static int run_pairings(search *s, const double *x, const double *y, int64_t tokens,
                        int64_t heads, int64_t dim, int rounding)
{
    static const pe_pairing pairings[] = {PE_HALF_SPLIT, PE_INTERLEAVED};
    static const int all_times[] = {1, -1, 2};
    int status = CLI_DONE;
    for (size_t r = 0; r < s->rules.count; r++) {
        const cli_rule *rule = &s->rules.items[r];
        for (int p = 0; p < (s->is_table ? 1 : 4); p++) {
            const cli_sums *sums = sums_of(s, rule, pairings[p / 2], pairings[p % 2], x,
                                           y, tokens, heads, dim);
            if (sums == NULL)
                return CLI_FAILED;
            if (!can_turn(sums))
                continue;
            for (size_t t = 0; t < CLI_COUNT(all_times) && status == CLI_DONE; t++)
                status = add_fit(s, rule, sums, all_times[t], rounding);
        }
    }
    return status;
}

static int by_error(const void *a, const void *b)
{
    const cli_fit *x = a, *y = b;
    if (x->times != y->times && (x->times == 1 || y->times == 1))
        return x->times == 1 ? -1 : 1;
    return x->error < y->error ? -1 : x->error > y->error;
}

static void fit_name(const search *from, const cli_fit *fit, char *out, size_t size)
{
    const cli_sums *s = fit->sums;
    int used = 0;
    if (from->is_table)
        used = snprintf(out, size, "%d pairs", fit->rule->num_pairs);
    else
        used = snprintf(out, size, "%s%s%s, %d of %d turn",
                        cli_choice_name(cli_pairing_names, s->pairing),
                        s->out_pairing != s->pairing ? " written as " : "",
                        s->out_pairing != s->pairing
                            ? cli_choice_name(cli_pairing_names, s->out_pairing)
                            : "",
                        fit->rule->rotary_dim, fit->rule->head_dim);
    if (s->rotary_start != 0 && !from->is_table)
        used += snprintf(out + used, size - (size_t)used, " from %d", s->rotary_start);
    used += snprintf(out + used, size - (size_t)used, ", %s", fit->rule->text);
    if (fit->times == -1)
        used += snprintf(out + used, size - (size_t)used, ", turned backwards");
    if (fit->times == 2)
        used += snprintf(out + used, size - (size_t)used, ", rotated twice");
    if (fit->rounding == CLI_ROUND_POSITIONS)
        used += snprintf(out + used, size - (size_t)used,
                         ", positions rounded to bfloat16");
    if (fit->rounding == CLI_ROUND_FREQS)
        used += snprintf(out + used, size - (size_t)used,
                         ", frequencies rounded to bfloat16");
    if (fit->own_factor)
        (void)snprintf(out + used, size - (size_t)used, ", factor %.4g instead of %.4g",
                       fit->factor, fit->rule->attention_factor);
}

static json_object *fit_details(const search *s, const cli_fit *fit, double tells)
{
    json_object *d = json_object_new_object();
    cli_json_text(d, "pairing", cli_choice_name(cli_pairing_names, fit->sums->pairing));
    cli_json_text(d, "out_pairing",
                  cli_choice_name(cli_pairing_names, fit->sums->out_pairing));
    cli_json_set_integer(d, "head_dim", fit->rule->head_dim);
    cli_json_set_integer(d, "rotary_dim", fit->rule->rotary_dim);
    cli_json_set_integer(d, "rotary_start", fit->sums->rotary_start);
    cli_json_text(d, "rule", fit->rule->text);
    cli_json_set_number(d, "rope_theta", fit->rule->rope_theta);
    cli_json_set_integer(d, "times", fit->times);
    cli_json_set_number(d, "attention_factor", fit->rule->attention_factor);
    cli_json_set_number(d, "factor", fit->factor);
    if (s->is_start_known)
        cli_json_flag(d, "start_given", 1);
    else
        cli_json_set_integer(d, "start", fit->start);
    cli_json_text(d, "presets", fit->rule->presets);
    if (tells > 0)
        cli_json_set_number(d, "told_apart_at", tells);
    return d;
}

/* The position from which a fit and the best one differ by more than 0.1 radians. */
static double tells_at(const cli_fit *best, const cli_fit *fit)
{
    if (best->sums->pairing != fit->sums->pairing ||
        best->sums->rotary_dim != fit->sums->rotary_dim)
        return 0;
    const double gap = cli_fit_gap(best, fit);
    return gap > 0 ? ceil(0.1 / gap) : 0;
}

static int is_unturned(const double *x, const double *y, int64_t count,
                       double *residual)
{
    double off = 0, power = 0;
    for (int64_t i = 0; i < count; i++) {
        off += (y[i] - x[i]) * (y[i] - x[i]);
        power += y[i] * y[i];
    }
    *residual = power > 0 ? sqrt(off / power) : 0;
    return *residual <= NOISE_MAX;
}

static void answer(search *s, cli_answers *out)
{
    if (s->num_fits == 0)
        return;
    const cli_fit *best = &s->fits[0];
    for (size_t i = 1; i < s->num_fits; i++)
        if (s->fits[i].error < best->error)
            best = &s->fits[i];
    const double floor = best->sums->power / (double)best->sums->count * 1e-13;
    const double variance = best->error / (double)best->sums->count + floor;
    const double most = TELLS_APART * variance;
    const double hidden = 3 * best->residual;
    const cli_fit least = *best;
    qsort(s->fits, s->num_fits, sizeof *s->fits, by_error);
    best = NULL;
    double farthest = 0;
    for (size_t i = 0; i < s->num_fits; i++) {
        const cli_fit *fit = &s->fits[i];
        if (cli_fit_excess(fit, &least, s->positions, hidden) > most)
            continue;
        best = best == NULL ? fit : best;
        const double tells = fit == best ? 0 : tells_at(best, fit);
        char name[400];
        fit_name(s, fit, name, sizeof name);
        char start[48] = "";
        if (!s->is_start_known)
            (void)snprintf(start, sizeof start, ", from position %lld",
                           (long long)fit->start);
        cli_answers_add(out, fit->residual, fit_details(s, fit, tells), "%s%s%s%s%s",
                        name, start, fit->rule->presets ? " (" : "",
                        fit->rule->presets ? fit->rule->presets : "",
                        fit->rule->presets ? ")" : "");
        farthest = tells > farthest ? tells : farthest;
    }
    if (best->residual > 1e-4)
        cli_answers_say(out, "rounding to bfloat16 leaves residuals up to 0.0025");
    if (out->count > 1 && farthest > 0)
        cli_answers_say(out,
                        "these cannot be told apart from this data; tokens %.0f "
                        "positions apart would tell",
                        farthest);
}

int cli_identify_fits(cli_answers *out, const double *x, const double *y,
                      int64_t tokens, int64_t heads, int64_t dim,
                      const int64_t *positions, int is_start_known, int is_table)
{
    search s = {
        .positions = positions, .is_start_known = is_start_known, .is_table = is_table};
    double residual = 0;
    if (is_unturned(x, y, tokens * heads * dim, &residual)) {
        cli_answers_add(out, residual, NULL, "not rotated");
        cli_answers_say(out, "the output is the input, which every rule gives at "
                             "position 0");
        return CLI_DONE;
    }
    int status = cli_rules_make(&s.rules, is_table ? 0 : (int32_t)dim,
                                is_table ? (int32_t)dim / 2 : 0);
    if (status == CLI_DONE) {
        s.sums = calloc(4 * s.rules.count + 4, sizeof *s.sums);
        if (s.sums == NULL)
            status = cli_fail(CLI_FAILED, "out of memory");
    }
    /* Simple explanations first. */
    for (int step = 0; step < 6 && status == CLI_DONE && s.num_fits == 0; step++) {
        s.own_factor = step % 2;
        status = run_pairings(&s, x, y, tokens, heads, dim, step / 2);
    }
    if (status == CLI_DONE)
        answer(&s, out);
    for (size_t i = 0; i < s.num_sums; i++)
        cli_sums_free(&s.sums[i]);
    free(s.sums);
    free(s.fits);
    cli_rules_free(&s.rules);
    return status;
}

/* [batch][tokens][heads][dim] whatever the order on disk. */
static double *arrange(const cli_array *in, int32_t layout, int64_t *batch,
                       int64_t *tokens, int64_t *heads)
{
    const int64_t *shape = in->shape;
    const int32_t rank = in->rank;
    const int64_t dim = shape[rank - 1];
    *batch = rank == 4 ? shape[0] : 1;
    *tokens = rank == 2            ? shape[0]
              : layout == CLI_BHSD ? shape[rank - 2]
                                   : shape[rank - 3];
    *heads = rank == 2 ? 1 : layout == CLI_BHSD ? shape[rank - 3] : shape[rank - 2];
    double *out = malloc((size_t)in->count * sizeof *out + 1);
    if (out == NULL)
        return NULL;
    for (int64_t b = 0; b < *batch; b++)
        for (int64_t t = 0; t < *tokens; t++)
            for (int64_t h = 0; h < *heads; h++) {
                const int64_t from =
                    b * *tokens * *heads +
                    (layout == CLI_BHSD && rank > 2 ? h * *tokens + t : t * *heads + h);
                memcpy(out + ((b * *tokens + t) * *heads + h) * dim,
                       in->data + from * dim, (size_t)dim * sizeof *out);
            }
    return out;
}

static int read_positions(int64_t **out, const char *text, int64_t batch,
                          int64_t tokens)
{
    cli_positions positions = {0};
    pe_positions at = {.start = 0};
    *out = calloc((size_t)(batch * tokens) + 1, sizeof **out);
    if (*out == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    int status = CLI_DONE;
    if (text != NULL) {
        status = cli_positions_open(&positions, "positions", text);
        if (status == CLI_DONE)
            status = cli_positions_fit(&positions, batch, tokens, 1, &at);
    }
    for (int64_t b = 0; b < batch && status == CLI_DONE; b++)
        for (int64_t t = 0; t < tokens; t++)
            (*out)[b * tokens + t] =
                at.ids != NULL ? at.ids[b * at.batch_stride + t] : at.start + t;
    cli_positions_close(&positions);
    return status;
}

int cli_identify_rotation(cli_answers *out, const cli_identify_args *args,
                          const char *const *operands)
{
    cli_array before = {0}, after = {0};
    double *x = NULL, *y = NULL;
    int64_t *positions = NULL, batch = 0, tokens = 0, heads = 0;
    int status = cli_array_read(&before, operands[0], args->bf16);
    if (status == CLI_DONE)
        status = cli_array_read(&after, operands[1], args->bf16);
    if (status == CLI_DONE &&
        (before.rank != after.rank || before.rank < 2 ||
         memcmp(before.shape, after.shape, sizeof before.shape) != 0))
        status = cli_fail(CLI_FAILED,
                          "%s and %s have different shapes, or no axis of "
                          "tokens",
                          before.name, after.name);
    const int64_t dim = status == CLI_DONE ? before.shape[before.rank - 1] : 0;
    if (status == CLI_DONE && (dim % 2 != 0 || dim < 2 || dim > 4096))
        status = cli_fail(CLI_FAILED,
                          "%s: the last axis is %lld, must be a head_dim, even and at "
                          "most 4096",
                          before.name, (long long)dim);
    if (status == CLI_DONE) {
        x = arrange(&before, args->layout, &batch, &tokens, &heads);
        y = arrange(&after, args->layout, &batch, &tokens, &heads);
        if (x == NULL || y == NULL)
            status = cli_fail(CLI_FAILED, "out of memory");
    }
    if (status == CLI_DONE)
        status = read_positions(&positions, args->positions, batch, tokens);
    if (status == CLI_DONE && before.count == 0)
        status = cli_fail(CLI_FAILED, "%s is empty", before.name);
    if (status == CLI_DONE)
        status = cli_identify_fits(out, x, y, batch * tokens, heads, dim, positions,
                                   args->positions != NULL, 0);
    if (status == CLI_DONE && out->count == 0 && args->positions != NULL) {
        status =
            cli_identify_fits(out, x, y, batch * tokens, heads, dim, positions, 0, 0);
        if (out->count > 0)
            cli_answers_say(out,
                            "the start is to be added to the positions given: they "
                            "do not fit as they are");
    }
    free(x);
    free(y);
    free(positions);
    cli_array_free(&before);
    cli_array_free(&after);
    return status;
}
