/* SPDX-License-Identifier: MIT
 *
 * lesson_pairs.c - a vector of 16 numbers as 8 pairs that turn
 */
#include "lesson_tools.h"
#include "lesson_topics.h"

#include <math.h>

enum { DIM = 16, PAIRS = DIM / 2, POSITION = 5 };

/* y = x * cos + rotate_half(x) * sin with cos and sin at both places of each pair, as
 * Python models write it; the largest difference from y. */
static int compare_rotate_half(const pe_rope *rope, const float *x, const float *y,
                               double *largest)
{
    float c[DIM], s[DIM];
    const pe_positions at = {.start = POSITION};
    pe_tensor cosines, sines;
    pe_error error;
    pe_tensor_bshd(&cosines, PE_F32, c, 1, 1, 1, DIM);
    pe_tensor_bshd(&sines, PE_F32, s, 1, 1, 1, DIM);
    if (pe_rope_table(rope, &at, &cosines, &sines, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    for (int i = 0; i < DIM; i++) {
        const double half = i < PAIRS ? -(double)x[i + PAIRS] : (double)x[i - PAIRS];
        const double difference =
            fabs((double)x[i] * (double)c[i] + half * (double)s[i] - (double)y[i]);
        *largest = difference > *largest ? difference : *largest;
    }
    return CLI_DONE;
}

static void add_pairs(lesson_numbers *numbers, const double *inv_freq, const float *c,
                      const float *s)
{
    double angles[PAIRS], wavelengths[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        angles[i] = POSITION * inv_freq[i];
        wavelengths[i] = 2 * LESSON_PI / inv_freq[i];
    }
    lesson_set_row(numbers, "inv_freq", inv_freq, PAIRS);
    lesson_set_row(numbers, "wavelengths", wavelengths, PAIRS);
    lesson_set_row(numbers, "angles", angles, PAIRS);
    lesson_set_floats(numbers, "cos", c, 0, PAIRS);
    lesson_set_floats(numbers, "sin", s, 0, PAIRS);
}

int lesson_pairs(lesson_numbers *numbers)
{
    float x[DIM], y[DIM], half[DIM], c[PAIRS], s[PAIRS];
    double largest = 0;
    pe_rope *rope = NULL, *split = NULL;
    int status;
    for (int i = 0; i < DIM; i++)
        x[i] = (float)(i + 1);
    if ((status = lesson_rope_create(&rope, DIM, PE_INTERLEAVED, NULL)) == CLI_DONE &&
        (status = lesson_rope_create(&split, DIM, PE_HALF_SPLIT, NULL)) == CLI_DONE &&
        (status = lesson_cos_sin(rope, POSITION, c, s)) == CLI_DONE &&
        (status = lesson_turn(rope, POSITION, x, y)) == CLI_DONE &&
        (status = lesson_turn(split, POSITION, x, half)) == CLI_DONE &&
        (status = compare_rotate_half(split, x, half, &largest)) == CLI_DONE) {
        add_pairs(numbers, pe_rope_get_info(rope)->inv_freq, c, s);
        lesson_set_integer(numbers, "entries", DIM * DIM);
        lesson_set_integer(numbers, "nonzero", 2 * DIM);
        lesson_set_floats(numbers, "x", x, 0, DIM);
        lesson_set_floats(numbers, "interleaved", y, 0, DIM);
        lesson_set_floats(numbers, "half_split", half, 0, DIM);
        lesson_set(numbers, "length", sqrt(lesson_dot(x, x, DIM)));
        lesson_set(numbers, "length_turned", sqrt(lesson_dot(y, y, DIM)));
        lesson_set(numbers, "rotate_half_difference", largest);
    }
    pe_rope_destroy(rope);
    pe_rope_destroy(split);
    return status;
}
