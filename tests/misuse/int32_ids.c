/* SPDX-License-Identifier: MIT
 *
 * int32_ids.c - 32-bit position ids
 *
 * The misuse must be refused, the right call must compile.
 */
#include "posenc/posenc.h"

#ifdef MISUSE
typedef int32_t id_type;
#else
typedef int64_t id_type;
#endif

int64_t call(const id_type *ids);

int64_t call(const id_type *ids)
{
    pe_positions at = {.ids = ids};
    return at.ids[0];
}
