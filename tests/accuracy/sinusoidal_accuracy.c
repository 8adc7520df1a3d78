/* SPDX-License-Identifier: MIT
 *
 * sinusoidal_accuracy.c - every sinusoidal entry is the nearest float, by MPFR
 *
 * Frequencies, angles and value_scale in 300 bits, from the formulas, at positions up to
 * 2^40 in size, whole and fractional. */
#include "posenc/posenc.h"

#include <math.h>
#include <mpfr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BITS = 300, MAX_DIM = 512, NUM_POSITIONS = 300 };

static int64_t entries, misrounded;

static uint64_t random_word(void) /* xorshift64 */
{
    static uint64_t state = 0x2545f4914f6cdd1du;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double position_of(int k)
{
    const double sign = k % 2 ? -1 : 1;
    const double whole = (double)(random_word() >> (24 + k % 40));
    if (k < 20)
        return k;
    if (k % 4 == 3)
        return sign * (whole + (double)(random_word() % 4096) / 4096) *
               ldexp(1, -(k % 29));
    return whole == 0 ? 0 : sign * whole;
}

/* position_scale * base^(-i / (half - shift)) */
static void frequency(mpfr_t x, const pe_sinusoidal_spec *spec, int i)
{
    const int zero_ends =
        spec->order == PE_COS_SIN_HALVES ||
        (spec->order == PE_SIN_COS_HALVES && spec->downscale_freq_shift != 0);
    mpfr_t e;
    mpfr_init2(e, BITS);
    mpfr_set_d(e, zero_ends ? spec->model_dim / 2 : spec->model_dim / 2.0, MPFR_RNDN);
    mpfr_sub_d(e, e, spec->downscale_freq_shift, MPFR_RNDN);
    if (i == 0)
        mpfr_set_ui(e, 0, MPFR_RNDN);
    else
        mpfr_si_div(e, -i, e, MPFR_RNDN);
    mpfr_set_d(x, spec->base, MPFR_RNDN);
    mpfr_pow(x, x, e, MPFR_RNDN);
    mpfr_mul_d(x, x, spec->position_scale, MPFR_RNDN);
    mpfr_clear(e);
}

/* Pair and kind of a column; -1: the zero that ends an odd row. */
static int column_pair(const pe_sinusoidal_spec *spec, int k, int *is_sine)
{
    const int d = spec->model_dim;
    if (spec->order == PE_SIN_COS_INTERLEAVED) {
        *is_sine = k % 2 == 0;
        return k / 2;
    }
    const int sines =
        spec->order == PE_SIN_COS_HALVES && spec->downscale_freq_shift == 0
            ? (d + 1) / 2
            : d / 2;
    *is_sine = (k < sines) == (spec->order == PE_SIN_COS_HALVES);
    if (k - sines >= d / 2)
        return -1;
    return k < sines ? k : k - sines;
}

static void check_entry(const pe_sinusoidal_spec *spec, double position, int column,
                        float got, mpfr_t exact)
{
    const float want = mpfr_get_flt(exact, MPFR_RNDN);
    entries++;
    if (got == want)
        return;
    misrounded++;
    printf("order %d, width %d, position %.17g, column %d: got %a, want %a\n",
           spec->order, spec->model_dim, position, column, (double)got, (double)want);
}

static void check_plan(const pe_sinusoidal_spec *spec)
{
    static float row[MAX_DIM];
    static mpfr_t freq[MAX_DIM];
    const int d = spec->model_dim;
    mpfr_t angle, value;
    pe_absolute *plan;
    pe_tensor y;
    pe_error error;
    if (pe_sinusoidal_create(&plan, spec, NULL, &error) != PE_OK) {
        printf("%s\n", error.message);
        exit(1);
    }
    mpfr_inits2(BITS, angle, value, (mpfr_ptr)0);
    for (int i = 0; i < (d + 1) / 2; i++) {
        mpfr_init2(freq[i], BITS);
        frequency(freq[i], spec, i);
    }
    pe_tensor_bshd(&y, PE_F32, row, 1, 1, 1, d);
    for (int n = 0; n < NUM_POSITIONS; n++) {
        const double p = position_of(n);
        const pe_positions whole = {.start = (int64_t)p}, part = {.values = &p};
        if (pe_absolute_fill(plan, p == floor(p) ? &whole : &part, &y, &error) !=
            PE_OK) {
            printf("%s\n", error.message);
            exit(1);
        }
        for (int k = 0; k < d; k++) {
            int is_sine;
            const int pair = column_pair(spec, k, &is_sine);
            mpfr_set_zero(value, 1);
            if (pair >= 0) {
                mpfr_mul_d(angle, freq[pair], p, MPFR_RNDN);
                (is_sine ? mpfr_sin : mpfr_cos)(value, angle, MPFR_RNDN);
                mpfr_mul_d(value, value, spec->value_scale, MPFR_RNDN);
            }
            check_entry(spec, p, k, row[k], value);
        }
    }
    for (int i = 0; i < (d + 1) / 2; i++)
        mpfr_clear(freq[i]);
    mpfr_clears(angle, value, (mpfr_ptr)0);
    pe_absolute_destroy(plan);
}

int main(void)
{
    static const int dims[] = {3, 64, 127, 512};
    static const double bases[] = {10000, 20, 2e6};
    pe_sinusoidal_spec spec = {.struct_size = sizeof spec};
    for (int n = 0; n < 72; n++) {
        spec.model_dim = dims[n % 4];
        spec.order = 1 + n / 4 % 3;
        spec.downscale_freq_shift = n / 12 % 2 && spec.model_dim > 3;
        spec.base = bases[n / 24];
        spec.position_scale = n % 5 == 0 ? 0.37 : 1;
        spec.value_scale = n % 3 == 0 ? -0.0625 : n % 3 == 1 ? 0.0441941738 : 1;
        check_plan(&spec);
    }
    printf("sinusoidal: %lld entries checked, %lld misrounded\n", (long long)entries,
           (long long)misrounded);
    return misrounded != 0;
}
