/* SPDX-License-Identifier: MIT
 *
 * lesson_absolute.c - what is added to the input: sinusoids, and a learned table
 */
#include "lesson_tools.h"
#include "lesson_topics.h"

#include <math.h>
#include <string.h>

enum { DIM = 4 };

/* Positions of query and key, two apart at three places of a sentence. */
static const int64_t places[3][2] = {{2, 0}, {5, 3}, {9, 7}};

int lesson_sinusoidal(lesson_numbers *numbers)
{
    enum { ROWS = 5, FAR = 1000000, WIDE = 512, STEP = 2 };
    float rows[ROWS][DIM], far[DIM], c[DIM / 2], s[DIM / 2];
    double divisors[DIM / 2], wavelengths[DIM / 2];
    pe_rope *narrow = NULL, *wide = NULL;
    int status;
    if ((status = lesson_sinusoids(0, ROWS, DIM, &rows[0][0])) != CLI_DONE ||
        (status = lesson_sinusoids(FAR, 1, DIM, far)) != CLI_DONE ||
        (status = lesson_rope_create(&narrow, DIM, PE_INTERLEAVED, NULL)) != CLI_DONE ||
        (status = lesson_rope_create(&wide, WIDE, PE_INTERLEAVED, NULL)) != CLI_DONE ||
        (status = lesson_cos_sin(narrow, STEP, c, s)) != CLI_DONE)
        goto done;

    const double *inv_freq = pe_rope_get_info(narrow)->inv_freq;
    for (int i = 0; i < DIM / 2; i++) {
        divisors[i] = 1 / inv_freq[i];
        wavelengths[i] = 2 * LESSON_PI / inv_freq[i];
    }
    /* PE(i + k) out of PE(i): angles add. */
    const double moved[2] = {
        (double)rows[1][0] * (double)c[0] + (double)rows[1][1] * (double)s[0],
        (double)rows[1][1] * (double)c[0] - (double)rows[1][0] * (double)s[0]};

    lesson_set_row(numbers, "divisors", divisors, DIM / 2);
    lesson_set_row(numbers, "wavelengths", wavelengths, DIM / 2);
    lesson_set(numbers, "longest",
               2 * LESSON_PI / pe_rope_get_info(wide)->inv_freq[WIDE / 2 - 1]);
    lesson_set_floats(numbers, "pe", &rows[0][0], ROWS, DIM);
    lesson_set_floats(numbers, "cos", c, 0, DIM / 2);
    lesson_set_floats(numbers, "sin", s, 0, DIM / 2);
    lesson_set_row(numbers, "moved", moved, 2);
    lesson_set_floats(numbers, "far", far, 0, DIM);
done:
    pe_rope_destroy(narrow);
    pe_rope_destroy(wide);
    return status;
}

int lesson_mixing(lesson_numbers *numbers)
{
    static const float x[DIM] = {1, 0, 0.5F, 1}, y[DIM] = {0, 1, 1, 0.5F};
    float pe[10][DIM];
    double terms[3][5], turned[3];
    pe_rope *rope = NULL;
    int status = lesson_sinusoids(0, 10, DIM, &pe[0][0]);
    if (status == CLI_DONE)
        status = lesson_rope_create(&rope, DIM, PE_INTERLEAVED, NULL);
    for (int i = 0; i < 3 && status == CLI_DONE; i++) {
        const float *pm = pe[places[i][0]], *pn = pe[places[i][1]];
        terms[i][0] = lesson_dot(x, y, DIM);
        terms[i][1] = lesson_dot(x, pn, DIM);
        terms[i][2] = lesson_dot(pm, y, DIM);
        terms[i][3] = lesson_dot(pm, pn, DIM);
        terms[i][4] = terms[i][0] + terms[i][1] + terms[i][2] + terms[i][3];
        status = lesson_score(rope, x, places[i][0], y, places[i][1], &turned[i]);
    }
    if (status == CLI_DONE) {
        lesson_set_floats(numbers, "x", x, 0, DIM);
        lesson_set_floats(numbers, "y", y, 0, DIM);
        lesson_set_rows(numbers, "terms", &terms[0][0], 3, 5);
        lesson_set_row(numbers, "rope", turned, 3);
    }
    pe_rope_destroy(rope);
    return status;
}

enum { ROWS = 512, TOKENS = 600, WIDTH = 2, BERT_DIM = 768 };

/* Row r holds (r, -r), so that a value names the row it came from. */
static void make_table(float table[ROWS][WIDTH])
{
    for (int r = 0; r < ROWS; r++) {
        table[r][0] = (float)r;
        table[r][1] = (float)-r;
    }
}

static pe_status look_up(const pe_tensor *weight, int64_t tokens, float *rows,
                         int64_t *capacity, pe_error *error)
{
    const pe_learned_spec spec = {.struct_size = sizeof spec, .weight = weight};
    const pe_positions at = {.start = 0};
    pe_absolute *plan;
    pe_tensor y;
    pe_tensor_bshd(&y, PE_F32, rows, 1, tokens, 1, WIDTH);
    pe_status status = pe_learned_create(&plan, &spec, &lesson_env, error);
    if (status == PE_OK) {
        *capacity = pe_absolute_capacity(plan);
        status = pe_absolute_fill(plan, &at, &y, error);
    }
    pe_absolute_destroy(plan);
    return status;
}

int lesson_learned(lesson_numbers *numbers)
{
    static float table[ROWS][WIDTH], longer[TOKENS][WIDTH], rows[TOKENS][WIDTH];
    const pe_resize how = {.mode = PE_RESIZE_LINEAR,
                           .from_h = 1,
                           .from_w = ROWS,
                           .to_h = 1,
                           .to_w = TOKENS};
    const int picks[] = {0, 1, 300, TOKENS - 1};
    float picked[CLI_COUNT(picks)][WIDTH], third[WIDTH];
    int64_t capacity, longer_capacity;
    pe_tensor weight, resized;
    pe_error error, refusal;
    make_table(table);
    pe_tensor_bshd(&weight, PE_F32, table, 1, ROWS, 1, WIDTH);
    pe_tensor_bshd(&resized, PE_F32, longer, 1, TOKENS, 1, WIDTH);

    if (look_up(&weight, TOKENS, &rows[0][0], &capacity, &refusal) == PE_OK)
        return cli_fail(CLI_FAILED, "a table of %d rows served %d tokens", ROWS,
                        TOKENS);
    if (look_up(&weight, ROWS, &rows[0][0], &capacity, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    memcpy(third, rows[3], sizeof third);
    if (pe_learned_resize(&how, &weight, &resized, &lesson_env, &error) != PE_OK ||
        look_up(&resized, TOKENS, &rows[0][0], &longer_capacity, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    for (size_t i = 0; i < CLI_COUNT(picks); i++)
        memcpy(picked[i], rows[picks[i]], sizeof picked[i]);

    lesson_set_integer(numbers, "rows", ROWS);
    lesson_set_integer(numbers, "tokens", TOKENS);
    lesson_set_integer(numbers, "capacity", capacity);
    lesson_set_integer(numbers, "last", capacity - 1);
    lesson_set_integer(numbers, "last_token", TOKENS - 1);
    lesson_set_integer(numbers, "missing", TOKENS - capacity);
    lesson_set_integer(numbers, "longer_capacity", longer_capacity);
    lesson_set_integer(numbers, "parameters", (int64_t)ROWS * BERT_DIM);
    lesson_set_text(numbers, "error", refusal.message);
    lesson_set_floats(numbers, "row_3", third, 0, WIDTH);
    lesson_set(numbers, "source_300", (300 + 0.5) * ROWS / TOKENS - 0.5);
    lesson_set_floats(numbers, "resized", &picked[0][0], CLI_COUNT(picks), WIDTH);
    return CLI_DONE;
}
