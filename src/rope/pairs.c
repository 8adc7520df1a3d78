/* SPDX-License-Identifier: MIT
 *
 * pairs.c - part D: pairing and window
 */
#include "rope/pairs.h"

#include "base/checked.h"
#include "base/error.h"

static int is_pairing(pe_pairing p)
{
    return p == PE_HALF_SPLIT || p == PE_INTERLEAVED;
}

pe_status pe_pairs_resolve(const pe_pairs *pairs, int64_t head_dim, pe_pairs *resolved,
                           pe_error *error)
{
    pe_pairs p = *pairs;
    if (!is_pairing(p.pairing))
        return pe_fail(
            error, PE_E_ARGUMENT,
            "pairing is %d, must be PE_HALF_SPLIT (1) or PE_INTERLEAVED (2): "
            "it has no default",
            p.pairing);
    if (p.out_pairing == 0)
        p.out_pairing = p.pairing;
    if (!is_pairing(p.out_pairing))
        return pe_fail(
            error, PE_E_ARGUMENT,
            "out_pairing is %d, must be 0 (as pairing), PE_HALF_SPLIT (1) or "
            "PE_INTERLEAVED (2)",
            p.out_pairing);
    if (p.rotary_start < 0 || p.rotary_start >= head_dim)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "rotary_start is %d, must be at least 0 and below head_dim (%lld)",
            p.rotary_start, (long long)head_dim);
    if (p.rotary_dim == 0)
        p.rotary_dim = (int32_t)(head_dim - p.rotary_start);
    if (p.rotary_dim < 2 || p.rotary_dim % 2 != 0 ||
        p.rotary_dim > head_dim - p.rotary_start) {
        if (p.rotary_start == 0)
            return pe_fail(error, PE_E_ARGUMENT,
                           "rotary_dim is %d, must be even and at most head_dim (%lld)",
                           p.rotary_dim, (long long)head_dim);
        return pe_fail(error, PE_E_ARGUMENT,
                       "rotary_dim is %d, must be even and at most head_dim - "
                       "rotary_start (%lld - %d)",
                       p.rotary_dim, (long long)head_dim, p.rotary_start);
    }
    if (p.reversed != 0 && p.reversed != 1)
        return pe_fail(error, PE_E_ARGUMENT, "reversed is %d, must be 0 or 1",
                       p.reversed);
    if (p.reserved != 0)
        return pe_fail(error, PE_E_ARGUMENT, "pairs.reserved is %d, must be 0",
                       p.reserved);
    *resolved = p;
    return PE_OK;
}

pe_status pe_pairs_permutation(const pe_pairs *pairs, int64_t num_heads,
                               int32_t head_dim, int64_t *rows, pe_error *error)
{
    pe_pairs p;
    int64_t total;
    if (pairs == NULL || rows == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL",
                       pairs == NULL ? "pairs" : "rows");
    if (num_heads < 1)
        return pe_fail(error, PE_E_ARGUMENT, "num_heads is %lld, must be at least 1",
                       (long long)num_heads);
    if (head_dim < 1)
        return pe_fail(error, PE_E_ARGUMENT, "head_dim is %d, must be at least 1",
                       head_dim);
    if (!pe_mul_i64(num_heads, head_dim, &total))
        return pe_fail(error, PE_E_ARGUMENT,
                       "num_heads is %lld, too many rows for int64 at head_dim %d",
                       (long long)num_heads, head_dim);
    const pe_status status = pe_pairs_resolve(pairs, head_dim, &p, error);
    if (status != PE_OK)
        return status;
    const int64_t n = p.rotary_dim / 2;
    for (int64_t h = 0; h < num_heads; h++) {
        const int64_t head = h * head_dim, window = head + p.rotary_start;
        for (int64_t r = 0; r < head_dim; r++)
            rows[head + r] = head + r;
        for (int64_t i = 0; i < n; i++) {
            rows[window + pe_pair_first(p.out_pairing, i)] =
                window + pe_pair_first(p.pairing, i);
            rows[window + pe_pair_second(p.out_pairing, i, n)] =
                window + pe_pair_second(p.pairing, i, n);
        }
    }
    return PE_OK;
}
