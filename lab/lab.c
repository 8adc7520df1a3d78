/* SPDX-License-Identifier: MIT
 *
 * lab.c - errors, as the library words them
 */
#include "lab.h"

#include "posenc/posenc.h"

#include <stdarg.h>
#include <stdio.h>

pe_status lab_fail(pe_error *error, pe_status status, const char *format, ...)
{
    if (error == NULL)
        return status;
    va_list arguments;
    *error = (pe_error){.status = status};
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}
