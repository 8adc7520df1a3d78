/* SPDX-License-Identifier: MIT
 *
 * paged_attention.c - keys into an f16 pool by slot, attention over it by page table,
 * each row of its own length; a dense copy must agree */
#include <math.h>
#include <posenc/attention.h>
#include <stdio.h>

enum { PAGE = 16, PAGES = 6, KV = 2, H = 4, D = 32, ROWS = 2, MAX = 2 };

static uint16_t pool[PAGES * PAGE * KV * D], dense[ROWS * MAX * PAGE * KV * D];
static float x[ROWS * KV * D], q[ROWS * H * D], out[2][ROWS * H * D];
static _Alignas(64) unsigned char work[1 << 20];

int main(void)
{
    const int32_t table[ROWS * MAX] = {4, 1, 3, -1};
    const int64_t lens[ROWS] = {20, 9};
    int64_t at_row[ROWS];
    int32_t slots[ROWS], failed = 0;
    pe_rope_spec turn = {.struct_size = sizeof turn, .head_dim = D};
    pe_attention_spec spec = {.struct_size = sizeof spec, .num_heads = H};
    pe_attention_args args = {.struct_size = sizeof args, .k_lens = lens};
    const pe_positions at = {.starts = at_row}, from_0 = {.start = 0};
    pe_tensor tx, tq, by_slot, pages, copy, to[2];
    pe_rope *rope = NULL;
    pe_attention *plan;
    pe_error error;
    turn.pairs.pairing = PE_HALF_SPLIT, turn.freqs.rope_theta = 10000;
    spec.num_kv_heads = KV, spec.head_dim = D, spec.visible.mask = PE_MASK_CAUSAL;
    pe_tensor_bshd(&tx, PE_F32, x, ROWS, 1, KV, D);
    pe_tensor_bshd(&tq, PE_F32, q, ROWS, 1, H, D);
    pe_tensor_paged(&by_slot, PE_F16, pool, PAGES * PAGE, 1, KV, D, slots, ROWS, 1);
    pe_tensor_paged(&pages, PE_F16, pool, PAGES, PAGE, KV, D, table, ROWS, MAX);
    pe_tensor_bshd(&copy, PE_F16, dense, ROWS, MAX * PAGE, KV, D);
    failed = pe_rope_create(&rope, &turn, NULL, &error) != PE_OK;
    for (int t = 0; t < lens[0]; t++) {
        at_row[0] = at_row[1] = t;
        for (int b = 0; b < ROWS; b++) /* a row that has ended writes nowhere */
            slots[b] = t < lens[b] ? PAGE * table[b * MAX + t / PAGE] + t % PAGE : -1;
        for (int i = 0; i < ROWS * H * D; i++)
            x[i % (ROWS * KV * D)] = q[i] = (float)((t * 131 + i * 37) % 199) / 99 - 1;
        failed |= pe_rope_apply(rope, &at, &tx, &by_slot, &error) != PE_OK;
    }
    at_row[0] = lens[0] - 1, at_row[1] = lens[1] - 1;
    args.q = &tq, args.q_at = &at, args.k_at = &from_0, spec.q_rope = rope;
    failed |= pe_attention_create(&plan, &spec, NULL, &error) != PE_OK ||
              pe_tensor_copy(&pages, &copy, NULL, &error) != PE_OK;
    for (int i = 0; i < 2 && !failed; i++) {
        pe_tensor_bshd(&to[i], PE_F32, out[i], ROWS, 1, H, D);
        args.k = args.v = i ? &copy : &pages, args.out = &to[i];
        failed = pe_attention_forward(plan, &args, work, sizeof work, &error) != PE_OK;
    }
    double worst = 0;
    for (int i = 0; i < ROWS * H * D; i++)
        worst = fmax(worst, fabs((double)(out[0][i] - out[1][i])));
    printf("pages and a dense copy differ by %g\n", worst);
    pe_attention_destroy(plan), pe_rope_destroy(rope);
    return failed || out[0][0] == 0 || !(worst < 1e-6);
}
