/* SPDX-License-Identifier: MIT
 *
 * text.c - positions of padded and of packed rows of text
 */
#include "positions/builders.h"

#include "base/checked.h"
#include "base/error.h"

pe_status pe_positions_from_mask(const uint8_t *mask, int64_t batch, int64_t seq_len,
                                 int64_t pad, int64_t *ids, int64_t *next,
                                 pe_error *error)
{
    int64_t count, bytes;
    if (batch < 1)
        return pe_fail(error, PE_E_SHAPE, "batch is %lld, must be at least 1",
                       (long long)batch);
    if (seq_len < 0)
        return pe_fail(error, PE_E_SHAPE, "seq_len is %lld, must be at least 0",
                       (long long)seq_len);
    if (!pe_mul_i64(batch, seq_len, &count) || !pe_mul_i64(count, 8, &bytes))
        return pe_fail(error, PE_E_SHAPE,
                       "batch is %lld and seq_len %lld: their product has no size",
                       (long long)batch, (long long)seq_len);
    if (count > 0 && (mask == NULL || ids == NULL))
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL",
                       mask == NULL ? "mask" : "ids");
    if (count == 0 && next == NULL)
        return PE_OK; /* batch may be anything */
    for (int64_t b = 0; b < batch; b++) {
        int64_t seen = 0;
        for (int64_t i = b * seq_len; i < (b + 1) * seq_len; i++)
            ids[i] = mask[i] ? seen++ : pad;
        if (next != NULL)
            next[b] = seen;
    }
    return PE_OK;
}

pe_status pe_cu_seqlens_check(const int32_t *cu_seqlens, int64_t num_seqs,
                              pe_error *error)
{
    if (num_seqs < 1)
        return pe_fail(error, PE_E_SHAPE, "num_seqs is %lld, must be at least 1",
                       (long long)num_seqs);
    if (cu_seqlens == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "cu_seqlens is NULL");
    if (cu_seqlens[0] != 0)
        return pe_fail(error, PE_E_ARGUMENT, "cu_seqlens[0] is %d, must be 0",
                       cu_seqlens[0]);
    for (int64_t s = 0; s < num_seqs; s++)
        if (cu_seqlens[s + 1] < cu_seqlens[s])
            return pe_fail(error, PE_E_ARGUMENT,
                           "cu_seqlens[%lld] is %d, must be at least cu_seqlens[%lld] "
                           "(%d)",
                           (long long)s + 1, cu_seqlens[s + 1], (long long)s,
                           cu_seqlens[s]);
    return PE_OK;
}

pe_status pe_positions_packed(const int32_t *cu_seqlens, int64_t num_seqs, int64_t *ids,
                              pe_error *error)
{
    const pe_status status = pe_cu_seqlens_check(cu_seqlens, num_seqs, error);
    if (status != PE_OK)
        return status;
    if (ids == NULL && cu_seqlens[num_seqs] > 0)
        return pe_fail(error, PE_E_ARGUMENT, "ids is NULL");
    for (int64_t s = 0; s < num_seqs; s++)
        for (int64_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; t++)
            ids[t] = t - cu_seqlens[s];
    return PE_OK;
}
