/* SPDX-License-Identifier: MIT
 *
 * lesson_order.c - why order is lost, and where each method puts it back
 *
 * Three words of two numbers each are query, key and value alike, so that nothing but
 * their order can make a difference. */
#include "lesson_tools.h"
#include "lesson_topics.h"

#include "posenc/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 3, DIM = 2 };

static const float words[WORDS][DIM] = {{1, 0}, {0, 1}, {1, 1}}; /* dog bites man */

/* Attention of the words among themselves: their outputs, and their weights. */
static pe_status attend(const float *x, float *y, float *weights, pe_error *error)
{
    const pe_attention_spec spec = {.struct_size = sizeof spec,
                                    .num_heads = 1,
                                    .num_kv_heads = 1,
                                    .head_dim = DIM,
                                    .visible = {.mask = PE_MASK_NONE}};
    pe_tensor in, out, scores;
    pe_tensor_bshd(&in, PE_F32, x, 1, WORDS, 1, DIM);
    pe_tensor_bshd(&out, PE_F32, y, 1, WORDS, 1, DIM);
    pe_tensor_bhsd(&scores, PE_F32, weights, 1, 1, WORDS, WORDS);
    const pe_attention_args args = {.struct_size = sizeof args,
                                    .q = &in,
                                    .k = &in,
                                    .v = &in,
                                    .out = &out,
                                    .scores = &scores};
    pe_attention *plan;
    void *workspace = NULL;
    size_t size = 0;
    pe_status status = pe_attention_create(&plan, &spec, &lesson_env, error);
    if (status == PE_OK)
        status = pe_attention_workspace(plan, &args, &size, NULL, error);
    if (status == PE_OK) {
        workspace = aligned_alloc(64, (size + 63) / 64 * 64);
        status = pe_attention_forward(plan, &args, workspace, size, error);
    }
    free(workspace);
    pe_attention_destroy(plan);
    return status;
}

/* Turns the order round: man bites dog. */
static void reverse(const float *x, float *y)
{
    for (int t = 0; t < WORDS; t++)
        memcpy(y + DIM * t, x + DIM * (WORDS - 1 - t), DIM * sizeof *x);
}

int lesson_order(lesson_numbers *numbers)
{
    float reversed[WORDS][DIM], sines[WORDS][DIM], placed[WORDS][DIM],
        placed_reversed[WORDS][DIM], y[WORDS][DIM], weights[WORDS][WORDS];
    double scores[WORDS];
    pe_error error;
    int status = lesson_sinusoids(0, WORDS, DIM, &sines[0][0]);
    if (status != CLI_DONE)
        return status;
    reverse(&words[0][0], &reversed[0][0]);
    for (int t = 0; t < WORDS; t++) {
        scores[t] = lesson_dot(words[0], words[t], DIM) / sqrt(DIM);
        for (int i = 0; i < DIM; i++) {
            placed[t][i] = words[t][i] + sines[t][i];
            placed_reversed[t][i] = reversed[t][i] + sines[t][i];
        }
    }
    const struct {
        const float *x;
        const char *name;
    } runs[] = {{&words[0][0], "out"},
                {&reversed[0][0], "out_reversed"},
                {&placed[0][0], "placed_out"},
                {&placed_reversed[0][0], "placed_out_reversed"}};

    lesson_set_floats(numbers, "words", &words[0][0], WORDS, DIM);
    lesson_set_row(numbers, "scores", scores, WORDS);
    lesson_set_floats(numbers, "sinusoids", &sines[0][0], WORDS, DIM);
    for (size_t i = 0; i < CLI_COUNT(runs); i++) {
        if (attend(runs[i].x, &y[0][0], &weights[0][0], &error) != PE_OK)
            return cli_fail(CLI_FAILED, "%s", error.message);
        if (i == 0)
            lesson_set_floats(numbers, "weights", weights[0], 0, WORDS);
        lesson_set_floats(numbers, runs[i].name, &y[0][0], WORDS, DIM);
    }
    return CLI_DONE;
}

/* The smallest network that reads one word after the other: h = h / 2 + x. */
int lesson_recurrent(lesson_numbers *numbers)
{
    const double x[WORDS] = {1, 2, 3};
    double h = 0, h_reversed = 0, states[WORDS], states_reversed[WORDS];
    for (int t = 0; t < WORDS; t++) {
        states[t] = h = 0.5 * h + x[t];
        states_reversed[t] = h_reversed = 0.5 * h_reversed + x[WORDS - 1 - t];
    }
    lesson_set_row(numbers, "x", x, WORDS);
    lesson_set_row(numbers, "states", states, WORDS);
    lesson_set_row(numbers, "states_reversed", states_reversed, WORDS);
    return CLI_DONE;
}

int lesson_where(lesson_numbers *numbers)
{
    (void)numbers;
    return CLI_DONE;
}

int lesson_glossary(lesson_numbers *numbers)
{
    (void)numbers;
    return CLI_DONE;
}
