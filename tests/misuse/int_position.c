/* SPDX-License-Identifier: MIT
 *
 * int_position.c - a bare integer for the positions
 *
 * The misuse must be refused, the right call must compile.
 */
#include "posenc/posenc.h"

#ifdef MISUSE
#  define AT 17
#else
#  define AT        \
    &(pe_positions) \
    {               \
      .start = 17   \
    }
#endif

pe_status call(const pe_rope *rope, const pe_tensor *x, pe_error *error);

pe_status call(const pe_rope *rope, const pe_tensor *x, pe_error *error)
{
    return pe_rope_apply(rope, AT, x, x, error);
}
