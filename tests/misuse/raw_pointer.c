/* SPDX-License-Identifier: MIT
 *
 * raw_pointer.c - a bare array for a tensor
 *
 * The misuse must be refused, the right call must compile.
 */
#include "posenc/posenc.h"

#ifdef MISUSE
typedef float x_type;
#else
typedef pe_tensor x_type;
#endif

pe_status call(const pe_rope *rope, const pe_positions *at, x_type *x, pe_error *error);

pe_status call(const pe_rope *rope, const pe_positions *at, x_type *x, pe_error *error)
{
    return pe_rope_apply(rope, at, x, x, error);
}
