/* SPDX-License-Identifier: MIT
 *
 * lesson_exercises.c - the four exercises and the three questions
 */
#include "lesson_tools.h"
#include "lesson_topics.h"

static const double theta = 0.5;
static const float unit[2] = {1, 0};

int lesson_exercises(lesson_numbers *numbers)
{
    enum { DIM = 4, HEADS = 16, ROWS = 512, TOKENS = 600 };
    float row[DIM];
    double near_start, later;
    pe_rope *rope = NULL;
    pe_bias *bias = NULL;
    int status;
    if ((status = lesson_sinusoids(4, 1, DIM, row)) == CLI_DONE &&
        (status = lesson_rope_create(&rope, 2, PE_INTERLEAVED, &theta)) == CLI_DONE &&
        (status = lesson_score(rope, unit, 10, unit, 4, &later)) == CLI_DONE &&
        (status = lesson_score(rope, unit, 6, unit, 0, &near_start)) == CLI_DONE &&
        (status = lesson_alibi_create(&bias, HEADS, NULL)) == CLI_DONE) {
        lesson_set_floats(numbers, "pe_4", row, 0, DIM);
        lesson_set(numbers, "score_10_4", later);
        lesson_set(numbers, "score_6_0", near_start);
        lesson_set_floats(numbers, "slopes_16", pe_bias_slopes(bias), 0, HEADS);
        lesson_set_integer(numbers, "rows", ROWS);
        lesson_set_integer(numbers, "tokens", TOKENS);
        lesson_set_integer(numbers, "first_missing", ROWS);
        lesson_set_integer(numbers, "last_missing", TOKENS - 1);
        lesson_set_integer(numbers, "missing", TOKENS - ROWS);
    }
    pe_rope_destroy(rope);
    pe_bias_destroy(bias);
    return status;
}

int lesson_checks(lesson_numbers *numbers)
{
    enum { HEADS = 8 };
    double reach[HEADS], score, moved;
    pe_rope *rope = NULL;
    pe_bias *bias = NULL;
    int status;
    if ((status = lesson_rope_create(&rope, 2, PE_INTERLEAVED, &theta)) == CLI_DONE &&
        (status = lesson_score(rope, unit, 5, unit, 3, &score)) == CLI_DONE &&
        (status = lesson_score(rope, unit, 105, unit, 103, &moved)) == CLI_DONE &&
        (status = lesson_alibi_create(&bias, HEADS, NULL)) == CLI_DONE) {
        for (int h = 0; h < HEADS; h++)
            reach[h] = 1 / (double)pe_bias_slopes(bias)[h];
        lesson_set(numbers, "score_5_3", score);
        lesson_set(numbers, "score_105_103", moved);
        lesson_set_row(numbers, "reach", reach, HEADS);
    }
    pe_rope_destroy(rope);
    pe_bias_destroy(bias);
    return status;
}
