/* SPDX-License-Identifier: MIT
 *
 * error.c - status names and messages
 *
 * The library never prints; a message goes into the caller's pe_error or nowhere. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int32_t pe_version_number(void)
{
    return PE_VERSION_NUMBER;
}

const char *pe_status_name(pe_status status)
{
    static const char *const names[] = {
        "PE_OK",
        "PE_E_ARGUMENT",
        "PE_E_SHAPE",
        "PE_E_DTYPE",
        "PE_E_POSITION",
        "PE_E_NO_MEMORY",
        "PE_E_WORKSPACE",
        "PE_E_UNSUPPORTED",
        "PE_E_IO",
        "PE_E_FORMAT",
        "PE_E_NOT_FOUND",
        "PE_E_LIMIT",
        "PE_E_INCOMPATIBLE",
    };
    if (status > 0 || status <= -(pe_status)PE_COUNT(names))
        return "unknown status";
    return names[-status];
}

static void fill(pe_error *error, pe_status status, int64_t offset, const char *format,
                 va_list args)
{
    if (error == NULL)
        return;
    error->status = status;
    error->reserved = 0;
    error->offset = offset;
    vsnprintf(error->message, sizeof error->message, format, args);
}

pe_status pe_fail(pe_error *error, pe_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(error, status, 0, format, args);
    va_end(args);
    return status;
}

pe_status pe_fail_at(pe_error *error, pe_status status, int64_t offset,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(error, status, offset, format, args);
    va_end(args);
    return status;
}
