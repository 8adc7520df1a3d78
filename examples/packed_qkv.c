/* SPDX-License-Identifier: MIT
 *
 * packed_qkv.c - prefill over packed QKV in bf16; rows of the batch start elsewhere
 *
 * q and k heads are neighbours, so they are one tensor; v is left out by the head count
 * and must not change. */
#include <posenc/posenc.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 2, LEN = 5, HEADS = 4, KV_HEADS = 2, DIM = 32 };
enum { ALL = HEADS + 2 * KV_HEADS, TURNED = HEADS + KV_HEADS };

int main(void)
{
    static uint16_t qkv[BATCH][LEN][ALL][DIM], one[DIM];
    const int64_t row_start[BATCH] = {0, 17};
    const pe_positions at = {.starts = row_start}, last = {.start = 17 + LEN - 1};
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    pe_tensor qk, single;
    pe_rope *rope;
    pe_error error;
    int wrong = 0;

    memset(qkv, 0x3f, sizeof qkv); /* 0x3f3f: 0.746 in bf16 */
    memset(one, 0x3f, sizeof one);
    pe_tensor_bshd(&qk, PE_BF16, qkv, BATCH, LEN, ALL, DIM);
    qk.num_heads = TURNED;
    pe_tensor_bshd(&single, PE_BF16, one, 1, 1, 1, DIM);
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK ||
        pe_rope_apply(rope, &at, &qk, &qk, &error) != PE_OK ||
        pe_rope_apply(rope, &last, &single, &single, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    /* Every q and k head of the last token is the vector turned by itself. */
    for (int h = 0; h < TURNED; h++)
        wrong += memcmp(qkv[1][LEN - 1][h], one, sizeof one) != 0;
    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t < LEN; t++)
            for (int i = TURNED * DIM; i < ALL * DIM; i++)
                wrong += qkv[b][t][i / DIM][i % DIM] != 0x3f3f;
    printf("packed qkv: %d heads turned, v untouched, %d wrong\n", TURNED, wrong);
    pe_rope_destroy(rope);
    return wrong != 0;
}
