/* SPDX-License-Identifier: MIT
 *
 * opt_learned.c - OPT's learned table: a left-padded batch, and what lies past its end
 *
 * OPT adds row position + 2 of a table of 2048 + 2 rows; padding, at position -1, has
 * row 1.  Here row r holds the number r, so that the sum names the row it came from. */
#include <posenc/posenc.h>
#include <posenc/positions.h>
#include <stdio.h>

enum { B = 2, T = 5, D = 4, ROWS = 2050 };

static float table[ROWS][D], x[B][T][D];

int main(void)
{
    const uint8_t mask[B * T] = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const float rows[B * T] = {1, 1, 2, 3, 4, 2, 3, 4, 5, 6};
    int64_t ids[B * T], next[B];
    pe_tensor weight, h;
    pe_absolute *plan;
    pe_error error;
    int wrong = 0;

    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < D; i++)
            table[r][i] = (float)r;
    pe_tensor_bshd(&weight, PE_F32, table, 1, ROWS, 1, D);
    pe_tensor_bshd(&h, PE_F32, x, B, T, 1, D);
    const pe_learned_spec spec = {
        .struct_size = sizeof spec, .weight = &weight, .position_offset = 2};
    const pe_positions at = {.ids = ids, .batch_stride = T};
    if (pe_positions_from_mask(mask, B, T, -1, ids, next, &error) != PE_OK ||
        pe_learned_create(&plan, &spec, NULL, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    if (pe_absolute_add(plan, &at, &h, &h, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int n = 0; n < B * T; n++)
        wrong += x[n / T][n % T][0] != rows[n];
    printf("%lld positions, padding has row %g\n",
           (long long)pe_absolute_capacity(plan), (double)x[0][0][0]);

    /* Row 0 stands at 2046: its third token has no row, and nothing is written. */
    const pe_positions late = {.start = 2046};
    const pe_status status = pe_absolute_add(plan, &late, &h, &h, &error);
    wrong += status != PE_E_POSITION || x[0][0][0] != 1;
    printf("refused: %s\n", status == PE_OK ? "no" : error.message);
    pe_absolute_destroy(plan);
    return wrong != 0;
}
