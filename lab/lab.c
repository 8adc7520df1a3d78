/* SPDX-License-Identifier: MIT
 *
 * lab.c - errors as the library words them, work as it spreads it, and time
 */
#include "lab.h"

#include "posenc/posenc.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

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

void lab_run(const pe_executor *executor, int64_t count, pe_work_fn work, void *arg)
{
    if (executor != NULL && executor->run != NULL)
        executor->run(executor->ctx, count, 1, work, arg);
    else if (count > 0)
        work(arg, 0, 0, count);
}

double lab_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
