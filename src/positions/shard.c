/* SPDX-License-Identifier: MIT
 *
 * shard.c - the tokens that one rank of a context-parallel group holds
 *
 * Under a causal mask late tokens cost more than early ones.  Zig-zag gives each rank a
 * run from the front and its mirror image from the back, so that all cost the same. */
#include "positions/builders.h"

#include "base/error.h"

static pe_status check_ranks(pe_shard shard, int64_t rank, int64_t num_ranks,
                             pe_error *error)
{
    if (shard != PE_SHARD_CONTIGUOUS && shard != PE_SHARD_ZIGZAG)
        return pe_fail(
            error, PE_E_ARGUMENT,
            "shard is %d, must be PE_SHARD_CONTIGUOUS (1) or PE_SHARD_ZIGZAG "
            "(2)",
            shard);
    if (num_ranks < 1 || num_ranks > (int64_t)1 << 32)
        return pe_fail(error, PE_E_ARGUMENT, "num_ranks is %lld, must be in 1 .. 2^32",
                       (long long)num_ranks);
    if (rank < 0 || rank >= num_ranks)
        return pe_fail(error, PE_E_ARGUMENT,
                       "rank is %lld, must be at least 0 and below num_ranks (%lld)",
                       (long long)rank, (long long)num_ranks);
    return PE_OK;
}

static int64_t num_runs(pe_shard shard, int64_t num_ranks)
{
    return shard == PE_SHARD_ZIGZAG ? 2 * num_ranks : num_ranks;
}

/* Place i of the rank's share of len tokens. */
static int64_t place(pe_shard shard, int64_t len, int64_t rank, int64_t num_ranks,
                     int64_t i)
{
    const int64_t runs = num_runs(shard, num_ranks), run = len / runs;
    if (shard == PE_SHARD_CONTIGUOUS || i < run)
        return rank * run + i;
    return (runs - 1 - rank) * run + (i - run);
}

pe_status pe_positions_shard(pe_shard shard, int64_t seq_len, int64_t rank,
                             int64_t num_ranks, int64_t *ids, pe_error *error)
{
    const pe_status status = check_ranks(shard, rank, num_ranks, error);
    if (status != PE_OK)
        return status;
    const int64_t runs = num_runs(shard, num_ranks);
    if (seq_len < 0 || seq_len % runs != 0)
        return pe_fail(
            error, PE_E_SHAPE,
            "seq_len is %lld, must be a multiple of the number of runs (%lld)",
            (long long)seq_len, (long long)runs);
    if (ids == NULL && seq_len > 0)
        return pe_fail(error, PE_E_ARGUMENT, "ids is NULL");
    for (int64_t i = 0; i < seq_len / num_ranks; i++)
        ids[i] = place(shard, seq_len, rank, num_ranks, i);
    return PE_OK;
}

pe_status pe_positions_shard_packed(pe_shard shard, const int32_t *cu_seqlens,
                                    int64_t num_seqs, int64_t rank, int64_t num_ranks,
                                    int64_t *rows, int64_t *ids, pe_error *error)
{
    pe_status status;
    if ((status = check_ranks(shard, rank, num_ranks, error)) != PE_OK ||
        (status = pe_cu_seqlens_check(cu_seqlens, num_seqs, error)) != PE_OK)
        return status;
    const int64_t runs = num_runs(shard, num_ranks);
    for (int64_t s = 0; s < num_seqs; s++) {
        const int64_t len = (int64_t)cu_seqlens[s + 1] - cu_seqlens[s];
        if (len % runs != 0)
            return pe_fail(error, PE_E_SHAPE,
                           "sequence %lld has %lld tokens, must be a multiple of the "
                           "number of runs (%lld)",
                           (long long)s, (long long)len, (long long)runs);
    }
    if (ids == NULL && cu_seqlens[num_seqs] > 0)
        return pe_fail(error, PE_E_ARGUMENT, "ids is NULL");
    int64_t n = 0;
    for (int64_t s = 0; s < num_seqs; s++) {
        const int64_t len = (int64_t)cu_seqlens[s + 1] - cu_seqlens[s];
        for (int64_t i = 0; i < len / num_ranks; i++, n++) {
            ids[n] = place(shard, len, rank, num_ranks, i);
            if (rows != NULL)
                rows[n] = cu_seqlens[s] + ids[n];
        }
    }
    return PE_OK;
}
