/* SPDX-License-Identifier: MIT
 *
 * error.h - filling a caller's pe_error
 */
#ifndef PE_ERROR_H
#define PE_ERROR_H

#include "base/base.h"

/* Writes status and message (names field, value and bound; lower case, no full stop)
 * into *error unless it is NULL, and returns status. */
pe_status pe_fail(pe_error *error, pe_status status, const char *format, ...)
    PE_PRINTF(3, 4);

/* The same with a byte offset into the input that was being read. */
pe_status pe_fail_at(pe_error *error, pe_status status, int64_t offset,
                     const char *format, ...) PE_PRINTF(4, 5);

#endif /* PE_ERROR_H */
