/* SPDX-License-Identifier: MIT
 *
 * spec.c - size-versioned structs: zero is unset, so it is sound in both directions
 */
#include "base/spec.h"

#include "base/error.h"

#include <string.h>

/* No struct will grow past this; a size that was never set mostly does, and its bytes
 * are not there to be read. */
enum { MAX_STRUCT_SIZE = 4096 };

/* Index of the first nonzero byte in [begin, end), or end. */
static size_t first_nonzero(const void *data, size_t begin, size_t end)
{
    const unsigned char *bytes = data;
    while (begin < end && bytes[begin] == 0)
        begin++;
    return begin;
}

static pe_status check_size(const void *spec, size_t min_size, const char *name,
                            uint32_t *size, pe_error *error)
{
    if (spec == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "%s is NULL", name);
    memcpy(size, spec, sizeof *size);
    if (*size < min_size)
        return pe_fail(error, PE_E_ARGUMENT,
                       "%s.struct_size is %u, must be at least %zu (sizeof %s)", name,
                       *size, min_size, name);
    if (*size > MAX_STRUCT_SIZE)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "%s.struct_size is %u, must be at most %d: was it set?", name,
                       *size, MAX_STRUCT_SIZE);
    return PE_OK;
}

pe_status pe_spec_read(void *own, size_t own_size, const void *spec, size_t min_size,
                       const char *name, pe_error *error)
{
    uint32_t size = 0;
    pe_status status = check_size(spec, min_size, name, &size, error);
    if (status != PE_OK)
        return status;
    const size_t unknown = first_nonzero(spec, own_size, size);
    if (unknown < size)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "%s: the field at byte %zu is not known to this library", name,
                       unknown);
    memset(own, 0, own_size);
    memcpy(own, spec, size < own_size ? size : own_size);
    size = (uint32_t)own_size;
    memcpy(own, &size, sizeof size);
    return PE_OK;
}

pe_status pe_spec_write(void *spec, const void *own, size_t own_size, size_t min_size,
                        const char *name, pe_error *error)
{
    uint32_t size = 0;
    pe_status status = check_size(spec, min_size, name, &size, error);
    if (status != PE_OK)
        return status;
    if (size < own_size && first_nonzero(own, size, own_size) < own_size)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "%s.struct_size is %u, but the field at byte %zu is needed",
                       name, size, first_nonzero(own, size, own_size));
    memset(spec, 0, size);
    memcpy(spec, own, size < own_size ? size : own_size);
    memcpy(spec, &size, sizeof size);
    return PE_OK;
}
