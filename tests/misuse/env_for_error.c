/* SPDX-License-Identifier: MIT
 *
 * env_for_error.c - an error passed where the env belongs
 *
 * The misuse must be refused, the right call must compile.
 */
#include "posenc/posenc.h"

#ifdef MISUSE
#  define ENV_AND_ERROR error, 0
#else
#  define ENV_AND_ERROR 0, error
#endif

pe_status call(pe_rope **out, const pe_rope_spec *spec, pe_error *error);

pe_status call(pe_rope **out, const pe_rope_spec *spec, pe_error *error)
{
    return pe_rope_create(out, spec, ENV_AND_ERROR);
}
