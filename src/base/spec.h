/* SPDX-License-Identifier: MIT
 *
 * spec.h - structs that start with struct_size, from callers older or newer than us
 */
#ifndef PE_SPEC_H
#define PE_SPEC_H

#include "base/base.h"

/* struct_size of each growable struct in the first release: smaller is refused. */
enum {
    PE_ENV_SIZE_V1 = sizeof(pe_env),
    PE_ROPE_SPEC_SIZE_V1 = sizeof(pe_rope_spec),
    PE_SINUSOIDAL_SPEC_SIZE_V1 = sizeof(pe_sinusoidal_spec),
    PE_LEARNED_SPEC_SIZE_V1 = sizeof(pe_learned_spec),
    PE_BIAS_SPEC_SIZE_V1 = sizeof(pe_bias_spec)
};

/* Copies min(struct_size, own_size) bytes of spec into own, whose rest is zeroed, and
 * sets own's struct_size to own_size.  spec is any struct that begins with a uint32_t
 * struct_size; name is its type, for messages.
 * NULL or struct_size below min_size: PE_E_ARGUMENT.  Nonzero bytes past own_size:
 * PE_E_UNSUPPORTED, since zero means unset. */
pe_status pe_spec_read(void *own, size_t own_size, const void *spec, size_t min_size,
                       const char *name, pe_error *error);

/* The other way, for specs that the library fills: writes min(struct_size, own_size)
 * bytes of own into spec and keeps spec's struct_size.  PE_E_UNSUPPORTED if own has
 * nonzero bytes that do not fit. */
pe_status pe_spec_write(void *spec, const void *own, size_t own_size, size_t min_size,
                        const char *name, pe_error *error);

#endif /* PE_SPEC_H */
