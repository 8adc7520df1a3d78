/* SPDX-License-Identifier: MIT
 *
 * builders.h - what the position builders share
 *
 * Each checks everything before it writes anything. */
#ifndef PE_BUILDERS_H
#define PE_BUILDERS_H

#include "base/base.h"

#include "posenc/positions.h"

/* cu_seqlens[0 .. num_seqs] begins with 0 and does not decrease. */
pe_status pe_cu_seqlens_check(const int32_t *cu_seqlens, int64_t num_seqs,
                              pe_error *error);

#endif /* PE_BUILDERS_H */
