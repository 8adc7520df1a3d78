/* SPDX-License-Identifier: MIT
 *
 * spec_for_plan.c - a spec where the plan made from it belongs
 *
 * The misuse must be refused, the right call must compile.
 */
#include "posenc/posenc.h"

#ifdef MISUSE
typedef pe_rope_spec rope_type;
#else
typedef pe_rope rope_type;
#endif

pe_status call(const rope_type *rope, const pe_positions *at, const pe_tensor *x,
               pe_error *error);

pe_status call(const rope_type *rope, const pe_positions *at, const pe_tensor *x,
               pe_error *error)
{
    return pe_rope_apply(rope, at, x, x, error);
}
