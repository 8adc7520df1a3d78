/* SPDX-License-Identifier: MIT
 *
 * identify_lists.c - tables of cos and sin, frequencies, sinusoids and slopes
 */
#include "identify.h"

#include "names.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative: what a float, and what bfloat16, may be off. */
#define FLOAT_NOISE 4e-6
#define BF16_NOISE  0.0045

/* cos and sin of each pair once, whether the columns hold each value twice: side by
 * side (halves) or next to each other. */
static int unfold(const cli_array *in, int64_t rows, int64_t width, const double *data,
                  int64_t pairs, int neighbours, double *out)
{
    for (int64_t t = 0; t < rows; t++)
        for (int64_t i = 0; i < pairs; i++) {
            const double *row = data + t * width;
            const double a = row[width == pairs ? i : neighbours ? 2 * i : i];
            const double b = row[width == pairs ? i
                                 : neighbours   ? 2 * i + 1
                                                : i + pairs];
            if (fabs(a - b) > 1e-6)
                return 0;
            out[t * pairs + i] = a;
        }
    (void)in;
    return 1;
}

static int run_table(cli_answers *out, const cli_array *in, const double *cos_data,
                     const double *sin_data, int64_t rows, int64_t width)
{
    const char *form = "each value once";
    int64_t pairs = width;
    double *c = malloc((size_t)(2 * rows * width) * sizeof *c + 1);
    double *x = calloc((size_t)(2 * rows * width) + 1, sizeof *x);
    double *y = calloc((size_t)(2 * rows * width) + 1, sizeof *y);
    int64_t *positions = calloc((size_t)rows + 1, sizeof *positions);
    int status = CLI_DONE;
    if (c == NULL || x == NULL || y == NULL || positions == NULL) {
        status = cli_fail(CLI_FAILED, "out of memory");
        goto done;
    }
    double *s = c + rows * width;
    if (width % 2 == 0 && unfold(in, rows, width, cos_data, width / 2, 0, c) &&
        unfold(in, rows, width, sin_data, width / 2, 0, s)) {
        pairs = width / 2;
        form = "each value twice, half-split";
    } else if (width % 2 == 0 && unfold(in, rows, width, cos_data, width / 2, 1, c) &&
               unfold(in, rows, width, sin_data, width / 2, 1, s)) {
        pairs = width / 2;
        form = "each value twice, interleaved";
    } else {
        (void)unfold(in, rows, width, cos_data, width, 0, c);
        (void)unfold(in, rows, width, sin_data, width, 0, s);
    }
    for (int64_t t = 0; t < rows; t++) {
        positions[t] = t;
        for (int64_t i = 0; i < pairs; i++) {
            x[2 * t * pairs + i] = 1;
            y[2 * t * pairs + i] = c[t * pairs + i];
            y[(2 * t + 1) * pairs + i] = s[t * pairs + i];
        }
    }
    status = cli_identify_fits(out, x, y, rows, 1, 2 * pairs, positions, 0, 1);
    if (status == CLI_DONE && out->count > 0)
        cli_answers_say(out, "%s holds %s", in->name, form);
done:
    free(c);
    free(x);
    free(y);
    free(positions);
    return status;
}

int cli_identify_table(cli_answers *out, const cli_identify_args *args,
                       const char *const *operands)
{
    cli_array a = {0}, b = {0};
    int status = cli_array_read(&a, operands[0], args->bf16);
    if (status == CLI_DONE && operands[1] != NULL)
        status = cli_array_read(&b, operands[1], args->bf16);
    if (status != CLI_DONE) {
        cli_array_free(&a);
        cli_array_free(&b);
        return status;
    }
    const int64_t width = a.shape[a.rank - 1];
    if (width < 1 || width > 4096 || a.count == 0)
        status = cli_fail(CLI_FAILED,
                          "%s: the last axis is %lld, must be 1 to 4096 "
                          "wide",
                          a.name, (long long)width);
    else if (operands[1] != NULL && a.count != b.count)
        status =
            cli_fail(CLI_FAILED, "%s and %s have different shapes", a.name, b.name);
    else if (operands[1] != NULL)
        status = run_table(out, &a, a.data, b.data, a.count / width, width);
    else if (a.rank != 3 || a.shape[0] != 2)
        status = cli_fail(CLI_FAILED,
                          "%s must be (2, rows, pairs), cos and sin; or "
                          "give cos and sin as two files",
                          a.name);
    else
        status = run_table(out, &a, a.data, a.data + a.count / 2, a.shape[1], width);
    cli_array_free(&a);
    cli_array_free(&b);
    return status;
}

static double worst(const double *a, const double *b, int64_t count, double times,
                    int is_inverse)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double want = is_inverse ? 1 / (times * b[i]) : times * b[i];
        if (want == 0 || !isfinite(want)) {
            most = fabs(a[i]) > 1e-20 && want == 0 ? INFINITY : most;
            continue;
        }
        const double off = fabs(a[i] / want - 1);
        most = off > most ? off : most;
    }
    return most;
}

static void compare_rule(cli_answers *out, const cli_array *a, const cli_rule *rule,
                         double noise)
{
    static const char *const ways[] = {"", ", as periods (1 / frequency)"};
    for (int inverse = 0; inverse < 2; inverse++) {
        const double off = worst(a->data, rule->inv_freq, a->count, 1, inverse);
        if (off <= noise) {
            json_object *d = json_object_new_object();
            cli_json_set_integer(d, "head_dim", rule->head_dim);
            cli_json_set_integer(d, "rotary_dim", rule->rotary_dim);
            cli_json_text(d, "rule", rule->text);
            cli_json_set_number(d, "rope_theta", rule->rope_theta);
            cli_json_flag(d, "inverse", inverse);
            cli_json_text(d, "presets", rule->presets);
            cli_answers_add(out, off, d, "%d pairs, %s%s%s%s%s", rule->num_pairs,
                            rule->text, ways[inverse], rule->presets ? " (" : "",
                            rule->presets ? rule->presets : "",
                            rule->presets ? ")" : "");
            return;
        }
    }
}

int cli_identify_freqs(cli_answers *out, const cli_identify_args *args,
                       const char *const *operands)
{
    cli_array a;
    cli_rules rules = {0};
    int status = cli_array_read(&a, operands[0], args->bf16);
    if (status == CLI_DONE && (a.count < 1 || a.count > 2048))
        status = cli_fail(CLI_FAILED, "%s has %lld elements, must have 1 to 2048",
                          a.name, (long long)a.count);
    if (status == CLI_DONE)
        status = cli_rules_make(&rules, 0, (int32_t)a.count);
    static const double noises[] = {FLOAT_NOISE, BF16_NOISE};
    for (int n = 0; n < 2 && status == CLI_DONE && out->count == 0; n++) {
        for (size_t i = 0; i < rules.count; i++)
            compare_rule(out, &a, &rules.items[i], noises[n]);
        if (out->count > 0 && n == 1)
            cli_answers_say(out,
                            "frequencies are off by up to %.2g: rounded to "
                            "bfloat16",
                            out->items[0].residual);
    }
    cli_rules_free(&rules);
    cli_array_free(&a);
    return status;
}

typedef struct family {
    const char *name;
    pe_sinusoid_order order;
    double shift;
} family;

static const family families[] = {
    {"sin cos interleaved (Vaswani et al. 2017)", PE_SIN_COS_INTERLEAVED, 0},
    {"sin and cos halves (Marian, tensor2tensor's exponent i / half)",
     PE_SIN_COS_HALVES, 0},
    {"sin and cos halves, i / (half - 1) (fairseq, Whisper, M2M100)", PE_SIN_COS_HALVES,
     1},
    {"cos and sin halves (diffusers, ggml timestep)", PE_COS_SIN_HALVES, 0},
    {"cos and sin halves, i / (half - 1)", PE_COS_SIN_HALVES, 1},
    {"sin cos interleaved, i / (half - 1)", PE_SIN_COS_INTERLEAVED, 1},
};

/* Rows of zeroes are a padding position and say nothing; *skipped counts them. */
static double compare_table(const cli_array *a, const float *table, int64_t dim,
                            int64_t *skipped)
{
    double off = 0, power = 0;
    *skipped = 0;
    for (int64_t t = 0; t < a->count / dim; t++) {
        double row_off = 0, row_power = 0;
        for (int64_t i = 0; i < dim; i++) {
            const double d = a->data[t * dim + i] - (double)table[t * dim + i];
            row_off += d * d;
            row_power += a->data[t * dim + i] * a->data[t * dim + i];
        }
        if (row_power == 0) {
            ++*skipped;
            continue;
        }
        off += row_off;
        power += row_power;
    }
    return power > 0 ? sqrt(off / power) : INFINITY;
}

int cli_identify_sinusoidal(cli_answers *out, const cli_identify_args *args,
                            const char *const *operands)
{
    static const int64_t starts[] = {0, 1, 2, -1, 3};
    cli_array a;
    float *table = NULL;
    int status = cli_array_read(&a, operands[0], args->bf16);
    const int64_t dim = status == CLI_DONE ? a.shape[a.rank - 1] : 0;
    if (status == CLI_DONE &&
        (a.rank < 2 || a.count == 0 || dim < 2 || dim > 65536 ||
         (table = malloc((size_t)a.count * sizeof *table)) == NULL))
        status = cli_fail(CLI_FAILED, "%s must be (rows, model_dim)", a.name);
    for (size_t f = 0; f < CLI_COUNT(families) && status == CLI_DONE; f++) {
        const pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                                         .order = families[f].order,
                                         .model_dim = (int32_t)dim,
                                         .downscale_freq_shift = families[f].shift};
        pe_absolute *plan = NULL;
        if (pe_sinusoidal_create(&plan, &spec, NULL, NULL) != PE_OK)
            continue;
        for (size_t k = 0; k < CLI_COUNT(starts); k++) {
            const pe_positions at = {.start = starts[k]};
            int64_t skipped = 0;
            pe_tensor y;
            pe_tensor_bshd(&y, PE_F32, table, 1, a.count / dim, 1, dim);
            if (pe_absolute_fill(plan, &at, &y, NULL) != PE_OK)
                continue;
            const double off = compare_table(&a, table, dim, &skipped);
            if (off > BF16_NOISE)
                continue;
            json_object *d = json_object_new_object();
            cli_json_text(d, "order",
                          cli_choice_name(cli_order_names, families[f].order));
            cli_json_set_number(d, "downscale_freq_shift", families[f].shift);
            cli_json_set_integer(d, "start", starts[k]);
            cli_json_set_integer(d, "padding_rows", skipped);
            cli_answers_add(out, off, d, "%s, row 0 is position %lld", families[f].name,
                            (long long)starts[k]);
            if (skipped > 0)
                cli_answers_say(out, "%lld rows are zeroes: padding positions",
                                (long long)skipped);
        }
        pe_absolute_destroy(plan);
    }
    free(table);
    cli_array_free(&a);
    return status;
}

int cli_identify_slopes(cli_answers *out, const cli_identify_args *args,
                        const char *const *operands)
{
    static const pe_slope_recipe recipes[] = {PE_SLOPES_PUBLISHED, PE_SLOPES_GEOMETRIC};
    static const double max_biases[] = {8, 16, 4, 1, 2, 32};
    cli_array a;
    int status = cli_array_read(&a, operands[0], args->bf16);
    if (status == CLI_DONE && (a.count < 1 || a.count > 65536))
        status = cli_fail(CLI_FAILED, "%s has %lld elements, must have 1 to 65536",
                          a.name, (long long)a.count);
    for (size_t r = 0; r < CLI_COUNT(recipes) && status == CLI_DONE; r++) {
        for (size_t m = 0; m < CLI_COUNT(max_biases); m++) {
            const pe_bias_spec spec = {.struct_size = sizeof spec,
                                       .type = PE_BIAS_ALIBI,
                                       .form = PE_BIAS_CAUSAL,
                                       .num_heads = (int32_t)a.count,
                                       .slope_recipe = recipes[r],
                                       .max_bias = max_biases[m]};
            pe_bias *bias = NULL;
            if (pe_bias_create(&bias, &spec, NULL, NULL) != PE_OK)
                continue;
            const float *slopes = pe_bias_slopes(bias);
            double off = 0;
            for (int64_t h = 0; h < a.count; h++) {
                const double d = fabs(fabs(a.data[h]) / (double)slopes[h] - 1);
                off = d > off ? d : off;
            }
            if (off <= BF16_NOISE) {
                json_object *d = json_object_new_object();
                cli_json_text(d, "recipe",
                              cli_choice_name(cli_recipe_names, recipes[r]));
                cli_json_set_number(d, "max_bias", max_biases[m]);
                cli_json_set_integer(d, "num_heads", a.count);
                cli_answers_add(out, off, d, "%s slopes of %lld heads, max_bias %g%s%s",
                                cli_choice_name(cli_recipe_names, recipes[r]),
                                (long long)a.count, max_biases[m],
                                a.data[0] < 0 ? ", with a minus sign" : "",
                                off > FLOAT_NOISE ? ", rounded to bfloat16" : "");
            }
            pe_bias_destroy(bias);
        }
    }
    cli_array_free(&a);
    return status;
}
