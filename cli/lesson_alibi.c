/* SPDX-License-Identifier: MIT
 *
 * lesson_alibi.c - ALiBi's slopes, and what they do to a softmax
 */
#include "lesson_tools.h"
#include "lesson_topics.h"

enum { KEYS = 4 };

static const float scores[KEYS] = {2, 1, 3, 2};

/* The scores of the fourth query with the bias of a slope, and their softmax. */
static int weigh(float slope, float *biased, float *weights)
{
    const pe_positions q_at = {.start = KEYS - 1}, k_at = {.start = 0};
    pe_bias *bias;
    pe_tensor x, y, w;
    pe_error error;
    int status = lesson_alibi_create(&bias, 1, &slope);
    if (status != CLI_DONE)
        return status;
    pe_tensor_bhsd(&x, PE_F32, scores, 1, 1, 1, KEYS);
    pe_tensor_bhsd(&y, PE_F32, biased, 1, 1, 1, KEYS);
    pe_tensor_bhsd(&w, PE_F32, weights, 1, 1, 1, KEYS);
    if (pe_bias_add(bias, &q_at, &k_at, &x, &y, &error) != PE_OK ||
        pe_bias_softmax(bias, 1, PE_MASK_CAUSAL, &q_at, &k_at, &x, &w, &error) != PE_OK)
        status = cli_fail(CLI_FAILED, "%s", error.message);
    pe_bias_destroy(bias);
    return status;
}

int lesson_alibi(lesson_numbers *numbers)
{
    static const struct {
        float slope;
        const char *biased, *weights;
    } heads[] = {{0, "biased_none", "softmax_none"},
                 {1 / 2.0F, "biased_half", "softmax_half"},
                 {1 / 256.0F, "biased_256th", "softmax_256th"}};
    static const struct {
        int32_t num_heads;
        const char *name;
    } models[] = {{8, "slopes_8"}, {16, "slopes_16"}, {12, "slopes_12"}};
    static const double distances[KEYS] = {-3, -2, -1, 0};
    int status = CLI_DONE;
    for (size_t i = 0; i < CLI_COUNT(models) && status == CLI_DONE; i++) {
        pe_bias *bias;
        status = lesson_alibi_create(&bias, models[i].num_heads, NULL);
        if (status == CLI_DONE)
            lesson_set_floats(numbers, models[i].name, pe_bias_slopes(bias), 0,
                              models[i].num_heads);
        pe_bias_destroy(bias);
    }
    lesson_set_floats(numbers, "scores", scores, 0, KEYS);
    lesson_set_row(numbers, "distances", distances, KEYS);
    for (size_t i = 0; i < CLI_COUNT(heads) && status == CLI_DONE; i++) {
        float biased[KEYS], weights[KEYS];
        status = weigh(heads[i].slope, biased, weights);
        if (status == CLI_DONE) {
            lesson_set_floats(numbers, heads[i].biased, biased, 0, KEYS);
            lesson_set_floats(numbers, heads[i].weights, weights, 0, KEYS);
        }
    }
    return status;
}
