/* SPDX-License-Identifier: MIT
 *
 * mrope_image.c - Qwen3-VL: text, an image, text, on three interleaved axes
 *
 * Text advances all axes together; the image starts at the next position and is laid
 * out by row and column; the text behind it starts after the largest id. */
#include <posenc/positions.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 7, H = 4, W = 3, REST = 5, N = TEXT + H * W + REST, DIM = 128 };

int main(void)
{
    static float q[N][DIM], text[DIM];
    static int64_t ids[3][N];
    const pe_mrope_run runs[] = {{.t = TEXT}, {.t = 1, .h = H, .w = W}, {.t = REST}};
    int64_t next;
    const pe_rope_spec spec = {
        .struct_size = sizeof spec,
        .head_dim = DIM,
        .pairs = {.pairing = PE_HALF_SPLIT},
        .axes = {.map = PE_AXIS_INTERLEAVED, .section = {24, 20, 20}},
        .freqs = {.rope_theta = 5e6}};
    const pe_positions at = {.ids = ids[0], .axis_stride = N, .num_axes = 3};
    pe_tensor all, one;
    pe_rope *rope;
    pe_error error;

    if (pe_positions_mrope(runs, 3, 0, N, ids[0], &next, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    const pe_positions last = {.start = next - 1}; /* one plane: text */
    for (int i = 0; i < N * DIM; i++)
        q[i / DIM][i % DIM] = text[i % DIM] = (float)(i % DIM) / DIM;
    pe_tensor_bshd(&all, PE_F32, q, 1, N, 1, DIM);
    pe_tensor_bshd(&one, PE_F32, text, 1, 1, 1, DIM);
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &all, &all, &error) != PE_OK ||
        pe_rope_apply(rope, &last, &one, &one, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    const uint8_t *axis = pe_rope_get_info(rope)->pair_axis;
    /* Text is text however many planes say so; two image columns differ. */
    const int same = memcmp(q[N - 1], text, sizeof text) == 0;
    const int apart = memcmp(q[TEXT], q[TEXT + 1], sizeof text) != 0;
    printf("pairs 0-5 follow axes %d%d%d%d%d%d\n", axis[0], axis[1], axis[2], axis[3],
           axis[4], axis[5]);
    pe_rope_destroy(rope);
    return !(same && apart && next == TEXT + H + REST);
}
