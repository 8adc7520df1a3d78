/* SPDX-License-Identifier: MIT
 *
 * main.c - check_kernels [ISA...]: every kernel that this CPU runs, against arithmetic
 *
 * Exit 0: all kept their contracts; 1: some did not; 2: an ISA was named that is unknown
 * or not here.  A fault inside a kernel is reported with the call that made it. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include "check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const dtype_names[] = {"f32", "f16", "bf16"};
const size_t dtype_sizes[] = {4, 2, 2};

enum { CANARY = 0xA5, MAX_PRINTED = 10 };

static char current[256];
static int64_t failures;

/* -------------------------------------------------------------------- strips --- */

strip strip_new(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t rounded = (size + page - 1) / page * page;
    unsigned char *all = mmap(NULL, rounded + 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strip s = {all + page, malloc(rounded), malloc(rounded), rounded};
    if (all == MAP_FAILED || s.before == NULL || s.own == NULL ||
        mprotect(all, page, PROT_NONE) != 0 ||
        mprotect(all + page + rounded, page, PROT_NONE) != 0)
        abort();
    return s;
}

void strip_free(strip *s)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)munmap(s->begin - page, s->size + 2 * page);
    free(s->before);
    free(s->own);
}

void *strip_place(strip *s, size_t size, place_kind kind, size_t offset)
{
    memset(s->begin, CANARY, s->size);
    if (size > s->size || (kind == AT_OFFSET && 64 + offset + size > s->size))
        abort();
    return kind == AT_BEGIN ? s->begin
           : kind == AT_END ? s->begin + s->size - size
                            : s->begin + 64 + offset;
}

void strip_mark(strip *s)
{
    memcpy(s->before, s->begin, s->size);
    memset(s->own, 0, s->size);
}

void strip_own(strip *s, const void *from, size_t size)
{
    memset(s->own + ((const unsigned char *)from - s->begin), 1, size);
}

int strip_kept(const strip *s)
{
    enum { BLOCK = 64 }; /* divides a page; most are as they were */
    for (size_t block = 0; block < s->size; block += BLOCK)
        if (memcmp(s->before + block, s->begin + block, BLOCK) != 0)
            for (size_t i = block; i < block + BLOCK; i++)
                if (s->before[i] != s->begin[i] && !s->own[i])
                    return 0;
    return 1;
}

/* ------------------------------------------------------------------- reports --- */

void say_case(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(current, sizeof current, format, list);
    va_end(list);
}

void fail_case(const char *format, ...)
{
    va_list list;
    if (failures++ >= MAX_PRINTED)
        return;
    (void)printf("FAIL %s: ", current);
    va_start(list, format);
    (void)vprintf(format, list);
    va_end(list);
    (void)putchar('\n');
}

static void report_fault(int signal)
{
    static const char text[] = "FAIL, touched a guard page: ";
    (void)!write(1, text, sizeof text - 1);
    (void)!write(1, current, strlen(current));
    (void)!write(1, "\n", 1);
    _Exit(128 + signal);
}

/* ---------------------------------------------------------------------- runs --- */

static int check(pe_isa isa)
{
    static const struct {
        const char *name;
        int64_t (*run)(const pe_kernels *kernels, test_rng *r);
    } checks[] = {{"rotate", check_rotate},
                  {"convert", check_convert},
                  {"int8", check_int8},
                  {"table", check_table},
                  {"sum", check_sum}};
    const pe_kernels *kernels = pe_kernels_get(isa);
    int failed = 0;
    if (kernels->isa != isa) {
        (void)printf("FAIL %s is available, but its table is that of %s\n",
                     pe_isa_name(isa), kernels->name);
        return 1;
    }
    for (size_t i = 0; i < PE_COUNT(checks); i++) {
        test_rng r = {.state = 20261129 + i};
        failures = 0;
        (void)fflush(stdout);
        const int64_t calls = checks[i].run(kernels, &r);
        (void)printf("%-8s %-8s %9lld calls", kernels->name, checks[i].name,
                     (long long)calls);
        if (failures > 0)
            (void)printf(", %lld FAILURES", (long long)failures);
        (void)putchar('\n');
        failed |= failures > 0;
    }
    return failed;
}

static pe_isa isa_of(const char *name)
{
    for (pe_isa isa = PE_ISA_SCALAR; isa <= PE_ISA_WASM128; isa++)
        if (strcmp(pe_isa_name(isa), name) == 0 && pe_isa_available(isa))
            return isa;
    return PE_ISA_AUTO;
}

int main(int argc, char **argv)
{
    int failed = 0;
    (void)signal(SIGSEGV, report_fault);
    (void)signal(SIGBUS, report_fault);
    for (int i = 1; i < argc; i++) {
        const pe_isa isa = isa_of(argv[i]);
        if (isa == PE_ISA_AUTO) {
            (void)fprintf(stderr, "check_kernels: %s is not available here\n", argv[i]);
            return 2;
        }
        failed |= check(isa);
    }
    for (pe_isa isa = PE_ISA_SCALAR; argc < 2 && isa <= PE_ISA_WASM128; isa++)
        if (pe_isa_available(isa))
            failed |= check(isa);
    return failed;
}
