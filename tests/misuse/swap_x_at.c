/* SPDX-License-Identifier: MIT
 *
 * swap_x_at.c - tensor and positions in the wrong order
 *
 * The misuse must be refused, the right call must compile.
 */
#include "posenc/posenc.h"

#ifdef MISUSE
#  define AT_AND_X x, at
#else
#  define AT_AND_X at, x
#endif

pe_status call(const pe_rope *rope, const pe_positions *at, const pe_tensor *x,
               pe_error *error);

pe_status call(const pe_rope *rope, const pe_positions *at, const pe_tensor *x,
               pe_error *error)
{
    return pe_rope_apply(rope, AT_AND_X, x, error);
}
