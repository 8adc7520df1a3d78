/* SPDX-License-Identifier: MIT
 *
 * lesson_rope.c - queries and keys that turn: two dimensions, direction, complex
 */
#include "lesson_tools.h"
#include "lesson_topics.h"

#include <math.h>

static const double theta = 0.5;
static const float unit[2] = {1, 0}, q[2] = {1, 2}, k[2] = {3, 1};

typedef struct place {
    int64_t m, n;
} place;

static int score_at(const pe_rope *rope, const float *a, const float *b,
                    const place *places, int count, double *scores)
{
    int status = CLI_DONE;
    for (int i = 0; i < count && status == CLI_DONE; i++)
        status = lesson_score(rope, a, places[i].m, b, places[i].n, &scores[i]);
    return status;
}

/* The mean of cos(distance * inv_freq): the score of q = k = 1 over that at 0. */
static int add_decay(lesson_numbers *numbers)
{
    enum { DIM = 128 };
    static const int64_t distances[] = {0, 1, 4, 16, 64, 256, 1024};
    double scores[CLI_COUNT(distances)];
    float ones[DIM];
    pe_rope *rope;
    int status = lesson_rope_create(&rope, DIM, PE_HALF_SPLIT, NULL);
    for (int i = 0; i < DIM; i++)
        ones[i] = 1;
    for (size_t i = 0; i < CLI_COUNT(distances) && status == CLI_DONE; i++) {
        status = lesson_score(rope, ones, distances[i], ones, 0, &scores[i]);
        scores[i] /= DIM;
    }
    if (status == CLI_DONE)
        lesson_set_row(numbers, "decay", scores, CLI_COUNT(scores));
    pe_rope_destroy(rope);
    return status;
}

/* Position interpolation: a frequency over 4 puts position p where p / 4 was. */
static int add_interpolation(lesson_numbers *numbers)
{
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = 2,
        .pairs = {.pairing = PE_INTERLEAVED},
        .freqs = {.rope_type = PE_ROPE_LINEAR, .rope_theta = 10000, .factor = 4}};
    pe_rope *rope;
    pe_error error;
    if (pe_rope_create(&rope, &spec, &lesson_env, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    lesson_set(numbers, "interpolated", 8191 * pe_rope_get_info(rope)->inv_freq[0]);
    pe_rope_destroy(rope);
    return CLI_DONE;
}

int lesson_rope(lesson_numbers *numbers)
{
    static const place same[] = {{2, 0}, {5, 3}, {4, 0}},
                       general[] = {{2, 0}, {5, 3}, {9, 7}};
    double unit_scores[3], scores[3], dot, cross;
    float q_turned[2], k_turned[2], c, s;
    pe_rope *rope;
    int status;
    if ((status = lesson_rope_create(&rope, 2, PE_INTERLEAVED, &theta)) != CLI_DONE ||
        (status = score_at(rope, unit, unit, same, 3, unit_scores)) != CLI_DONE ||
        (status = score_at(rope, q, k, general, 3, scores)) != CLI_DONE ||
        (status = lesson_cos_sin(rope, 2, &c, &s)) != CLI_DONE ||
        (status = lesson_turn(rope, 5, q, q_turned)) != CLI_DONE ||
        (status = lesson_turn(rope, 3, k, k_turned)) != CLI_DONE)
        goto done;
    dot = lesson_dot(q, k, 2);
    cross = (double)q[0] * (double)k[1] - (double)q[1] * (double)k[0];
    lesson_set(numbers, "theta", theta);
    lesson_set_row(numbers, "unit_scores", unit_scores, 3);
    lesson_set_floats(numbers, "q", q, 0, 2);
    lesson_set_floats(numbers, "k", k, 0, 2);
    lesson_set(numbers, "dot", dot);
    lesson_set(numbers, "cross", cross);
    lesson_set(numbers, "delta", 2 * theta);
    lesson_set_float(numbers, "cos", c);
    lesson_set_float(numbers, "sin", s);
    lesson_set(numbers, "formula", dot * (double)c + cross * (double)s);
    lesson_set_floats(numbers, "q_turned", q_turned, 0, 2);
    lesson_set_floats(numbers, "k_turned", k_turned, 0, 2);
    lesson_set_row(numbers, "scores", scores, 3);
    lesson_set(numbers, "length", sqrt(lesson_dot(q, q, 2)));
    lesson_set(numbers, "length_turned", sqrt(lesson_dot(q_turned, q_turned, 2)));
    status = add_decay(numbers);
    if (status == CLI_DONE)
        status = add_interpolation(numbers);
done:
    pe_rope_destroy(rope);
    return status;
}

int lesson_direction(lesson_numbers *numbers)
{
    static const place both[] = {{5, 3}, {3, 5}};
    double scores[2], unit_scores[2];
    float c, s;
    pe_rope *rope;
    int status;
    if ((status = lesson_rope_create(&rope, 2, PE_INTERLEAVED, &theta)) == CLI_DONE &&
        (status = score_at(rope, q, k, both, 2, scores)) == CLI_DONE &&
        (status = score_at(rope, unit, unit, both, 2, unit_scores)) == CLI_DONE &&
        (status = lesson_cos_sin(rope, -2, &c, &s)) == CLI_DONE) {
        const double dot = lesson_dot(q, k, 2),
                     cross = (double)q[0] * (double)k[1] - (double)q[1] * (double)k[0];
        lesson_set(numbers, "dot", dot);
        lesson_set(numbers, "cross", cross);
        lesson_set(numbers, "delta", -2 * theta);
        lesson_set_float(numbers, "cos", c);
        lesson_set_float(numbers, "sin", s);
        lesson_set(numbers, "formula", dot * (double)c + cross * (double)s);
        lesson_set_row(numbers, "scores", scores, 2);
        lesson_set_row(numbers, "unit_scores", unit_scores, 2);
    }
    pe_rope_destroy(rope);
    return status;
}

/* A pair (a, b) is a + ib, and turning is multiplying by cos + i sin. */
int lesson_complex(lesson_numbers *numbers)
{
    static const place at[] = {{5, 3}};
    float c, s, c5, s5, turned[2];
    double score;
    pe_rope *rope;
    int status;
    if ((status = lesson_rope_create(&rope, 2, PE_INTERLEAVED, &theta)) == CLI_DONE &&
        (status = lesson_cos_sin(rope, 5, &c5, &s5)) == CLI_DONE &&
        (status = lesson_cos_sin(rope, 2, &c, &s)) == CLI_DONE &&
        (status = lesson_turn(rope, 5, q, turned)) == CLI_DONE &&
        (status = score_at(rope, q, k, at, 1, &score)) == CLI_DONE) {
        const double re = (double)q[0] * (double)k[0] + (double)q[1] * (double)k[1],
                     im = (double)q[1] * (double)k[0] - (double)q[0] * (double)k[1];
        const double product[2] = {
            (double)q[0] * (double)c5 - (double)q[1] * (double)s5,
            (double)q[0] * (double)s5 + (double)q[1] * (double)c5};
        lesson_set_float(numbers, "cos_5", c5);
        lesson_set_float(numbers, "sin_5", s5);
        lesson_set_row(numbers, "product", product, 2);
        lesson_set_floats(numbers, "turned", turned, 0, 2);
        lesson_set(numbers, "re", re);
        lesson_set(numbers, "im", im);
        lesson_set_float(numbers, "cos", c);
        lesson_set_float(numbers, "sin", s);
        lesson_set(numbers, "formula", re * (double)c - im * (double)s);
        lesson_set(numbers, "score", score);
    }
    pe_rope_destroy(rope);
    return status;
}
