/* SPDX-License-Identifier: MIT
 *
 * permute_rows.c - Meta's interleaved q and k projections become half-split ones
 */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { HEADS = 2, DIM = 16, ROWS = HEADS * DIM, WIDTH = 3 };

/* Score of head 1: q = Wq x at position 7, k = Wk x at position 4. */
static double score(pe_pairing pairing, float wq[ROWS][WIDTH], float wk[ROWS][WIDTH])
{
    const float x[WIDTH] = {0.5f, -1, 0.25f};
    const pe_positions at[2] = {{.start = 7}, {.start = 4}};
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = DIM};
    float qk[2][ROWS] = {{0}};
    pe_tensor t;
    pe_rope *rope;
    double sum = 0;

    spec.pairs.pairing = pairing;
    spec.freqs.rope_theta = 10000;
    if (pe_rope_create(&rope, &spec, NULL, NULL) != PE_OK)
        return NAN;
    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            qk[n][i / WIDTH] += (n ? wk : wq)[i / WIDTH][i % WIDTH] * x[i % WIDTH];
        pe_tensor_bshd(&t, PE_F32, qk[n], 1, 1, HEADS, DIM);
        if (pe_rope_apply(rope, &at[n], &t, &t, NULL) != PE_OK)
            sum = NAN;
    }
    pe_rope_destroy(rope);
    for (int i = DIM; i < ROWS; i++)
        sum += (double)qk[0][i] * (double)qk[1][i];
    return sum;
}

int main(void)
{
    static float wq[ROWS][WIDTH], wk[ROWS][WIDTH], hq[ROWS][WIDTH], hk[ROWS][WIDTH];
    const pe_pairs pairs = {.pairing = PE_INTERLEAVED, .out_pairing = PE_HALF_SPLIT};
    int64_t rows[ROWS];

    if (pe_pairs_permutation(&pairs, HEADS, DIM, rows, NULL) != PE_OK)
        return 1;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        wq[i / WIDTH][i % WIDTH] = (float)(i * 5 % 17 - 8) / 16;
        wk[i / WIDTH][i % WIDTH] = (float)(i * 7 % 23 - 11) / 16;
    }
    for (int i = 0; i < ROWS * WIDTH; i++) {
        hq[i / WIDTH][i % WIDTH] = wq[rows[i / WIDTH]][i % WIDTH];
        hk[i / WIDTH][i % WIDTH] = wk[rows[i / WIDTH]][i % WIDTH];
    }
    const double meta = score(PE_INTERLEAVED, wq, wk),
                 hf = score(PE_HALF_SPLIT, hq, hk);
    const double wrong = score(PE_HALF_SPLIT, wq, wk);
    printf("score %.5f, converted %.5f, unconverted %.5f\n", meta, hf, wrong);
    return !(fabs(meta - hf) < 1e-5 && fabs(meta - wrong) > 0.02);
}
