/* SPDX-License-Identifier: MIT
 *
 * linear_rope.c - linear attention with rotary positions (RoFormer's third point): twice
 * the text takes twice the time, and moving all positions changes nothing */
#include <math.h>
#include <posenc/attention.h>
#include <stdio.h>

enum { N = 64, H = 2, D = 16, DOUBLES = D * (D + 1) + 3 * D };

static float x[N * H * D], out[2][N * H * D];
static _Alignas(64) double work[DOUBLES];

int main(void)
{
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = D};
    pe_rope *rope;
    pe_tensor t, o;
    pe_error error;
    double worst = 0, size = 0;
    spec.pairs.pairing = PE_HALF_SPLIT, spec.freqs.rope_theta = 10000;
    for (int i = 0; i < N * H * D; i++)
        x[i] = (float)(i * 7919 % 997) / 499 - 1;
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    pe_tensor_bshd(&t, PE_F32, x, 1, N, H, D);
    for (int i = 0; i < 2; i++) {
        const pe_positions at = {.start = i * 1000};
        pe_tensor_bshd(&o, PE_F32, out[i], 1, N, H, D);
        if (pe_linear_attention(rope, PE_MASK_CAUSAL, &at, &at, &t, &t, &t, &o, work,
                                sizeof work, &error) != PE_OK)
            return fprintf(stderr, "%s\n", error.message), 1;
    }
    for (int i = 0; i < N * H * D; i++) {
        worst = fmax(worst, fabs((double)(out[0][i] - out[1][i])));
        size = fmax(size, fabs((double)out[0][i]));
    }
    printf("outputs up to %.2f move by at most %.1g with all positions\n", size, worst);
    pe_rope_destroy(rope);
    return !(worst < 1e-5 && size > 0.1);
}
