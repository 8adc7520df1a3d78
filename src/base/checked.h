/* SPDX-License-Identifier: MIT
 *
 * checked.h - int64 arithmetic that says when it overflowed
 *
 * Shapes and strides come from callers and files: every product of them goes through
 * here.  Each returns 1 and writes *out when the result is exact, else 0. */
#ifndef PE_CHECKED_H
#define PE_CHECKED_H

#include <stdint.h>

static inline int pe_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    if (a > 0 ? (b > INT64_MAX / a || b < INT64_MIN / a)
              : (a < 0 && (b > 0 ? a < INT64_MIN / b : b < INT64_MAX / a)))
        return 0;
    *out = a * b;
    return 1;
}

static inline int pe_add_i64(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return 0;
    *out = a + b;
    return 1;
}

#endif /* PE_CHECKED_H */
