/* SPDX-License-Identifier: MIT
 *
 * table_hash.c - one hash over more than 10^7 table entries
 *
 * Every frequency rule, every kind of angle, positions near and far, whole and
 * fractional, and the doubles of inv_freq; then sinusoidal encodings of every order, and
 * sums and stretched tables, whose rounding contraction would change, too.  The bits must not depend on compiler, level,
 * contraction or instruction set: tests/hash/pinned holds the only right answer. */
#include "posenc/posenc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 128, PAIRS = DIM / 2, ROWS = 512 };

static uint64_t hash = 0xcbf29ce484222325u;
static int64_t entries;

static void add_word(uint64_t word)
{
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
}

static void add_floats(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        add_word(bits);
    }
    entries += n;
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void) /* xorshift64 */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void add_rows(const pe_rope *rope, const pe_positions *at, int64_t rows)
{
    static float cos[ROWS * PAIRS], sin[ROWS * PAIRS];
    pe_tensor c, s;
    pe_tensor_bshd(&c, PE_F32, cos, 1, rows, 1, PAIRS);
    pe_tensor_bshd(&s, PE_F32, sin, 1, rows, 1, PAIRS);
    if (pe_rope_table(rope, at, &c, &s, NULL) != PE_OK)
        exit(1);
    add_floats(cos, rows * PAIRS);
    add_floats(sin, rows * PAIRS);
}

static void add_plan(const pe_rope_spec *spec)
{
    static const int64_t starts[] = {-200,
                                     99900,
                                     1000000,
                                     (int64_t)1 << 26,
                                     ((int64_t)1 << 31) - 256,
                                     -((int64_t)1 << 31),
                                     -100000};
    pe_rope *rope;
    pe_error error;
    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK) {
        fprintf(stderr, "table_hash: %s\n", error.message);
        exit(1);
    }
    const pe_rope_info *info = pe_rope_get_info(rope);
    for (int32_t i = 0; i < info->num_pairs; i++) {
        uint64_t bits;
        memcpy(&bits, info->inv_freq + i, sizeof bits);
        add_word(bits);
    }
    for (size_t k = 0; k < sizeof starts / sizeof starts[0]; k++) {
        const pe_positions at = {.start = starts[k]};
        add_rows(rope, &at, ROWS);
    }
    int64_t ids[64];
    double values[64];
    for (int k = 0; k < 64; k++) {
        ids[k] = (int64_t)(next_random() >> (23 + k % 40)); /* up to 2^41 */
        ids[k] = k % 2 ? ids[k] : -ids[k];
        const double whole = (double)(next_random() >> (24 + k % 40));
        const double part = (double)(next_random() >> 11) * 0x1p-53;
        values[k] = k % 2 ? whole + part : -part * 0x1p-6;
    }
    const pe_positions far = {.ids = ids}, fractional = {.values = values};
    add_rows(rope, &far, 64);
    add_rows(rope, &fractional, 64);
    pe_rope_destroy(rope);
}

static void check(pe_status status, const pe_error *error)
{
    if (status != PE_OK) {
        fprintf(stderr, "table_hash: %s\n", error->message);
        exit(1);
    }
}

static void add_sinusoidal(const pe_sinusoidal_spec *spec)
{
    static float rows[ROWS * DIM], x[ROWS * DIM];
    static const int64_t starts[] = {-100, 1000000, (int64_t)1 << 33};
    pe_tensor x_t, y;
    pe_absolute *plan;
    pe_error error;
    check(pe_sinusoidal_create(&plan, spec, NULL, &error), &error);
    for (int i = 0; i < ROWS * DIM; i++)
        x[i] = (float)(next_random() >> 40) * 0x1p-24f;
    pe_tensor_bshd(&x_t, PE_F32, x, 1, ROWS, 1, DIM);
    pe_tensor_bshd(&y, PE_F32, rows, 1, ROWS, 1, DIM);
    for (size_t k = 0; k < sizeof starts / sizeof starts[0]; k++) {
        const pe_positions at = {.start = starts[k]};
        check(pe_absolute_fill(plan, &at, &y, &error), &error);
        add_floats(rows, ROWS * DIM);
        check(pe_absolute_add(plan, &at, &x_t, &y, &error), &error);
        add_floats(rows, ROWS * DIM);
    }
    pe_absolute_destroy(plan);
}

static void add_sinusoidals(void)
{
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec,
                               .model_dim = DIM,
                               .value_scale = 0.3,
                               .embed_scale = 11.313708498984761};
    for (int k = 0; k < 12; k++) {
        spec.order = 1 + k % 3;
        spec.downscale_freq_shift = k / 3 % 2;
        spec.angles = k < 6 ? PE_ANGLES_EXACT : PE_ANGLES_HF_F32;
        spec.position_scale = k < 3 ? 0.37 : 1;
        add_sinusoidal(&spec);
    }
}

static void add_stretched(void)
{
    enum { FROM = 14, TO = 31, WIDTH = 8 };
    static float from[FROM * FROM * WIDTH], to[TO * TO * WIDTH];
    pe_resize how = {.from_h = FROM, .from_w = FROM, .to_h = TO, .to_w = TO};
    pe_tensor weight, out;
    pe_error error;
    for (int i = 0; i < FROM * FROM * WIDTH; i++)
        from[i] = (float)(next_random() >> 40) * 0x1p-24f;
    pe_tensor_bshd(&weight, PE_F32, from, 1, FROM * FROM, 1, WIDTH);
    pe_tensor_bshd(&out, PE_F32, to, 1, TO * TO, 1, WIDTH);
    for (int k = 0; k < 6; k++) {
        how.mode = 1 + k % 2;
        how.align_corners = k / 2 == 1;
        how.scale_h = how.scale_w = k / 2 == 2 ? 2.213 : 0;
        check(pe_learned_resize(&how, &weight, &out, NULL, &error), &error);
        add_floats(to, TO * TO * WIDTH);
    }
}

int main(void)
{
    static const double thetas[] = {100, 1e4, 5e5, 1e6, 1e7};
    double list[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        list[i] = 1 + i * 0.5;
    const pe_freqs rules[] = {
        {.rope_type = PE_ROPE_DEFAULT},
        {.rope_type = PE_ROPE_LINEAR, .factor = 8},
        {.rope_type = PE_ROPE_NTK, .factor = 1000},
        {.rope_type = PE_ROPE_DYNAMIC,
         .factor = 2,
         .max_position_embeddings = 4096,
         .seq_len = 10000},
        {.rope_type = PE_ROPE_YARN,
         .factor = 40,
         .original_max_position_embeddings = 4096},
        {.rope_type = PE_ROPE_YARN,
         .factor = 32,
         .original_max_position_embeddings = 4096,
         .no_truncate = 1,
         .mscale = 0.707,
         .mscale_all_dim = 1},
        {.rope_type = PE_ROPE_LONGROPE,
         .max_position_embeddings = 131072,
         .original_max_position_embeddings = 4096,
         .short_factor = list,
         .long_factor = list},
        {.rope_type = PE_ROPE_LLAMA3,
         .factor = 8,
         .low_freq_factor = 1,
         .high_freq_factor = 4,
         .original_max_position_embeddings = 8192},
        {.rope_type = PE_ROPE_PROPORTIONAL, .partial_rotary_factor = 0.25},
    };
    for (size_t t = 0; t < sizeof thetas / sizeof thetas[0]; t++)
        for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
            for (pe_angles angles = PE_ANGLES_EXACT; angles <= PE_ANGLES_GGML_F32;
                 angles++) {
                pe_rope_spec spec = {.struct_size = sizeof spec,
                                     .head_dim = DIM,
                                     .angles = angles,
                                     .pairs = {.pairing = PE_HALF_SPLIT},
                                     .freqs = rules[r]};
                spec.freqs.rope_theta = thetas[t];
                if (angles == PE_ANGLES_GGML_F32 && spec.freqs.no_truncate)
                    continue; /* ggml cannot express it, and says so */
                add_plan(&spec);
            }
    add_sinusoidals();
    add_stretched();
    printf("hash %016llx entries %lld\n", (unsigned long long)hash, (long long)entries);
    return 0;
}
