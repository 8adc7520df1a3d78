/* SPDX-License-Identifier: MIT
 *
 * bench_tables.c - the limits themselves, and rows of cosines and sines against libm's
 */
#define _GNU_SOURCE /* sincos */
#include "bench.h"

#include "posenc/posenc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -------------------------------------------------------------------- limits --- */

static volatile float sink;

typedef struct stream {
    const bench_limits *limits;
    void *data;
    int64_t count;
} stream;

static void scale(void *ctx)
{
    const stream *s = ctx;
    bench_scale(s->limits, PE_F32, s->data, s->count);
}
static void scale_f16(void *ctx)
{
    const stream *s = ctx;
    bench_convert(s->limits, PE_F16, s->data, s->count * 2);
}
static void scale_bf16(void *ctx)
{
    const stream *s = ctx;
    bench_convert(s->limits, PE_BF16, s->data, s->count * 2);
}
static void multiply_add(void *ctx)
{
    const stream *s = ctx;
    sink = s->limits->multiply_add(s->count, bench_one * 0.5f);
}

static void measure_stream(bench *b, const char *place, int64_t bytes)
{
    static const struct {
        const char *name;
        pe_dtype dtype;
        void (*run)(void *);
    } kinds[] = {{"scale", PE_F32, scale},
                 {"convert.f16", PE_F16, scale_f16},
                 {"convert.bf16", PE_BF16, scale_bf16}};
    char id[64];
    for (size_t i = 0; i < CLI_COUNT(kinds); i++) {
        (void)snprintf(id, sizeof id, "limit.%s.%s", kinds[i].name, place);
        if (!bench_wants(b, id))
            continue;
        const int64_t count = bytes / 4;
        stream s = {b->limits,
                    bench_alloc(b, kinds[i].dtype,
                                kinds[i].dtype == PE_F32 ? count : 2 * count),
                    count};
        const bench_side sides[] = {{NULL, kinds[i].run, &s}, {"limit", scale, &s}};
        (void)bench_measure(b, id, 2.0 * (double)bytes, (double)count, (double)bytes,
                            2.0 * (double)bytes, sides, i == 0 ? 1 : 2);
        free(s.data);
    }
}

void bench_limit_rows(bench *b)
{
    static const struct {
        const char *place;
        int64_t bytes;
    } places[] = {
        {"l1", 16 << 10}, {"l2", 512 << 10}, {"l3", 8 << 20}, {"dram", 256 << 20}};
    if (bench_wants(b, "limit.fma")) {
        stream s = {b->limits, NULL, 4096};
        const bench_side side = {NULL, multiply_add, &s};
        (void)bench_measure(b, "limit.fma", 0,
                            (double)(s.count * b->limits->flops_per_round), 0, 0, &side,
                            1);
    }
    for (size_t i = 0; i < CLI_COUNT(places); i++)
        measure_stream(b, places[i].place, places[i].bytes);
}

/* -------------------------------------------------------------------- tables --- */

enum { PAIRS = 64, ROWS = 256 };

typedef struct table {
    pe_rope *rope;
    pe_positions at;
    pe_tensor cosine, sine;
    float *values; /* [2][ROWS][PAIRS] */
    int64_t ids[ROWS];
} table;

static void fill(void *ctx)
{
    const table *t = ctx;
    (void)pe_rope_table(t->rope, &t->at, &t->cosine, &t->sine, NULL);
}

static void fill_by_libm(void *ctx)
{
    const table *t = ctx;
    const double *inv_freq = pe_rope_get_info(t->rope)->inv_freq;
    float *c = t->values, *s = t->values + ROWS * PAIRS;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < PAIRS; i++) {
            const int64_t position = t->at.ids ? t->ids[r] : t->at.start + r;
            double sine, cosine;
            sincos((double)position * inv_freq[i], &sine, &cosine);
            c[r * PAIRS + i] = (float)cosine;
            s[r * PAIRS + i] = (float)sine;
        }
}

/* The baseline must make the same table, but for its last bit. */
static void check_libm(bench *b, table *t)
{
    float cosine[PAIRS], sine[PAIRS];
    fill(t);
    for (int i = 0; i < PAIRS; i++) {
        cosine[i] = t->values[100 * PAIRS + i];
        sine[i] = t->values[(ROWS + 100) * PAIRS + i];
    }
    fill_by_libm(t);
    for (int i = 0; i < PAIRS && b->status == CLI_DONE; i++)
        if (fabsf(cosine[i] - t->values[100 * PAIRS + i]) > 0x1p-23f ||
            fabsf(sine[i] - t->values[(ROWS + 100) * PAIRS + i]) > 0x1p-23f)
            b->status = cli_fail(CLI_FAILED, "libm's table disagrees at pair %d", i);
}

static void measure_table(bench *b, pe_isa isa, int consecutive, double goal)
{
    char id[64];
    (void)snprintf(id, sizeof id, "table.%s.%s", consecutive ? "run" : "each",
                   pe_isa_name(isa));
    if (!bench_wants(b, id) || !pe_isa_available(isa))
        return;
    const pe_rope_spec spec = {.struct_size = sizeof spec,
                               .head_dim = 2 * PAIRS,
                               .pairs = {.pairing = PE_HALF_SPLIT},
                               .freqs = {.rope_theta = 10000}};
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    table t = {.at = {.start = 100000},
               .values = bench_alloc(b, PE_F32, 2 * ROWS * PAIRS)};
    pe_error error;
    if (b->status == CLI_DONE && pe_rope_create(&t.rope, &spec, &env, &error) != PE_OK)
        bench_failed(b, &error);
    for (int64_t r = 0; r < ROWS; r++)
        t.ids[r] = 100000 + r * 7919 % 65536; /* no two in a row */
    if (!consecutive)
        t.at = (pe_positions){.ids = t.ids};
    if (b->status == CLI_DONE) {
        pe_tensor_bshd(&t.cosine, PE_F32, t.values, 1, ROWS, 1, PAIRS);
        pe_tensor_bshd(&t.sine, PE_F32, t.values + ROWS * PAIRS, 1, ROWS, 1, PAIRS);
        check_libm(b, &t);
        const bench_side sides[] = {{NULL, fill, &t}, {"libm", fill_by_libm, &t}};
        const double bytes = 2.0 * ROWS * PAIRS * 4;
        (void)bench_measure(b, id, bytes, 0, bytes, 0, sides, 2);
        if (goal > 0)
            bench_goal_at_least(b, id, "libm", goal);
    }
    pe_rope_destroy(t.rope);
    free(t.values);
}

void bench_tables(bench *b)
{
    measure_table(b, PE_ISA_AVX512, 0, 18);
    measure_table(b, PE_ISA_AVX512, 1, 18);
    measure_table(b, PE_ISA_AVX2, 0, 7);
    measure_table(b, PE_ISA_AVX2, 1, 15);
    measure_table(b, PE_ISA_NEON, 0, 0);
    measure_table(b, PE_ISA_NEON, 1, 0);
    measure_table(b, PE_ISA_SCALAR, 0, 0);
    measure_table(b, PE_ISA_SCALAR, 1, 0);
}
