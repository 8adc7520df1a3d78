/* SPDX-License-Identifier: MIT
 *
 * lesson_compare.c - the four methods on one query and key, near and far from the start
 *
 * The learned table is filled with arbitrary numbers: nothing trained it, and nothing
 * in the lesson rests on what they are. */
#include "lesson_tools.h"
#include "lesson_topics.h"

enum { DIM = 4, ROWS = 128, PLACES = 2, METHODS = 4 };

static const float q[DIM] = {1, 0, 0.5F, 1}, k[DIM] = {0, 1, 1, 0.5F};
static const int64_t places[PLACES][2] = {{2, 0}, {102, 100}};

/* Adds the encodings of rows m and n to query and key. */
static double score_added(const float *pm, const float *pn)
{
    float a[DIM], b[DIM];
    for (int i = 0; i < DIM; i++) {
        a[i] = q[i] + pm[i];
        b[i] = k[i] + pn[i];
    }
    return lesson_dot(a, b, DIM);
}

static int score_sinusoidal(double *scores)
{
    static float table[ROWS][DIM];
    const int status = lesson_sinusoids(0, ROWS, DIM, &table[0][0]);
    for (int i = 0; i < PLACES && status == CLI_DONE; i++)
        scores[i] = score_added(table[places[i][0]], table[places[i][1]]);
    return status;
}

/* Multiples of 2^-10 in [-0.5, 0.5), scattered by Knuth's multiplicative hash. */
static float arbitrary(uint32_t n)
{
    return (float)((n + 1) * 2654435761U >> 22) / 1024 - 0.5F;
}

static int score_learned(double *scores)
{
    static float table[ROWS][DIM], rows[ROWS][DIM];
    const pe_positions at = {.start = 0};
    pe_tensor weight, y;
    pe_absolute *plan;
    pe_error error;
    for (uint32_t n = 0; n < ROWS * DIM; n++)
        table[n / DIM][n % DIM] = arbitrary(n);
    pe_tensor_bshd(&weight, PE_F32, table, 1, ROWS, 1, DIM);
    pe_tensor_bshd(&y, PE_F32, rows, 1, ROWS, 1, DIM);
    const pe_learned_spec spec = {.struct_size = sizeof spec, .weight = &weight};
    pe_status status = pe_learned_create(&plan, &spec, &lesson_env, &error);
    if (status == PE_OK)
        status = pe_absolute_fill(plan, &at, &y, &error);
    pe_absolute_destroy(plan);
    if (status != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    for (int i = 0; i < PLACES; i++)
        scores[i] = score_added(rows[places[i][0]], rows[places[i][1]]);
    return CLI_DONE;
}

static int score_rope(double *scores)
{
    pe_rope *rope;
    int status = lesson_rope_create(&rope, DIM, PE_INTERLEAVED, NULL);
    for (int i = 0; i < PLACES && status == CLI_DONE; i++)
        status = lesson_score(rope, q, places[i][0], k, places[i][1], &scores[i]);
    pe_rope_destroy(rope);
    return status;
}

static int score_alibi(double *scores)
{
    pe_bias *bias;
    pe_error error;
    int status = lesson_alibi_create(&bias, 8, NULL);
    if (status != CLI_DONE)
        return status;
    for (int i = 0; i < PLACES && status == CLI_DONE; i++) {
        const pe_positions q_at = {.start = places[i][0]},
                           k_at = {.start = places[i][1]};
        float added[8];
        pe_tensor y;
        pe_tensor_bhsd(&y, PE_F32, added, 1, 8, 1, 1);
        if (pe_bias_fill(bias, &q_at, &k_at, &y, &error) != PE_OK)
            status = cli_fail(CLI_FAILED, "%s", error.message);
        else
            scores[i] = lesson_dot(q, k, DIM) + (double)added[0];
    }
    pe_bias_destroy(bias);
    return status;
}

int lesson_compare(lesson_numbers *numbers)
{
    static int (*const methods[METHODS])(double *) = {score_sinusoidal, score_learned,
                                                      score_rope, score_alibi};
    double scores[METHODS][PLACES], changes[METHODS];
    for (int i = 0; i < METHODS; i++) {
        const int status = methods[i](scores[i]);
        if (status != CLI_DONE)
            return status;
        changes[i] = scores[i][1] - scores[i][0];
    }
    lesson_set_floats(numbers, "q", q, 0, DIM);
    lesson_set_floats(numbers, "k", k, 0, DIM);
    lesson_set(numbers, "dot", lesson_dot(q, k, DIM));
    lesson_set_rows(numbers, "scores", &scores[0][0], METHODS, PLACES);
    lesson_set_row(numbers, "changes", changes, METHODS);
    return CLI_DONE;
}
