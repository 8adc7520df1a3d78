/* SPDX-License-Identifier: MIT
 *
 * thread_pool.c - the same rotation on one thread and on a pool of four, bit for bit
 */
#include "posenc/threads.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS = 100, HEADS = 8, DIM = 64, SIZE = TOKENS * HEADS * DIM };

static int rotate(float *q, const pe_env *env, pe_error *error)
{
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = DIM,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    const pe_positions at = {.start = 0};
    pe_rope *rope;
    pe_tensor x;
    pe_tensor_bshd(&x, PE_F32, q, 1, TOKENS, HEADS, DIM);
    pe_status status = pe_rope_create(&rope, &spec, env, error);
    if (status == PE_OK)
        status = pe_rope_apply(rope, &at, &x, &x, error);
    pe_rope_destroy(rope);
    return status == PE_OK;
}

int main(void)
{
    static float alone[SIZE], together[SIZE];
    pe_env env = {.struct_size = sizeof env};
    pe_pool *pool;
    pe_error error;

    for (int i = 0; i < SIZE; i++)
        alone[i] = together[i] = (float)(i % 17) - 8;
    if (pe_pool_create(&pool, 4, &error) != PE_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    pe_pool_executor(pool, &env.executor);
    const int done = rotate(alone, NULL, &error) && rotate(together, &env, &error);
    pe_pool_destroy(pool); /* after the last call of the plan that used it */
    if (!done) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const int equal = memcmp(alone, together, sizeof alone) == 0;
    (void)printf("q[99] on one thread %.6f, on four %.6f: %s\n",
                 (double)alone[SIZE - 1], (double)together[SIZE - 1],
                 equal ? "the same bits" : "they differ");
    return !equal;
}
