/* SPDX-License-Identifier: MIT
 *
 * paged_cache.c - new keys into a paged f16 cache by slot, read back by page table
 *
 * The pool is [pages][16][kv_heads][dim].  Writing by slot is the same pool seen as pages
 * of one token; a negative slot (vLLM's padding) is neither read nor written. */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { PAGE = 16, PAGES = 4, KV = 2, DIM = 32, ROWS = 3 };

int main(void)
{
    static uint16_t pool[PAGES * PAGE][KV][DIM];
    static float k[ROWS][KV][DIM], back[ROWS][PAGE][KV][DIM];
    const int64_t position[ROWS] = {3, 15, 0}; /* of the new token of each row */
    const int32_t slot[ROWS] = {2 * PAGE + 3, 15, -1}; /* row 2 is padding */
    const int32_t table[ROWS] = {2, 0, -1};            /* the page of each row */
    const pe_positions at = {.starts = position};
    pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = DIM};
    pe_tensor tk, slots, pages, tback;
    pe_rope *rope;
    pe_error error;
    double worst = 0;

    spec.pairs.pairing = PE_HALF_SPLIT;
    spec.freqs.rope_theta = 10000;
    for (int i = 0; i < ROWS * KV * DIM; i++)
        k[i / (KV * DIM)][i / DIM % KV][i % DIM] = (float)(i % 5) / 4;
    pe_tensor_bshd(&tk, PE_F32, k, ROWS, 1, KV, DIM);
    pe_tensor_paged(&slots, PE_F16, pool, PAGES * PAGE, 1, KV, DIM, slot, ROWS, 1);
    pe_tensor_paged(&pages, PE_F16, pool, PAGES, PAGE, KV, DIM, table, ROWS, 1);
    pe_tensor_bshd(&tback, PE_F32, back, ROWS, PAGE, KV, DIM);
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &tk, &slots, &error) != PE_OK ||
        pe_tensor_copy(&pages, &tback, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &tk, &tk, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int b = 0; b < 2; b++) /* the rows that are there */
        for (int i = 0; i < KV * DIM; i++)
            worst = fmax(worst, fabs((double)k[b][i / DIM][i % DIM] -
                                     (double)back[b][position[b]][i / DIM][i % DIM]));
    printf("keys came back within %.1g (f16)\n", worst);

    const int32_t bad[ROWS] = {0, PAGES * PAGE, -1}; /* past the pool: refused */
    slots.page_table = bad;
    const pe_status status = pe_rope_apply(rope, &at, &tk, &slots, &error);
    printf("%s\n", error.message);
    pe_rope_destroy(rope);
    return !(worst < 1e-3 && status == PE_E_POSITION);
}
