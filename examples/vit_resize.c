/* SPDX-License-Identifier: MIT
 *
 * vit_resize.c - ViT's 14 x 14 table and its class row, for an image of 24 x 32 patches
 *
 * The target is given as a size: 14 * (61 / 14.) is under 61, which has cost others a
 * row of patches. */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { FROM = 14, H = 24, W = 32, D = 3 };

static float from[1 + FROM * FROM][D], to[1 + H * W][D];

int main(void)
{
    const pe_resize how = {.mode = PE_RESIZE_CUBIC,
                           .prefix_rows = 1,
                           .from_h = FROM,
                           .from_w = FROM,
                           .to_h = H,
                           .to_w = W};
    pe_tensor table, out;
    pe_error error;
    double worst = 0;

    /* Column 0 counts patches down, 1 across, 2 is the same everywhere. */
    for (int p = 0; p < FROM * FROM; p++) {
        from[1 + p][0] = (float)(p / FROM);
        from[1 + p][1] = (float)(p % FROM);
        from[1 + p][2] = 7;
    }
    from[0][0] = -1;
    pe_tensor_bshd(&table, PE_F32, from, 1, 1 + FROM * FROM, 1, D);
    pe_tensor_bshd(&out, PE_F32, to, 1, 1 + H * W, 1, D);
    if (pe_learned_resize(&how, &table, &out, NULL, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    /* The grid is centred: opposite patches lie as far from the middle, 6.5, as ever, and
     * what is the same everywhere stays so. */
    for (int p = 0; p < H * W; p++) {
        const float *row = to[1 + p], *opposite = to[H * W - p];
        worst = fmax(worst, fabs((double)row[0] + (double)opposite[0] - (FROM - 1)));
        worst = fmax(worst, fabs((double)row[1] + (double)opposite[1] - (FROM - 1)));
        worst = fmax(worst, fabs((double)row[2] - 7));
    }
    printf("class row kept: %g; the grid is centred to %.1g\n", (double)to[0][0],
           worst);
    return to[0][0] != -1 || !(worst < 2e-6);
}
